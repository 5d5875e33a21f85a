"""Connections of the dashboard: how many, and how long one may wait without asking anything.

Whoever reaches the port can open connections without a token. So that none stands in the way of
others, the one that has waited longest makes room for a newcomer: a client that asks as soon as it
is connected is answered, whatever the others do.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from typing import Any, NamedTuple, Protocol, cast

from rag_sourcebias.errors import DataError

__all__ = ["BACKLOG", "Droppable", "Limits", "Table"]

BACKLOG = 64  # taken from the system at once: each has a descriptor before it can be refused


class Limits(NamedTuple):
    """Limits of what clients may hold.

    Parameters
    ----------
    connections : int
        At once, at least 2; fewer where the process may open fewer than four times as many files.
    per_address : int
        At once from one address (IPv6: from one network of 64 bits), at least 1. All readers
        behind a proxy have the proxy's. Beyond it the address loses the connection that has waited
        longest; it is refused another only while every one of them is being answered.
    seconds : float
        Time in which a client has to send the head of a request, or to read on, above 0.
    """

    connections: int = 256
    per_address: int = 128
    seconds: float = 10.0

    def checked(self) -> Limits:
        """Return the limits that hold in this process.

        Raises
        ------
        DataError
            If a limit is out of range.
        """
        if self.connections < 2:
            raise DataError(f"connections must be at least 2, got {self.connections}")
        if self.per_address < 1:
            raise DataError(f"connections per address must be at least 1, got {self.per_address}")
        if not 0 < self.seconds < math.inf:
            raise DataError(f"seconds must be above 0 and finite, got {self.seconds}")
        return self._replace(connections=min(self.connections, max(_open_files() // 4, 2)))


class Droppable(Protocol):
    """A connection as the table sees it."""

    def drop(self) -> None:
        """Close now, though something may be unsent."""


class Table:
    """Open connections; those that wait in the order in which they began to.

    Parameters
    ----------
    limits : Limits
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._address: dict[Droppable, str] = {}
        self._waiting: dict[Droppable, None] = {}
        self._of_address: Counter[str] = Counter()

    def admits(self, connection: Droppable, peer: Any) -> bool:  # noqa: ANN401
        """Enter a connection, for which another may have to go; False if there is no room."""
        address = _network(peer)
        if self._of_address[address] >= self.limits.per_address and not self._drops_of(address):
            return False
        if len(self._address) >= self.limits.connections:
            (most, _), *_ = self._of_address.most_common(1)
            if not (self._drops_of(most) or self._drops_of(None)):
                return False
        self._address[connection] = address
        self._of_address[address] += 1
        return True

    def waits(self, connection: Droppable) -> None:
        """Note that it is the client's turn, if it was not."""
        if connection in self._address:
            self._waiting[connection] = None

    def answered(self, connection: Droppable) -> None:
        """Note that it is ours."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Droppable) -> None:
        """Forget a connection, if it is known."""
        self._waiting.pop(connection, None)
        address = self._address.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def _drops_of(self, address: str | None) -> bool:
        """Close what has waited longest, of an address or (None) of all; False if nothing waits."""
        for connection in self._waiting:
            if address is None or self._address[connection] == address:
                self.remove(connection)
                connection.drop()
                return True
        return False


def _network(peer: Any) -> str:  # noqa: ANN401 - what a socket says of its other end
    """Return the address, of IPv6 the network that is commonly given to one client."""
    if not isinstance(peer, tuple):
        return ""
    host = ipaddress.ip_address(cast("str", peer[0]).partition("%")[0])
    if isinstance(host, ipaddress.IPv6Address):
        host = host.ipv4_mapped or ipaddress.ip_address(int(host) >> 64 << 64)
    return str(host)


def _open_files() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where sockets do not count
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (1 << 30) if soft == resource.RLIM_INFINITY else soft
