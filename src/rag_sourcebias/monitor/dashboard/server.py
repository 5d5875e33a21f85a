"""Serve a dashboard on a port of this machine."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import socket
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.json import encode

from rag_sourcebias.core.addresses import is_loopback
from rag_sourcebias.core.errors import DataError, MissingExtraError, UnsupportedVersionError
from rag_sourcebias.monitor.dashboard.source import (
    VIEWS,
    DashboardSource,
    Page,
    ParameterError,
    asked,
)
from rag_sourcebias.monitor.data import logger

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import Response


# Who may ask: names of the host, and the token.


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")
_TOKEN = re.compile(r"[!-~]{16,200}")


class Access:
    """Names and token of one dashboard.

    A browser that was sent to another name for this address (DNS rebinding) says so in its Host
    header. The cookie is made from the token and is not the token.

    Parameters
    ----------
    token : str or None
        None lets everyone in.
    hosts : tuple of str
        Names and addresses accepted, without ports; "*" accepts all.

    Raises
    ------
    DataError
        If the token is not of 16 to 200 visible ASCII characters, or no host is named.
    """

    def __init__(self, token: str | None, hosts: tuple[str, ...]) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise DataError(
                f"a token is 16 to 200 visible ASCII characters, got {len(token)} characters; "
                "secrets.token_urlsafe() makes one"
            )
        if not hosts:
            raise DataError("name at least one host that requests may ask for")
        self.open = token is None
        self._token = (token or "").encode()
        self._hosts = frozenset(host.strip("[]").lower().rstrip(".") for host in hosts)

    def knows_host(self, value: str | None) -> bool:
        """Return whether this Host header asks for us."""
        found = _HOST.fullmatch(value or "")
        if found is None:
            return False
        name = found[1].strip("[]").lower().rstrip(".")
        return "*" in self._hosts or name in self._hosts

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie; dashboards on other ports of a host have other names."""
        return f"rag_sourcebias_{self._derived('name')[:8]}", self._derived("value")

    def _derived(self, what: str) -> str:
        text = f"rag-sourcebias dashboard cookie {what}".encode()
        return hmac.new(self._token, text, hashlib.sha256).hexdigest()

    def is_token(self, value: str) -> bool:
        """Return whether this is the token, in a time that does not depend on it."""
        given = value.encode("utf-8", "surrogatepass")
        return not self.open and hmac.compare_digest(given, self._token)

    def lets_in(self, request: Request) -> bool:
        """Return whether a request brings what is needed, or nothing is."""
        if self.open:
            return True
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(value.strip())
        name, expected = self.cookie
        given = request.cookies.get(name, "")
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


# The dashboard as an ASGI application: what stands in front of every view, and the views.


_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def _refused(status: int, sentence: str, **headers: str) -> Response:
    from starlette.responses import JSONResponse

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": sentence}, status, named)


def _refusal(access: Access, request: Request) -> Response | None:
    headers = request.headers
    if not access.knows_host(headers.get("host")):
        return _refused(421, "this host name is not served here; name it when starting")
    if request.method not in ("GET", "HEAD"):
        return _refused(405, "only GET and HEAD are answered", allow="GET, HEAD")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return _refused(413, "a request may not have a body", connection="close")
    # The page checks a token in its address itself; nothing but a cookie comes of it.
    entering = request.scope["path"] == "/" and b"token=" in request.scope["query_string"]
    if entering or request.scope["path"] == "/healthz" or access.lets_in(request):
        return None
    return _refused(
        401,
        "a token is needed: open /?token=…, or send Authorization: Bearer …",
        www_authenticate='Bearer realm="rag-sourcebias"',
    )


