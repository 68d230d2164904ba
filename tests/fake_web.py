"""A small web on loopback: made-up name servers and sites, over real HTTP, with the production rules about addresses.

    with FakeWeb({"site.example": {"/": page("<p>Hello")}}) as web, web.wired(monkeypatch):
        build_web_fetch(WebFetchOptions(network=web.network))

Every connection, to whatever address, ends at one server here; `web.connected` has the addresses that were asked for.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Self

import pytest
from httpcore import ConnectError
from httpcore._backends.auto import AutoBackend

from graphrag_agent.tools._url_guard import WEB_PORTS, IPAddress, is_public

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


class FakeWeb:
    def __init__(
        self, sites: Mapping[str, Mapping[str, Answer]], names: Mapping[str, Sequence[Sequence[str]]] | None = None
    ) -> None:
        self.sites = {host: {"/robots.txt": Answer(status=404), **pages} for host, pages in sites.items()}
        self.network = StubNetwork({**{host: [[PUBLIC_IP]] for host in sites}, **(names or {})})
        self.connected: list[tuple[str, int]] = []
        self.dead_addresses: set[str] = set()
        self.requests: list[tuple[str, dict[str, str]]] = []
        """URL and header fields of each request."""
        self.sent_bytes = 0
        self.tls: ssl.SSLContext | None = None
        """Speak TLS; to be set before it starts."""
        self.stopping = threading.Event()

    @property
    def urls(self) -> list[str]:
        """Of the requests, robots.txt apart."""
        return [url for url, _ in self.requests if not url.endswith("/robots.txt")]

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.fake = self  # type: ignore[attr-defined]
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

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


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        fake: FakeWeb = self.server.fake  # type: ignore[attr-defined]
        headers = {name.lower(): value for name, value in self.headers.items()}
        fake.requests.append((f"http://{headers['host']}{self.path}", headers))
        answer = fake.sites.get(headers["host"], {}).get(self.path, Answer(status=404))
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value.encode().decode("latin-1"))  # the bytes of UTF-8, as sites send them
        if isinstance(answer.body, bytes):
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        try:
            for piece in [answer.body] if isinstance(answer.body, bytes) else answer.body():
                if fake.stopping.is_set():
                    return
                self.wfile.write(piece)
                fake.sent_bytes += len(piece)
        except OSError:  # the client has left
            pass

    def log_message(self, *_: object) -> None:
        pass
