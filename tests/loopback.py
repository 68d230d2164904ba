"""A small HTTP server on loopback, for fakes of real servers: one reply a request, or none.

A fake is a subclass with `answer`. Connections are kept alive, and a request whose client leaves before all of it was
sent is none, as with real servers.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    """With what follows "?"."""
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes


@dataclass(frozen=True)
class Reply:
    """Status 0 closes the connection without a reply; `is_cut` sends half of the body and closes it."""

    status: int = 200
    body: Any = None
    """Bytes as they are; a function that gives pieces, sent without a length until the client leaves; else JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """How long it takes, unless the server stops before."""
    is_cut: bool = False


class LoopbackHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the pieces of a second answer wait for each other

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:  # the client has left in the middle of a request
            self.close_connection = True

    def request_here(self) -> Request:
        """Raises ConnectionResetError where its client has left, as one does that is cancelled, before it was whole."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        size = int(headers.get("content-length", 0))
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionResetError(f"{len(body)} of {size} bytes came")
        return Request(self.command, self.path, headers, body)

    def _reply(self) -> None:
        fake: LoopbackServer = self.server.fake  # type: ignore[attr-defined]
        reply = fake.answer(self.request_here())
        if reply.seconds:
            fake.stopping.wait(reply.seconds)
        if reply.status == 0 or fake.stopping.is_set():
            self.close_connection = True
            return
        try:
            if callable(reply.body):
                self._send_pieces(reply)
            else:
                self.send(reply)
        except OSError:  # the client has left
            self.close_connection = True

    def send(self, reply: Reply) -> None:
        is_json = not isinstance(reply.body, bytes)
        data = json.dumps(reply.body).encode() if is_json else reply.body
        kind = {"content-type": "application/json"} if is_json else {}
        self.begin(reply.status, {**kind, "content-length": str(len(data)), **reply.headers})
        self.wfile.write(data[: len(data) // 2] if reply.is_cut else data)
        if reply.is_cut:
            self.close_connection = True

    def _send_pieces(self, reply: Reply) -> None:
        fake: LoopbackServer = self.server.fake  # type: ignore[attr-defined]
        self.close_connection = True  # nothing else tells where it ends
        self.begin(reply.status, reply.headers)
        for piece in reply.body():
            if fake.stopping.is_set():
                return
            self.wfile.write(piece)

    def begin(self, status: int, fields: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value.encode().decode("latin-1"))  # the bytes of UTF-8, as sites send them
        self.end_headers()

    do_GET = do_POST = do_PUT = do_DELETE = _reply  # noqa: N815  # the base class's names

    def log_message(self, *_: object) -> None:
        pass


class LoopbackServer:
    tls: ssl.SSLContext | None = None
    """Speak TLS; to be set before it starts."""
    handler: type[LoopbackHandler] = LoopbackHandler

    def __init__(self) -> None:
        self.stopping = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
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

    def answer(self, request: Request) -> Reply:
        raise NotImplementedError
