"""What a caller says of documents: tenant, collection, groups, metadata. Kept exactly, or refused (SettingsError)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.scope import EVERYONE, is_storable
from graphrag_agent.retrieval.stores.payload import RESERVED_KEYS

MAX_NAME_CHARACTERS = 256
MAX_METADATA_DEPTH = 32
"""The folder store's engine can't read what is nested more than about a hundred deep, and then lists nothing."""
_INTEGERS = range(-(2**63), 2**64)
"""Larger ones would come back as fractions."""


def checked_name(kind: str, name: str) -> str:
    """The name of a tenant, collection or group, as it is."""
    if not isinstance(name, str) or not name.strip():
        raise SettingsError(f"{kind}={name!r}: an empty name is reserved, give another one")
    if len(name) > MAX_NAME_CHARACTERS:
        raise SettingsError(f"{kind}={name[:20]!r}...: a name has at most {MAX_NAME_CHARACTERS} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise SettingsError(f"{kind}={name!r}: control characters and broken ones can't be in a name")
    return name


def checked_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """The groups in order, each once."""
    named = {groups} if isinstance(groups, str) else set(groups)
    if EVERYONE in named:
        raise SettingsError(f"groups={sorted(named)!r}: {EVERYONE!r} is reserved; no groups means everyone")
    return tuple(sorted(checked_name("groups", name) for name in named))


def checked_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    """A copy as JSON gives it back. Only names at the top are reserved; deeper ones mean nothing to us."""
    reserved = sorted(RESERVED_KEYS.intersection(metadata))
    if reserved:
        raise SettingsError(f"metadata key {reserved[0]!r} is reserved: choose another name")
    for key, value in metadata.items():
        if problem := _problem({key: value}):
            raise SettingsError(f"metadata {key!r} can't be stored as JSON: {problem}")
    copied: dict[str, object] = json.loads(json.dumps(dict(metadata)))
    return copied


def _problem(value: Any, depth: int = 0) -> str:
    """Why it wouldn't come back as it is; empty where it would."""
    if depth > MAX_METADATA_DEPTH:
        return f"it is nested more than {MAX_METADATA_DEPTH} deep"
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return "" if is_storable(value) else "it has half a character"
    if isinstance(value, int):
        return "" if value in _INTEGERS else "a whole number has at most 64 bits"
    if isinstance(value, float):
        return "" if abs(value) < float("inf") else "a number must be finite"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "keys must be text"
        return _first(_problem(part, depth + 1) for item in value.items() for part in item)
    if isinstance(value, list | tuple):
        return _first(_problem(item, depth + 1) for item in value)
    return f"{type(value).__name__} is none of text, number, boolean, null, list and object"


def _first(problems: Iterable[str]) -> str:
    return next((problem for problem in problems if problem), "")
