"""Where a Qdrant server is, and how its collections are made and asked. Nothing here opens a connection."""

from __future__ import annotations

import base64
import os
import re
import warnings
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from graphrag_agent.errors import SettingsError

DEFAULT_PORT = 6333
_SCHEMES = ("http://", "https://")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class QdrantServer:
    """A Qdrant server or cluster as the place of a knowledge base: `KnowledgeBase.open(QdrantServer("http://..."))`.

    Shards, replicas and write consistency count when the collections are made, the rest with every request. Raises
    SettingsError for a value that can't be.
    """

    url: str = field(repr=False)
    """Port 6333 where it names none. A user and password in it go to a proxy in front of the server."""
    api_key: str | None = field(default=None, repr=False)
    """None: QDRANT_API_KEY."""
    prefix: str = "graphrag"
    """The collections are PREFIX_chunks and PREFIX_documents; another prefix is another knowledge base."""
    shards: int = 1
    replicas: int = 1
    write_consistency: int = 1
    """Replicas that must have a write before it counts."""
    write_ordering: Literal["weak", "medium", "strong"] = "weak"
    timeout_seconds: float = 10.0
    """Seconds that a read may take with all its tries."""

    def __post_init__(self) -> None:
        parse_address(self)
        if not _NAME.fullmatch(self.prefix):
            raise SettingsError(f"prefix={self.prefix!r}: up to 64 letters, digits, '_', '-' and '.'")
        if min(self.shards, self.replicas, self.write_consistency) < 1 or not self.timeout_seconds > 0:
            raise SettingsError("shards, replicas and write_consistency are at least 1, timeout_seconds above 0")
        if self.write_consistency > self.replicas:
            raise SettingsError(f"write_consistency={self.write_consistency} is more than replicas={self.replicas}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's URL, safe to show, and beside it what must never be shown."""

    url: str
    headers: dict[str, str] = field(repr=False)


def is_server(location: str | Path) -> bool:
    """Whether the location of a knowledge base is a URL rather than a folder."""
    return str(location).strip().lower().startswith(_SCHEMES)


def parse_address(server: QdrantServer) -> ServerAddress:
    """Where to send requests, and with which headers.

    Raises SettingsError, without the password, for what is no address. A key that would travel unencrypted to another
    machine gets a warning.
    """
    parts, port = _split(server.url)
    netloc, path = parts.netloc.rpartition("@")[2], parts.path.rstrip("/")
    url = f"{parts.scheme}://{netloc if port else f'{netloc}:{DEFAULT_PORT}'}{path}"
    if parts.query or parts.fragment:
        raise SettingsError(f"knowledge base {url!r}: leave out what follows '?' or '#'; a key goes to QDRANT_API_KEY")
    headers = {}
    if key := server.api_key or os.environ.get("QDRANT_API_KEY"):
        headers["api-key"] = key
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    if headers and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        warnings.warn(f"the key for {url} travels unencrypted: use https", UserWarning, stacklevel=2)
    return ServerAddress(url, headers)


def _split(location: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(location.strip())
        if parts.hostname and parts.scheme in ("http", "https") and "\\" not in parts.netloc:
            return parts, parts.port
    except ValueError:  # its text would repeat the password
        pass
    raise SettingsError("the knowledge base's URL has no host or a bad port: write it like https://host:6333")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
