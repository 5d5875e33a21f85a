"""Serve a dashboard on a port of this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_sourcebias.core.addresses import is_loopback
from rag_sourcebias.core.errors import DataError, MissingExtraError, UnsupportedVersionError
from rag_sourcebias.monitor.dashboard.source import (
    DashboardSource,
    ParameterError,
    Parameters,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
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
        self._token = None if token is None else token.encode()
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
        return hmac.new(self._token or b"", text, hashlib.sha256).hexdigest()

    def is_token(self, value: str) -> bool:
        """Return whether this is the token, in a time that does not depend on it."""
        given = value.encode("utf-8", "surrogatepass")
        return self._token is not None and hmac.compare_digest(given, self._token)

    def lets_in(self, authorization: str | None, cookies: str | None) -> bool:
        """Return whether one of these headers holds what is needed, or nothing is."""
        if self._token is None:
            return True
        scheme, _, value = (authorization or "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(value.strip())
        name, expected = self.cookie
        try:
            found = SimpleCookie(cookies or "").get(name)
        except CookieError:
            return False
        given = "" if found is None else found.value
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


# What stands in front of every view: host, method, token, and headers of the answer.


_logger = logging.getLogger("rag_sourcebias.monitor")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str, Mapping[str, str]]

_STATIC = Path(__file__).parent / "static"
_JSON = {"content-type": "application/json"}
_SECURITY = {
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


def error_body(sentence: str) -> bytes:
    """Return the JSON that tells of an error."""
    return json.dumps({"error": sentence}).encode()


@dataclass
class Guard:
    """ASGI middleware that refuses what no view has to see.

    Parameters
    ----------
    app : ASGI application
    access : Access
    """

    app: App
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on to the application."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Sender(send, head=scope["method"] == "HEAD")
        refusal = self._refusal(scope)
        if refusal is not None:
            await answer.refuse(*refusal)
            return
        try:
            await self.app(scope, receive, answer)
        except Exception:  # the client gets a sentence, the log the traceback
            _logger.exception("the dashboard failed to answer %s", scope["path"][:200])
            if not answer.started:
                await answer.refuse(500, "the dashboard failed; its log says why", {})

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            if key in ("host", "authorization") and key in headers:
                return 400, f"header {key} is given twice; give it once", {}
            joined = "; " if key == "cookie" else ", "
            text = value.decode("latin-1")
            headers[key] = f"{headers[key]}{joined}{text}" if key in headers else text
        if not self.access.knows_host(headers.get("host")):
            return 421, "this host name is not served here; name it when starting", {}
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "only GET and HEAD are answered", {"allow": "GET, HEAD"}
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return 413, "a request may not have a body", {"connection": "close"}
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        free = scope["path"] == "/healthz"
        # The page checks a token in its address itself; nothing but a cookie comes of it.
        free = free or (scope["path"] == "/" and b"token=" in scope["query_string"])
        if free or self.access.lets_in(headers.get("authorization"), headers.get("cookie")):
            return None
        return (
            401,
            "a token is needed: open /?token=…, or send Authorization: Bearer …",
            {"www-authenticate": 'Bearer realm="rag-sourcebias"'},
        )


@dataclass
class _Sender:
    """Send with our headers, and without a body where only the head was asked for."""

    send: Send
    head: bool
    started: bool = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            known = {name.lower() for name, _ in headers}
            added = {"cache-control": "no-store", **_SECURITY}
            headers += [
                (k.encode(), v.encode()) for k, v in added.items() if k.encode() not in known
            ]
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body" and self.head:
            message = {**message, "body": b""}
        await self.send(message)

    async def refuse(self, status: int, sentence: str, headers: Mapping[str, str]) -> None:
        body = error_body(sentence)
        sent = {**_JSON, "content-length": str(len(body)), **headers}
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": body})


# The API: parameters in, JSON out, reading done on threads.


Endpoint = Callable[["Request"], Awaitable["Response"]]
VIEWS: Mapping[str, Sequence[str]] = {
    "overview": (),
    "series": ("by", "since", "until", "step", "label", "measure"),
    "alarms": ("limit",),
    "retrievals": ("by", "since", "until", "label", "group", "first", "before", "limit"),
}
"""Methods of a source that are views below ``/api/``, with the parameters that each accepts."""


def json_endpoint(view: str, source: DashboardSource) -> Endpoint:
    """Return the endpoint of one of :data:`VIEWS`."""

    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        def work() -> bytes:
            data = getattr(source, view)(Parameters(request.scope["query_string"], VIEWS[view]))
            return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()

        try:
            return _answer(200, await run_in_threadpool(work))
        except ParameterError as error:
            return _answer(400, error_body(str(error)))
        except (DataError, UnsupportedVersionError, sqlite3.Error, OSError) as error:
            _logger.warning("the dashboard cannot read for /api/%s: %s", view, error)
            return _answer(503, _UNREADABLE)

    return endpoint


_UNREADABLE = error_body("what this view shows cannot be read now, or is not there yet")


# The dashboard as an ASGI application.


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
    MissingExtraError
        If starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "anyio"):
            raise
        raise MissingExtraError(
            package=error.name, extra="monitor", feature="the dashboard"
        ) from error
    access = Access(token, hosts)
    endpoints: dict[str, Endpoint] = {
        "/": _page(access),
        "/healthz": _health,
        "/metrics": _metrics(source),
        **{f"/api/{view}": json_endpoint(view, source) for view in VIEWS},
    }
    app = Starlette(
        routes=[
            *(Route(path, endpoint) for path, endpoint in endpoints.items()),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={404: _unknown},
    )
    app.router.redirect_slashes = False
    return app


def _answer(status: int, body: bytes = b"", headers: Mapping[str, str] = _JSON) -> Response:
    from starlette.responses import Response

    return Response(body, status_code=status, headers=headers)


async def _unknown(_: Request, __: Exception) -> Response:
    return _answer(404, error_body("there is nothing here; the page is at /"))


async def _health(_: Request) -> Response:
    return _answer(200, b'{"status":"ok"}')


def _page(access: Access) -> Endpoint:
    from starlette.responses import FileResponse, RedirectResponse

    async def endpoint(request: Request) -> Response:
        try:
            token = Parameters(request.scope["query_string"], ("token",)).text("token")
        except ParameterError as error:
            return _answer(400, error_body(str(error)))
        if token is not None:
            answer = RedirectResponse("/", status_code=303)
            if access.is_token(token):
                name, value = access.cookie
                answer.set_cookie(
                    name,
                    value,
                    httponly=True,
                    samesite="strict",
                    secure=request.scope.get("scheme") == "https",
                )
            elif not access.lets_in(None, None):
                return _answer(401, error_body("this is not the token"))
            return answer
        if not access.lets_in(request.headers.get("authorization"), request.headers.get("cookie")):
            return _answer(401, error_body("a token is needed"))
        return FileResponse(_STATIC / "index.html")

    return endpoint


def _metrics(source: DashboardSource) -> Endpoint:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(_: Request) -> Response:
        if source.metrics is None:
            return _answer(404, error_body("metrics need a followed log and prometheus-client"))
        text = await run_in_threadpool(source.metrics)
        return _answer(200, text, {"content-type": "text/plain; version=0.0.4; charset=utf-8"})

    return endpoint


# Serve a dashboard on a port of this machine.


_WILDCARDS = ("0.0.0.0", "::")
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
        try:
            import uvicorn
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
