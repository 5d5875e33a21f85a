"""The dashboard as an ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.errors import MissingExtraError
from rag_sourcebias.monitor.dashboard.access import LOOPBACK_HOSTS, Access
from rag_sourcebias.monitor.dashboard.guard import JSON_TYPE, Guard, error_body
from rag_sourcebias.monitor.dashboard.parameters import ParameterError, Parameters
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.dashboard.static_files import PAGE, StaticFile, static_files
from rag_sourcebias.monitor.dashboard.views import VIEWS, Endpoint, ReadingPool, json_endpoint

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["create_app"]

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def create_app(
    source: DashboardSource,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] = LOOPBACK_HOSTS,
) -> Starlette:
    """Return the dashboard of a source.

    It answers GET and HEAD only and changes nothing. Give a token wherever others than the user of
    this machine can connect: :func:`~rag_sourcebias.monitor.dashboard.server.serve` sees to that.

    Parameters
    ----------
    source : DashboardSource
    token : str or None
        Needed for everything but ``/healthz``.
    hosts : tuple of str
        Names and addresses in the Host header that are answered, without ports; "*" is all.

    Raises
    ------
    DataError
        If the token or the hosts cannot be used.
    MissingExtraError
        If starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "anyio"):
            raise
        raise MissingExtraError(
            package=error.name, extra="monitor", feature="the dashboard"
        ) from error
    access, table, pool = Access(token, hosts), static_files(), ReadingPool()
    endpoints: dict[str, Endpoint] = {
        "/": _page(table, access),
        "/static/{name:path}": _static(table),
        "/healthz": _health,
        "/metrics": _metrics(source, pool),
        **{path: json_endpoint(path, source, pool) for path in VIEWS},
    }
    app = Starlette(
        routes=[Route(path, endpoint) for path, endpoint in endpoints.items()],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={404: _unknown},
    )
    app.router.redirect_slashes = False
    return app


def _json(status: int, body: bytes) -> Response:
    from starlette.responses import Response

    return Response(body, status_code=status, media_type=JSON_TYPE)


async def _unknown(_: Request, __: Exception) -> Response:
    return _json(404, error_body("there is nothing here; the page is at /"))


async def _health(_: Request) -> Response:
    return _json(200, b'{"status":"ok"}')


def _page(table: dict[str, StaticFile], access: Access) -> Endpoint:
    from starlette.responses import RedirectResponse

    async def endpoint(request: Request) -> Response:
        try:
            token = Parameters(request.scope["query_string"], ("token",)).text("token")
        except ParameterError as error:
            return _json(400, error_body(str(error)))
        if token is not None:
            answer = RedirectResponse("/", status_code=303)
            if access.is_token(token):
                name, value = access.cookie
                secure = request.scope.get("scheme") == "https"
                answer.set_cookie(name, value, httponly=True, samesite="strict", secure=secure)
            elif not access.lets_in(None, None):
                return _json(401, error_body("this is not the token"))
            return answer
        if not access.lets_in(request.headers.get("authorization"), request.headers.get("cookie")):
            return _json(401, error_body("a token is needed"))
        return _file(request, table.get(PAGE))

    return endpoint


def _static(table: dict[str, StaticFile]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return _file(request, table.get(request.path_params["name"]))

    return endpoint


def _file(request: Request, file: StaticFile | None) -> Response:
    from starlette.responses import Response

    if file is None:
        return _json(404, error_body("there is no such file"))
    headers = {"etag": file.etag, "cache-control": "no-cache"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers={**headers, "content-type": file.media_type})


def _metrics(source: DashboardSource, pool: ReadingPool) -> Endpoint:
    from starlette.responses import Response

    async def endpoint(_: Request) -> Response:
        if source.metrics is None:
            return _json(404, error_body("metrics need a followed log and prometheus-client"))
        text = await pool.run(source.metrics)
        if text is None:
            return _json(503, error_body("too many requests at once; ask again"))
        return Response(text, headers={"content-type": _METRICS_TYPE})

    return endpoint
