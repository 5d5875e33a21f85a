"""An HTTP endpoint for alarms on loopback that does what a script says, request by request."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class AlarmServer(ThreadingHTTPServer):
    """``script`` holds a status, "hang" (until ``released``) or "garbage"; the last one stays."""

    daemon_threads = True

    def __init__(self, script: Sequence[int | str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.received: list[Received] = []
        self.hanging, self.released = threading.Event(), threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/path-token?room=query-token"

    def take(self, received: Received) -> int | str:
        with self.lock:
            self.received.append(received)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: AlarmServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        step = self.server.take(Received(self.path, headers, body))
        if step == "garbage":
            self.wfile.write(b"\x00 this is not HTTP\r\n\r\n")
            return
        if step == "hang":
            self.server.hanging.set()
            self.server.released.wait(60)
            step = 200
        self.send_response(int(step))
        self.send_header("content-length", "0")
        self.send_header("location", "/elsewhere")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def alarm_server(*script: int | str) -> Iterator[AlarmServer]:
    server = AlarmServer(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
