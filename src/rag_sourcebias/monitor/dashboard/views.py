"""The API: parameters in, JSON out, reading done on threads."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.monitor.dashboard.guard import JSON_TYPE, error_body
from rag_sourcebias.monitor.dashboard.parameters import ParameterError, Parameters
from rag_sourcebias.monitor.dashboard.retrievals import RetrievalQuery
from rag_sourcebias.monitor.dashboard.series import SeriesQuery
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.dashboard.steps import NAMED

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["VIEWS", "ReadingPool", "json_endpoint"]

_logger = logging.getLogger("rag_sourcebias.monitor")
_AT_ONCE, _MOST_WAITING = 4, 64
View = Callable[[DashboardSource, Parameters], dict[str, Any]]
Endpoint = Callable[["Request"], Awaitable["Response"]]


def _overview(source: DashboardSource, _: Parameters) -> dict[str, Any]:
    return source.overview()


def _series(source: DashboardSource, parameters: Parameters) -> dict[str, Any]:
    since, until = parameters.times()
    return source.series(
        SeriesQuery(
            by=cast("Any", parameters.choice("by", ("source", "style"))),
            measure=cast("Any", parameters.choice("measure", ("exposure", "first"))),
            step=parameters.choice("step", ("auto", *NAMED)),
            since=since,
            until=until,
            labels=parameters.labels(),
        )
    )


def _alarms(source: DashboardSource, parameters: Parameters) -> dict[str, Any]:
    return source.alarms(parameters.whole("limit", low=1, high=1_000) or 100)


def _retrievals(source: DashboardSource, parameters: Parameters) -> dict[str, Any]:
    since, until = parameters.times()
    return source.retrievals(
        RetrievalQuery(
            by=cast("Any", parameters.choice("by", ("source", "style"))),
            group=parameters.text("group"),
            first=parameters.flag("first"),
            since=since,
            until=until,
            labels=parameters.labels(),
            before=parameters.whole("before", low=0, high=10**15 - 1),
            limit=parameters.whole("limit", low=1, high=200) or 50,
        )
    )


def _canary(source: DashboardSource, parameters: Parameters) -> dict[str, Any]:
    return source.canary(parameters.whole("limit", low=1, high=10_000) or 2_000)


_TIME = ("since", "until")
VIEWS: dict[str, tuple[View, tuple[str, ...]]] = {
    "/api/overview": (_overview, ()),
    "/api/series": (_series, ("by", *_TIME, "step", "label", "measure")),
    "/api/alarms": (_alarms, ("limit",)),
    "/api/retrievals": (
        _retrievals,
        ("by", *_TIME, "label", "group", "first", "before", "limit"),
    ),
    "/api/canary": (_canary, ("limit",)),
}
"""Views by path, with the parameters that each accepts."""


class ReadingPool:
    """Few threads that read; who comes when too many wait is sent away."""

    def __init__(self) -> None:
        from anyio import CapacityLimiter

        self._limiter = CapacityLimiter(_AT_ONCE)
        self._n = 0  # running or waiting; changed on the event loop only

    async def run(self, work: Callable[[], bytes]) -> bytes | None:
        """Return what ``work`` returns on a thread; None when there is too much to do."""
        from anyio.to_thread import run_sync

        if self._n >= _AT_ONCE + _MOST_WAITING:
            return None
        self._n += 1
        try:
            return await run_sync(work, limiter=self._limiter)
        finally:
            self._n -= 1


def json_endpoint(path: str, source: DashboardSource, pool: ReadingPool) -> Endpoint:
    """Return the endpoint of one of :data:`VIEWS`."""
    from starlette.responses import Response

    view, known = VIEWS[path]

    async def endpoint(request: Request) -> Response:
        query: bytes = request.scope["query_string"]

        def work() -> bytes:
            data = view(source, Parameters(query, known))
            return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()

        status, body = 200, b""
        try:
            found = await pool.run(work)
            status, body = (200, found) if found is not None else (503, _BUSY)
        except ParameterError as error:
            status, body = 400, error_body(str(error))
        except (DataError, UnsupportedVersionError, sqlite3.Error, OSError) as error:
            _logger.warning("the dashboard cannot read for %s: %s", path, error)
            status, body = 503, _UNREADABLE
        return Response(body, status_code=status, media_type=JSON_TYPE)

    return endpoint


_BUSY = error_body("too many requests at once; ask again")
_UNREADABLE = error_body("what this view shows cannot be read now, or is not there yet")
