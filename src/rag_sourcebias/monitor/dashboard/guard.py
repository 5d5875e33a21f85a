"""What stands in front of every view: limits, host, method, token, and headers of the answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from rag_sourcebias.monitor.dashboard.access import Access

__all__ = ["JSON_TYPE", "Guard", "error_body"]

_logger = logging.getLogger("rag_sourcebias.monitor")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str, Mapping[str, str]]

JSON_TYPE = "application/json"
_LONGEST_URL = 4_096
_MOST_HEADERS, _LONGEST_HEADERS = 64, 16_384
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


class Guard:
    """ASGI middleware that refuses what no view has to see.

    Parameters
    ----------
    app : ASGI application
    access : Access
    """

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on to the application."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, head=scope["method"] == "HEAD")
        refusal = self._refusal(scope)
        if refusal is not None:
            await answer.refuse(*refusal)
            return
        try:
            await self._app(scope, receive, answer)
        except Exception:  # the client gets a sentence, the log the traceback
            _logger.exception("the dashboard failed to answer %s", scope["path"][:200])
            if not answer.started:
                await answer.refuse(500, "the dashboard failed; its log says why", {})

    def _refusal(self, scope: Scope) -> Refusal | None:
        sent: list[tuple[bytes, bytes]] = scope["headers"]
        length = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
        if length > _LONGEST_URL:
            return 414, f"the address is longer than {_LONGEST_URL} bytes", {}
        if len(sent) > _MOST_HEADERS or sum(len(k) + len(v) for k, v in sent) > _LONGEST_HEADERS:
            most = f"{_MOST_HEADERS} headers and {_LONGEST_HEADERS} bytes"
            return 431, f"the headers are more than {most}", {}
        headers: dict[str, str] = {}
        for name, value in sent:
            key = name.decode("latin-1").lower()
            if key in ("host", "authorization") and key in headers:
                return 400, f"header {key} is given twice; give it once", {}
            joined = "; " if key == "cookie" else ", "
            text = value.decode("latin-1")
            headers[key] = f"{headers[key]}{joined}{text}" if key in headers else text
        if not self._access.knows_host(headers.get("host")):
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
        if free or self._access.lets_in(headers.get("authorization"), headers.get("cookie")):
            return None
        sentence = "a token is needed: open /?token=…, or send Authorization: Bearer …"
        return 401, sentence, {"www-authenticate": 'Bearer realm="rag-sourcebias"'}


class _Answer:
    """Send with our headers, and without a body where only the head was asked for."""

    def __init__(self, send: Send, *, head: bool) -> None:
        self._send, self._head = send, head
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            known = {name.lower() for name, _ in headers}
            added = {"cache-control": "no-store", **_SECURITY}
            for name, value in added.items():
                if name.encode() not in known:
                    headers.append((name.encode(), value.encode()))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body" and self._head:
            message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, status: int, sentence: str, headers: Mapping[str, str]) -> None:
        body = error_body(sentence)
        sent = {"content-type": JSON_TYPE, "content-length": str(len(body)), **headers}
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": body})
