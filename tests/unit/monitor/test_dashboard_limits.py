"""Clients without a token that hold connections do not keep out one that has it."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.dashboard import server as limits_module
from rag_sourcebias.monitor.dashboard.server import (
    BACKLOG,
    DashboardServer,
    Limits,
    Table,
    create_app,
)
from rag_sourcebias.monitor.dashboard.source import DashboardSource

TOKEN = "a-token-of-enough-length"
HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
DESCRIPTORS = Path("/proc/self/fd")
on_linux = pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors in /proc")


@contextmanager
def running(run: Callable[[], object], stop: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def dashboard(path: Path, limits: Limits = Limits()) -> Iterator[int]:  # noqa: B008
    server = DashboardServer(DashboardSource(path / "log.db"), token=TOKEN, limits=limits)
    with running(server.run, server.stop):
        yield server.port


@contextmanager
def as_before(path: Path) -> Iterator[int]:
    """Serve with nothing but uvicorn's own limit."""
    app = create_app(DashboardSource(path / "log.db"), token=TOKEN)
    config = uvicorn.Config(
        app, http="h11", ws="none", limit_concurrency=256, log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = server.force_exit = True

    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        running(lambda: server.run(sockets=[listening]), stop),
    ):
        yield listening.getsockname()[1]


def connect(port: int, data: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 60, source_address=(address, 0))
    if data:
        connection.sendall(data)
    return connection


def status(port: int, address: str = "127.0.0.1") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, 60, source_address=(address, 0))
    try:
        connection.request("GET", "/api/alarms", headers={"Authorization": f"Bearer {TOKEN}"})
        return connection.getresponse().status
    finally:
        connection.close()


def is_closed(connection: socket.socket, *, within: float = 60) -> bool:
    connection.settimeout(within)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


class Attack:
    """Connections that ask nothing, and how many descriptors the server had for them at most."""

    def __init__(self, port: int, data: bytes, addresses: tuple[str, ...]) -> None:
        self._port, self._data, self._addresses = port, data, addresses
        self._stack, self.most = ExitStack(), 0

    def count(self, *, clients: int = 300) -> None:
        self.most = max(self.most, descriptors() - self._before - clients)

    def __enter__(self) -> Attack:
        self._before = descriptors()
        with ExitStack() as opened:
            for i in range(300):
                address = self._addresses[i % len(self._addresses)]
                opened.enter_context(connect(self._port, self._data, address))
                self.count(clients=i + 1)
            self._stack = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def descriptors() -> int:
    return len(list(DESCRIPTORS.iterdir()))


@on_linux
@pytest.mark.parametrize("data", [b"", HALF], ids=["idle", "half a head"])
def test_a_reader_is_answered_while_one_address_holds_300_connections(
    tmp_path: Path, data: bytes
) -> None:
    with dashboard(tmp_path) as port, Attack(port, data, ("127.0.0.1",)) as attack:
        assert [status(port, a) for a in ("127.0.0.1", "127.0.0.2")] == [200, 200]
        attack.count()
        assert attack.most <= Limits().per_address + 2 * BACKLOG
    with as_before(tmp_path) as port, Attack(port, data, ("127.0.0.1",)) as attack:
        assert status(port) == 503
        attack.count()
        assert attack.most > Limits().per_address + 2 * BACKLOG


@on_linux
def test_a_reader_is_answered_while_many_addresses_hold_connections(tmp_path: Path) -> None:
    addresses = tuple(f"127.0.0.{i}" for i in range(1, 101))
    limits = Limits(connections=64, per_address=32)
    with dashboard(tmp_path, limits) as port, Attack(port, HALF, addresses) as attack:
        assert [status(port, a) for a in ("127.0.0.1", "127.0.1.1")] == [200, 200]
        attack.count()
        assert attack.most <= 64 + 2 * BACKLOG


def test_who_sends_bit_by_bit_is_closed(tmp_path: Path) -> None:
    body = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n"
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with dashboard(tmp_path, Limits(seconds=0.5)) as port:
        for begun in (b"", HALF, body, whole, whole + HALF):
            with connect(port, begun) as connection:
                late = time.monotonic() + 60
                while not is_closed(connection, within=0.05):
                    assert time.monotonic() < late
                    try:
                        connection.send(b"x")
                    except ConnectionError:
                        break
    with as_before(tmp_path) as port, connect(port, HALF) as connection:
        for _ in range(30):  # three times as long
            assert not is_closed(connection, within=0.05)
            connection.send(b"x")


def test_who_reads_nothing_is_closed(tmp_path: Path) -> None:
    unread = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 400
    with (
        dashboard(tmp_path, Limits(seconds=0.5)) as port,
        socket.socket() as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port))
        with pytest.raises(ConnectionError):
            connection.sendall(unread * 1_000)


def test_what_is_being_answered_is_not_closed_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, entered = threading.Event(), threading.Semaphore(0)

    def slow(self: DashboardSource, parameters: object) -> dict[str, Any]:
        entered.release()
        assert release.wait(60)
        return {"alarms": []}

    monkeypatch.setattr(DashboardSource, "alarms", slow)
    asked = f"GET /api/alarms HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    # As behind a proxy: all have one address; longer than a client may take for its part.
    with (
        dashboard(tmp_path, Limits(per_address=2, seconds=1)) as port,
        connect(port, asked.encode()) as first,
        connect(port, asked.encode()) as second,
    ):
        assert all(entered.acquire(timeout=60) for _ in range(2))
        with connect(port, asked.encode()) as third:
            assert is_closed(third)
        time.sleep(1.3)
        release.set()
        for connection in (first, second):
            connection.settimeout(60)
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert status(port) == 200


class Peer:
    def __init__(self) -> None:
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


def test_an_address_with_many_connections_loses_one_before_others_do() -> None:
    table = Table(Limits(connections=4, per_address=3))
    peers = [Peer() for _ in range(5)]
    hosts = ("10.0.0.2", "10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1")
    for peer, host in zip(peers, hosts, strict=False):
        assert table.admits(peer, (host, 1))
        table.waits(peer)
    assert table.admits(peers[4], ("10.0.0.3", 1))
    assert [peer.dropped for peer in peers] == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("hosts", "dropped"),
    [
        (("2001:db8::1", "2001:db8::ffff:1"), True),
        (("2001:db8:0:1::1", "2001:db8:0:2::1"), False),
        (("fe80::1%eth0", "fe80::2%eth0"), True),
        (("10.0.0.1", "10.0.0.2"), False),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(hosts: tuple[str, str], dropped: bool) -> None:
    table, first = Table(Limits(per_address=1)), Peer()
    assert table.admits(first, (hosts[0], 1, 0, 0))
    table.waits(first)
    assert table.admits(Peer(), (hosts[1], 1, 0, 0))
    assert first.dropped is dropped


def test_a_quarter_of_the_files_a_process_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "_open_files", lambda: 400)
    assert Limits().checked().connections == 100


@pytest.mark.parametrize(
    "limits", [Limits(connections=1), Limits(per_address=0), Limits(seconds=0)]
)
def test_limits_out_of_range(tmp_path: Path, limits: Limits) -> None:
    with pytest.raises(DataError, match="got"):
        DashboardServer(DashboardSource(tmp_path / "log.db"), limits=limits)
