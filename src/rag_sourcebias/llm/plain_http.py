"""Connections to a server of one's own: HTTP without TLS and proxies, at a quarter of the cost.

A local server may answer hundreds of requests in a second. Then the time that a general HTTP
library spends on each (pool, events, models of requests and answers) is what limits the rate.
"""

from __future__ import annotations

import http.client
import select
import weakref
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["PlainAnswer", "PlainHttp"]


class PlainAnswer(NamedTuple):
    """What came back.

    Parameters
    ----------
    status : int
    headers : list of (str, str)
    content : bytes
    """

    status: int
    headers: list[tuple[str, str]]
    content: bytes


class PlainHttp:
    """Sends POST requests over connections that are kept open, from any thread.

    Parameters
    ----------
    base_url : str
        ``http://…``; see :meth:`suits`.
    headers : mapping of str to str
    timeout : float
        Seconds without a byte.
    """

    def __init__(self, base_url: str, *, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._path = parts.path.rstrip("/")
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._timeout = timeout
        # Appending to a list and popping from it is safe between threads.
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    @staticmethod
    def suits(base_url: str) -> bool:
        """Whether an address is of plain HTTP and no proxy is set."""
        parts = urlsplit(base_url)
        direct = not {"http", "all"} & set(getproxies()) or proxy_bypass(parts.hostname or "")
        return parts.scheme == "http" and bool(direct)

    def post(self, path: str, content: bytes) -> PlainAnswer:
        """Send a body and return the whole answer.

        Raises
        ------
        TimeoutError
        OSError, http.client.HTTPException
            If the server cannot be reached or breaks off.
        """
        connection = self._connection()
        whole = False
        try:
            connection.request("POST", self._path + path, content, self._headers)
            with connection.getresponse() as response:
                answer = PlainAnswer(response.status, response.getheaders(), response.read())
            whole = True
        finally:
            # Closed also when the thread is interrupted, or the connection would answer the next
            # request with what this one asked.
            if whole and connection.sock is not None:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection that is open, as far as can be told, or a new one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            # Between requests there is nothing to read but that the server has closed.
            if connection.sock is not None and not _readable(connection.sock.fileno()):
                return connection
            connection.close()


def _readable(descriptor: int) -> bool:
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
