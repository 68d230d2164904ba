"""Bearer tokens from a file, and whom each stands for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from graphrag_agent.errors import SettingsError
from graphrag_agent.identity import DEFAULT_TENANT, Principal

Authenticate = Callable[[str], Awaitable[Principal | None] | Principal | None]
"""The principal of a bearer token; None for a token that isn't known."""

MIN_TOKEN_CHARACTERS = 16
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: str = Field(default="", max_length=1_000)
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    tenant: _Name = DEFAULT_TENANT
    user: _Name
    groups: tuple[_Name, ...] = ()

    @model_validator(mode="after")
    def _has_one_token(self) -> _Entry:
        if bool(self.token) == bool(self.sha256):
            raise ValueError("give either token or sha256")
        if self.token and len(self.token) < MIN_TOKEN_CHARACTERS:
            raise ValueError(f"a token has at least {MIN_TOKEN_CHARACTERS} characters")
        return self


class BearerTokens:
    """Knows the principals of some tokens. Called with a token, as `Authenticate`."""

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        self._principals = {digest_of(token): principal for token, principal in principals.items()}

    @classmethod
    def load(cls, path: str | Path) -> BearerTokens:
        """The tokens of a JSON file: a list of objects with `token` or its `sha256`, `user`, and tenant and groups.

        Raises SettingsError that names the file and the entry, never the token.
        """
        try:
            entries = TypeAdapter(list[_Entry]).validate_python(json.loads(Path(path).read_text("utf-8")))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise SettingsError(
                f"tokens={str(path)!r} can't be read: {type(error).__name__}; see docs/http.md"
            ) from None
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise SettingsError(f"tokens={str(path)!r}: entry {place}: {first['msg']}; see docs/http.md") from None
        tokens = cls({})
        for entry in entries:
            digest = entry.sha256 or digest_of(entry.token)
            if digest in tokens._principals:
                raise SettingsError(f"tokens={str(path)!r}: the token of user {entry.user!r} is there twice")
            tokens._principals[digest] = Principal(entry.tenant, entry.user, entry.groups)
        if not entries:
            raise SettingsError(f"tokens={str(path)!r} has no entry; nobody could use the server")
        return tokens

    def __call__(self, token: str) -> Principal | None:
        """The principal of the token. Looked up by its hash, so that timing tells nothing of the tokens."""
        return self._principals.get(digest_of(token))


def digest_of(token: str) -> str:
    """SHA-256 of the token, in hex."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def bearer_of(header: str | None) -> str | None:
    """The token of an Authorization header."""
    scheme, _, token = (header or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
