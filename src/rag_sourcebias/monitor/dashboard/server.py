"""Serve a dashboard on a port of this machine."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.io.addresses import is_loopback
from rag_sourcebias.monitor.dashboard.access import LOOPBACK_HOSTS
from rag_sourcebias.monitor.dashboard.app import create_app
from rag_sourcebias.monitor.dashboard.limits import BACKLOG, Limits, Table
from rag_sourcebias.monitor.dashboard.source import DashboardSource

__all__ = ["DashboardServer", "serve"]

_WILDCARDS = ("0.0.0.0", "::")
_LONGEST_HEAD = 32_768
_GRACE_SECONDS = 3
_LIMITS = Limits()


class DashboardServer:
    """A dashboard that listens.

    Parameters
    ----------
    source : DashboardSource
    host : str
        Address, or name of one, to listen at.
    port : int
        0 takes any that is free.
    token : str or None
        Needed for every address that is not of this machine alone.
    hosts : tuple of str
        Further names that requests may ask for, such as that of a proxy. At an address that
        stands for all (0.0.0.0, ::) requests may ask for any name unless some are given here: who
        is led there by another name has no cookie.
    limits : Limits
        Of connections.

    Attributes
    ----------
    port : int
        The real one.

    Raises
    ------
    DataError
        If a token is needed or unusable, the address cannot be listened at, or a limit is out of
        range.
    MissingExtraError
        If starlette or uvicorn is not installed.
    """

    def __init__(
        self,
        source: DashboardSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        hosts: tuple[str, ...] = (),
        limits: Limits = _LIMITS,
    ) -> None:
        try:
            import uvicorn

            from rag_sourcebias.monitor.dashboard.connection import Connection
        except ModuleNotFoundError as error:
            if error.name not in ("uvicorn", "h11", "click"):
                raise
            raise MissingExtraError(
                package=error.name, extra="monitor", feature="the dashboard"
            ) from error
        host = host.strip("[]")
        if not is_loopback(host) and token is None:
            raise DataError(
                f"a dashboard at {host or 'every address'} can be reached from other machines: "
                "give a token, or listen at 127.0.0.1"
            )
        names = (*LOOPBACK_HOSTS, *(() if host in ("", *_WILDCARDS) else (host,)), *hosts)
        if host in ("", *_WILDCARDS) and not hosts:
            names = ("*",)
        protocol: Any = partial(Connection, Table(limits.checked()))
        app = create_app(source, token=token, hosts=names)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._server: Any = uvicorn.Server(
            uvicorn.Config(
                app,
                http=protocol,
                backlog=BACKLOG,
                h11_max_incomplete_event_size=_LONGEST_HEAD,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,  # lines would hold the token of /?token=
                log_level=logging.WARNING,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    @property
    def url(self) -> str:
        """Where a browser of this machine finds it."""
        host = "127.0.0.1" if self.host in ("", *_WILDCARDS) else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def run(self) -> None:
        """Answer requests until :meth:`stop`, or until the process is told to end."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Have :meth:`run` return soon; may be called from any thread, and before it."""
        self._server.should_exit = True

    def close(self) -> None:
        """Stop listening without having run."""
        self._socket.close()


def serve(
    source: DashboardSource,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    limits: Limits = _LIMITS,
    on_ready: Callable[[DashboardServer], object] | None = None,
) -> None:
    """Serve a dashboard until the process is told to end (SIGINT, SIGTERM).

    Parameters
    ----------
    source, host, port, token, hosts, limits
        As of :class:`DashboardServer`.
    on_ready : callable or None
        Told of the server when it listens.

    Raises
    ------
    DataError, MissingExtraError
        As of :class:`DashboardServer`.
    """
    server = DashboardServer(source, host=host, port=port, token=token, hosts=hosts, limits=limits)
    if on_ready is not None:
        on_ready(server)
    server.run()


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise DataError(f"port must be 0 (any that is free) to 65535, got {port}")
    try:
        family, *_, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server((address[0], port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise DataError(
            f"cannot listen at port {port} of {host or 'every address'} ({error}); "
            "give another host or port"
        ) from error