async def _guard(access: Access, request: Request, answer: RequestResponseEndpoint) -> Response:
    """Refuse what no view has to see, answer what a view raises, and add our headers."""
    found = _refusal(access, request)
    try:
        found = found or await answer(request)
    except ParameterError as error:
        found = _refused(400, str(error))
    except (DataError, UnsupportedVersionError, sqlite3.Error, OSError) as error:
        logger.warning("the dashboard cannot read for %s: %s", request.scope["path"], error)
        found = _refused(503, "what this view shows cannot be read now, or is not there yet")
    except Exception:  # noqa: BLE001 - the client gets a sentence, the log the traceback
        logger.exception("the dashboard failed to answer %s", request.scope["path"][:200])
        found = _refused(500, "the dashboard failed; its log says why")
    for name, value in _HEADERS.items():
        found.headers.setdefault(name, value)
    return found


async def _page(access: Access, request: Request) -> Response:
    from starlette.responses import FileResponse, RedirectResponse

    token = asked(request.scope["query_string"], Page).token
    if token is None:
        return FileResponse(_STATIC / "index.html")
    found = RedirectResponse("/", 303)
    if access.is_token(token):
        safe = request.scope["scheme"] == "https"
        found.set_cookie(*access.cookie, httponly=True, samesite="strict", secure=safe)
    elif not access.open:
        return _refused(401, "this is not the token")
    return found


def create_app(
    source: DashboardSource,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] = LOOPBACK_HOSTS,
) -> Starlette:
    """Return the dashboard of a source.

    It answers GET and HEAD only and changes nothing. Give a token wherever others than the user of
    this machine can connect: :class:`DashboardServer` sees to that.

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
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    access = Access(token, hosts)

    def view(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            wanted = asked(request.scope["query_string"], VIEWS[name])
            data = await run_in_threadpool(getattr(source, name), wanted)
            body = encode(data, enc_hook=np.ndarray.tolist)
            return Response(body, media_type="application/json")

        return endpoint

    async def metrics(_: Request) -> Response:
        if source.metrics is None:
            return _refused(404, "metrics need a followed log and prometheus-client")
        text = await run_in_threadpool(source.metrics)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def unknown(_: Request, __: Exception) -> Response:
        return _refused(404, "there is nothing here; the page is at /")

    app = Starlette(
        routes=[
            Route("/", partial(_page, access)),
            Route("/healthz", health),
            Route("/metrics", metrics),
            *(Route(f"/api/{name}", view(name)) for name in VIEWS),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=partial(_guard, access))],
        exception_handlers={404: unknown},
    )
    app.router.redirect_slashes = False
    return app


# Serve a dashboard on a port of this machine.


_WILDCARDS = ("", "0.0.0.0", "::")
_MOST_CONNECTIONS = 256  # further ones are answered 503


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

    Attributes
    ----------
    port : int
        The real one.

    Raises
    ------
    DataError
        If a token is needed or unusable, or the address cannot be listened at.
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
    ) -> None:
        for package in ("starlette", "uvicorn"):
            if find_spec(package) is None:
                raise MissingExtraError(package=package, extra="monitor", feature="the dashboard")
        import uvicorn

        host = host.strip("[]")
        if not is_loopback(host) and token is None:
            raise DataError(
                f"a dashboard at {host or 'every address'} can be reached from other machines: "
                "give a token, or listen at 127.0.0.1"
            )
        names = (*LOOPBACK_HOSTS, *(() if host in _WILDCARDS else (host,)), *hosts)
        if host in _WILDCARDS and not hosts:
            names = ("*",)
        app = create_app(source, token=token, hosts=names)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._server: Any = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",
                limit_concurrency=_MOST_CONNECTIONS,
                h11_max_incomplete_event_size=32_768,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,  # lines would hold the token of /?token=
                log_level=logging.WARNING,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=3,
            )
        )

    @property
    def url(self) -> str:
        """Where a browser of this machine finds it."""
        host = "127.0.0.1" if self.host in _WILDCARDS else self.host
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


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise DataError(f"port must be 0 (any that is free) to 65535, got {port}")
    try:
        family, *_, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server((address[0], port), family=family)
    except (OSError, UnicodeError) as error:
        raise DataError(
            f"cannot listen at port {port} of {host or 'every address'} ({error}); "
            "give another host or port"
        ) from error
