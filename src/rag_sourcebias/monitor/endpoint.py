"""One HTTP endpoint that takes alarms: its URL, its requests, its answers."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import math
import ssl
import time
import uuid
from typing import NamedTuple
from urllib.parse import urlsplit

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.monitor import Alarm

__all__ = ["Answer", "Endpoint", "Request"]

_MAY_PASS = frozenset({408, 425, 429})
_UNREACHABLE = "webhook endpoint could not be reached"
_TIMED_OUT = "webhook endpoint did not answer in time"


class Answer(NamedTuple):
    """What came of one request: success, or why not and whether another may succeed."""

    accepted: bool
    may_pass: bool = False
    reason: str = ""


class Endpoint:
    """A checked URL, the seconds to wait for it, and the key to sign with.

    Raises
    ------
    DataError
        If the URL cannot be posted to, the timeout is not above 0, or the secret is empty. No
        message repeats the path of the URL or the secret.
    """

    def __init__(self, url: str, *, timeout: float, secret: str | bytes | None) -> None:
        if not 0 < timeout < math.inf:
            raise DataError(f"timeout must be a number of seconds above 0, got {timeout}")
        if secret is not None and not secret:
            raise DataError("secret of the webhook is empty; give None to send no signature")
        self.timeout = timeout
        self._key = secret.encode() if isinstance(secret, str) else secret
        self._secure, self._host, self._port, self._target = _parts(url)
        host = f"[{self._host}]" if ":" in self._host else self._host
        port = "" if self._port is None else f":{self._port}"
        self.shown = f"{'https' if self._secure else 'http'}://{host}{port}/…"
        self._context = ssl.create_default_context() if self._secure else None

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    def request(self, alarm: Alarm) -> Request:
        """Return the request that tells of ``alarm``."""
        fields = {key: _finite(value) for key, value in alarm.to_dict().items()}
        whole = {"kind": "alarm", "version": 1, "alarm": fields}
        return Request(self, json.dumps(whole, allow_nan=False).encode())

    def post(self, body: bytes, *, delivery: str) -> int:
        """Send ``body`` once and return the status of the answer.

        Raises
        ------
        OSError, http.client.HTTPException
            If there is no connection, or no answer that is HTTP.
        """
        connection = self._connection()
        try:
            connection.request("POST", self._target, body, self._headers(body, delivery))
            return connection.getresponse().status  # its content is of no use
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self.timeout, context=self._context
        )

    def _headers(self, body: bytes, delivery: str) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rag-sourcebias",
            "Rag-Sourcebias-Delivery": delivery,
        }
        if self._key is not None:
            stamp = str(int(time.time()))
            signed = hmac.new(self._key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers["Rag-Sourcebias-Timestamp"] = stamp
            headers["Rag-Sourcebias-Signature"] = f"sha256={signed}"
        return headers


class Request:
    """One alarm on its way; each attempt says the same delivery id."""

    def __init__(self, endpoint: Endpoint, body: bytes) -> None:
        self._endpoint, self._body = endpoint, body
        self._delivery = str(uuid.uuid4())

    def send(self) -> Answer:
        """Try once."""
        try:
            status = self._endpoint.post(self._body, delivery=self._delivery)
        except TimeoutError:
            return Answer(False, may_pass=True, reason=_TIMED_OUT)
        except (OSError, http.client.HTTPException):
            return Answer(False, may_pass=True, reason=_UNREACHABLE)
        if 200 <= status < 300:
            return Answer(True)
        may_pass = status in _MAY_PASS or status >= 500
        return Answer(False, may_pass, f"webhook endpoint answered with status {status}")


def _parts(url: str) -> tuple[bool, str, int | None, str]:
    """Return whether it is https, host, port, and path with query."""
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise DataError("URL of the webhook holds spaces or characters that a URL has to escape")
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")  # what connecting would raise, much later
    except ValueError as error:
        raise DataError("URL of the webhook has no valid host or port") from error
    if parts.scheme not in {"http", "https"}:
        raise DataError(
            f"URL of the webhook must start with http:// or https://, got scheme {parts.scheme!r}"
        )
    if not parts.hostname:
        raise DataError("URL of the webhook has no host; give one such as https://host/path")
    if parts.username is not None or parts.password is not None:
        raise DataError("URL of the webhook holds a user or password, which would not be sent")
    target = parts.path or "/"
    return (
        parts.scheme == "https",
        parts.hostname,
        port,
        target + f"?{parts.query}" * bool(parts.query),
    )


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
