"""A local web server whose behaviour each test scripts."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class ScriptedServer(ThreadingHTTPServer):
    """Serves ``files`` and redirects from ``places``.

    Each request takes the next word of ``script`` ("ok" when it is used up).

    ok        the file, honouring ranges
    whole     the file, ignoring ranges
    break     announces all of what was asked for, sends half of it and hangs up
    cut       sends half of the file without saying how long it is
    hang-up   closes the connection without any answer
    <number>  answers with that status
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ScriptedHandler)
        self.files: dict[str, bytes] = {}
        self.script: list[str] = []
        self.places: dict[str, str] = {}
        self.ranges: list[str | None] = []
        self.authorizations: list[str | None] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"


class ScriptedHandler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers.get("Range")
        server.ranges.append(wanted)
        server.authorizations.append(self.headers.get("Authorization"))
        action = server.script.pop(0) if server.script else "ok"
        body = server.files.get(self.path)
        self.close_connection = True
        if action == "hang-up":
            return
        if self.path in server.places:
            self.send_response(302)
            self.send_header("Location", server.places[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if action.isdigit() or body is None:
            self.send_response(int(action) if action.isdigit() else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
        start = int(match[1]) if match and action != "whole" else 0
        if start >= len(body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        part = body[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if action != "cut":
            self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part[: len(part) // 2] if action in ("break", "cut") else part)


@contextmanager
def serving(server: ScriptedServer) -> Iterator[ScriptedServer]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving(ScriptedServer()) as running:
        yield running


@pytest.fixture
def tls_server() -> Iterator[Callable[[ssl.SSLContext], ScriptedServer]]:
    """Return what serves with a certificate until the test ends."""
    with ExitStack() as stack:

        def start(context: ssl.SSLContext) -> ScriptedServer:
            server = ScriptedServer()
            server.scheme = "https"
            server.socket = context.wrap_socket(server.socket, server_side=True)
            return stack.enter_context(serving(server))

        yield start
