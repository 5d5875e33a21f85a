"""An HTTP endpoint for alarms on loopback that does what a script says, request by request."""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from loopback import Handler, Server, running


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class AlarmServer(Server):
    """``script`` holds a status, "hang" (until the end) or "garbage"; the last one stays."""

    path = "/hooks/path-token?room=query-token"

    def __init__(self, script: Sequence[int | str]) -> None:
        super().__init__(_Handler)
        self.script = list(script)
        self.received: list[Received] = []
        self.hanging = threading.Event()

    def take(self, received: Received) -> int | str:
        with self.lock:
            self.received.append(received)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(Handler):
    server: AlarmServer
    protocol_version = "HTTP/1.0"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        step = self.server.take(Received(self.path, headers, body))
        if step == "garbage":
            self.wfile.write(b"\x00 this is not HTTP\r\n\r\n")
            return
        if step == "hang":
            self.server.hanging.set()
            self.server.closing.wait(60)
            step = 200
        self.send_response(int(step))
        self.send_header("content-length", "0")
        self.send_header("location", "/elsewhere")
        self.end_headers()


def alarm_server(*script: int | str) -> AbstractContextManager[AlarmServer]:
    return running(AlarmServer(script))
