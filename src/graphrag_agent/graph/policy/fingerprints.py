"""When two calls mean the same."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from graphrag_agent.retrieval.tokenizer import tokenize
from graphrag_agent.tools.spec import SEARCH_FAMILY, ToolSpec


def call_mark(spec: ToolSpec, arguments: Mapping[str, Any], scope_key: str) -> str:
    """The same for calls that mean the same; `arguments` with their defaults filled in.

    Key order never counts. Blanks, case and Unicode form don't count in a search; elsewhere (code, SQL, a text to send)
    they may mean something.
    """
    return _digest(spec.name, _fold(arguments) if spec.family == SEARCH_FAMILY else arguments, scope_key)


def search_mark(spec: ToolSpec, arguments: Mapping[str, Any], scope_key: str) -> str:
    """The same for searches with the same words, whatever their order, inflection and number of hits.

    Empty where the tool is no search or the query has no words.
    """
    query = arguments.get("query")
    terms = sorted(set(tokenize(query))) if spec.family == SEARCH_FAMILY and isinstance(query, str) else []
    rest = {name: value for name, value in arguments.items() if name not in ("query", "top_k")}
    return f"~{_digest(spec.name, {**_fold(rest), 'terms': terms}, scope_key)}" if terms else ""


def _digest(name: str, arguments: Mapping[str, Any], scope_key: str) -> str:
    canonical = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(f"{name}\n{canonical}\n{scope_key}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def _fold(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    if isinstance(value, Mapping):
        return {key: _fold(item) for key, item in value.items()}
    return [_fold(item) for item in value] if isinstance(value, list | tuple) else value
