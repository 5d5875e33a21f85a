"""A connection of the dashboard within its limits; imports uvicorn, which comes with an extra."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from rag_sourcebias.monitor.dashboard.server import Table


class Connection(H11Protocol):
    """One that waits (for a request, for the client to read) or is being answered.

    Parameters
    ----------
    table : Table
        Of all connections of the server.
    options
        As uvicorn gives them.
    """

    def __init__(self, table: Table, **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self._table = table
        self._timer: asyncio.TimerHandle | None = None
        self._unread = False  # more of an answer than the transport keeps

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it where there is no room."""
        if not self._table.admits(self, transport.get_extra_info("peername")):
            transport.abort()
            return
        super().connection_made(transport)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._stop_timer()
        self._table.remove(self)
        if self.transport is not None:  # it was admitted
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be there already."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._unread = True
        self._follow()

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._unread = False
        self._follow()

    def drop(self) -> None:
        """Close now, though something may be unsent."""
        self.transport.abort()

    def _follow(self) -> None:
        """Time the client's turn from its beginning on, whatever comes of it bit by bit."""
        if self.cycle is not None and not (self.cycle.response_complete or self._unread):
            self._stop_timer()
            self._table.answered(self)
        elif self._timer is None:
            self._timer = self.loop.call_later(self._table.limits.seconds, self.drop)
            self._table.waits(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
