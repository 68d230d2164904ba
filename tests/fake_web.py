"""A small web on loopback: made-up name servers and sites, over real HTTP, with the production rules about addresses.

    with FakeWeb({"site.example": {"/": page("<p>Hello")}}) as web, web.wired(monkeypatch):
        build_web_fetch(WebFetchOptions(network=web.network))

Every connection, to whatever address, ends at one server here; `web.connected` has the addresses that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any, Self

import pytest
from httpcore import ConnectError
from httpcore._backends.auto import AutoBackend

from graphrag_agent.tools._url_guard import WEB_PORTS, IPAddress, is_public
from tests.loopback import LoopbackServer, Reply, Request

PUBLIC_IP = "93.184.215.14"


@dataclass(frozen=True)
class Answer:
    """What a site sends; a body in pieces has no length and goes on until its reader has left."""

    body: bytes | Callable[[], Iterable[bytes]] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def page(html: str | bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> Answer:
    body = html if isinstance(html, bytes) else html.encode()
    return Answer(
        body, headers={"content-type": kind, **{name.replace("_", "-"): text for name, text in headers.items()}}
    )


def redirect(location: str, status: int = 302) -> Answer:
    return Answer(status=status, headers={"location": location})


class StubNetwork:
    """The public internet with name servers of our own; a name's answers come one after another, the last for ever."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self.ports = WEB_PORTS
        self.names = names
        self.asked: list[str] = []

    def admits(self, address: IPAddress) -> bool:
        return is_public(address)

    async def resolve(self, host: str) -> list[IPAddress]:
        answers = self.names.get(host, [[]])
        answer = answers[min(self.asked.count(host), len(answers) - 1)]
        self.asked.append(host)
        return [ip_address(text) for text in answer]


class FakeWeb(LoopbackServer):
    def __init__(
        self, sites: Mapping[str, Mapping[str, Answer]], names: Mapping[str, Sequence[Sequence[str]]] | None = None
    ) -> None:
        super().__init__()
        self.sites = {host: {"/robots.txt": Answer(status=404), **pages} for host, pages in sites.items()}
        self.network = StubNetwork({**{host: [[PUBLIC_IP]] for host in sites}, **(names or {})})
        self.connected: list[tuple[str, int]] = []
        self.dead_addresses: set[str] = set()
        self.requests: list[tuple[str, dict[str, str]]] = []
        """URL and header fields of each request."""
        self.sent_bytes = 0

    @property
    def urls(self) -> list[str]:
        """Of the requests, robots.txt apart."""
        return [url for url, _ in self.requests if not url.endswith("/robots.txt")]

    def answer(self, request: Request) -> Reply:
        host = request.headers["host"]
        self.requests.append((f"http://{host}{request.path}", request.headers))
        found = self.sites.get(host, {}).get(request.path, Answer(status=404))
        return Reply(
            found.status, partial(self._counted, found.body) if callable(found.body) else found.body, found.headers
        )

    def _counted(self, pieces: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
        for piece in pieces():
            yield piece
            self.sent_bytes += len(piece)

    @contextmanager
    def wired(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Self]:
        """All connections end here."""
        connect = AutoBackend.connect_tcp

        async def connect_here(backend: AutoBackend, host: str, port: int, **options: Any) -> Any:
            if host in self.dead_addresses:
                raise ConnectError("no route")
            self.connected.append((host, port))
            return await connect(backend, "127.0.0.1", self._server.server_port, **options)

        with monkeypatch.context() as patch:
            patch.setattr(AutoBackend, "connect_tcp", connect_here)
            yield self
