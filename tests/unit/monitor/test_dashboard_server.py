"""The real server on a real socket: bytes that are no HTTP, and how it ends."""

import errno
import http.client
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dashboard_calls import written

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.dashboard.server import DashboardServer
from rag_sourcebias.monitor.dashboard.source import DashboardSource

TOKEN = "a-token-of-enough-length"


@contextmanager
def running(server: DashboardServer) -> Iterator[DashboardServer]:
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    path = tmp_path_factory.mktemp("served") / "log.db"
    written(path, 60)
    with running(DashboardServer(DashboardSource(path))) as found:
        yield found


def get(
    server: DashboardServer, target: str, *, method: str = "GET", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def raw(server: DashboardServer, data: bytes) -> bytes:
    """Send bytes, say that there are no more, and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while part := connection.recv(65_536):
                found += part
        except OSError as error:  # it closed before it had read everything
            if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                raise
            return b""
        return found


def test_it_answers(server: DashboardServer) -> None:
    assert server.port > 0
    assert server.url == f"http://127.0.0.1:{server.port}/"
    assert get(server, "/healthz") == (200, b'{"status":"ok"}')
    assert get(server, "/api/overview")[0] == 200
    assert get(server, "/healthz", Host="rebound.example")[0] == 421


def test_head(server: DashboardServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("HEAD", "/api/alarms")
    answer = connection.getresponse()
    length = len(get(server, "/api/alarms")[1])
    assert (answer.status, answer.getheader("content-length")) == (200, f"{length}")
    assert answer.read() == b""
    connection.close()
    assert get(server, "/nothing", method="HEAD") == (404, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nzz",
        b"POST /api/overview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nabc",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
    ],
)
def test_bytes_that_are_no_good_request(server: DashboardServer, data: bytes) -> None:
    answer = raw(server, data)
    assert answer[:9] in (b"", b"HTTP/1.1 ")
    if answer and b"Upgrade" not in data:
        assert answer[9:10] == b"4"
    assert b"Traceback" not in answer
    assert get(server, "/healthz")[0] == 200


def test_tokens_stand_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    source = DashboardSource(tmp_path / "log.db")
    with running(DashboardServer(source, token=TOKEN)) as server:
        assert get(server, f"/?token={TOKEN}")[0] == 303
        assert get(server, "/?token=another-one-that-is-wrong")[0] == 401
        assert get(server, "/api/alarms")[0] == 401
        assert get(server, "/api/alarms", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert "token=" not in caplog.text
    assert TOKEN not in caplog.text


def test_every_address_takes_a_token_and_any_name(tmp_path: Path) -> None:
    source = DashboardSource(tmp_path / "log.db")
    with running(DashboardServer(source, host="0.0.0.0", token=TOKEN)) as server:
        assert get(server, "/healthz", Host="monitor.example")[0] == 200
        assert get(server, "/api/alarms", Host="monitor.example")[0] == 401
    with running(
        DashboardServer(source, host="0.0.0.0", token=TOKEN, hosts=("monitor.example",))
    ) as server:
        assert get(server, "/healthz", Host="monitor.example")[0] == 200
        assert get(server, "/healthz", Host="evil.example")[0] == 421


def test_a_port_that_is_taken(server: DashboardServer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"cannot listen at port {server.port} of 127.0.0.1"):
        DashboardServer(DashboardSource(tmp_path / "log.db"), port=server.port)


def test_a_host_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot listen at port 0 of a"):
        DashboardServer(DashboardSource(tmp_path / "log.db"), host="a..b", token=TOKEN)


def test_stopped_before_it_ran(tmp_path: Path) -> None:
    server = DashboardServer(DashboardSource(tmp_path / "log.db"))
    server.stop()
    server.run()
    with pytest.raises(OSError, match="refused"):
        get(server, "/healthz")
