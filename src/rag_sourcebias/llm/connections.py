"""Requests as the openai package would send them, without what it does to each."""

from __future__ import annotations

import http.client
import json
import select
import sys
import weakref
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rag_sourcebias.io.addresses import Address

# Connections to a server of one's own: HTTP without TLS and proxies, at a quarter of the cost.
# A local server may answer hundreds of requests in a second. Then the time that a general HTTP
# library spends on each (pool, events, models of requests and answers) is what limits the rate.


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


# Requests as the openai package would send them, without what it does to each.
# ``client.chat.completions.create`` builds and validates models around every request and answer,
# which takes more time than all the rest; with 32 requests at once it is what limits the rate.
# Here the openai client says where to and with which headers, and a body goes straight through its
# HTTP client, or, to a server of one's own without TLS, through a plain connection. Errors are
# openai's.


class OpenAIHttp:
    """Sends JSON and returns the text of the answer; one attempt, from any thread.

    Parameters
    ----------
    openai : module
    key : str
    address : Address
        Its user and password, where it has them, take the place of the key.
    timeout : float
        Seconds without a byte.
    connections : int
        Kept open at most.
    """

    def __init__(
        self, openai: ModuleType, *, key: str, address: Address, timeout: float, connections: int
    ) -> None:
        self._openai = openai
        self._httpx = _httpx_of(openai)
        limits = self._httpx.Limits(
            max_connections=connections, max_keepalive_connections=connections
        )
        self._http = openai.DefaultHttpxClient(timeout=timeout, limits=limits)
        weakref.finalize(self, self._http.close)
        # Retries are the caller's, who counts them.
        client = openai.OpenAI(
            api_key=key,
            base_url=address.url,
            max_retries=0,
            timeout=timeout,
            http_client=self._http,
        )
        headers = {**client.default_headers, **client.auth_headers}
        if address.authorization is not None:
            headers["Authorization"] = address.authorization
        self._headers = {name: v for name, v in headers.items() if isinstance(v, str)}
        self._base = str(client.base_url).rstrip("/")
        self._extensions = {"timeout": self._httpx.Timeout(timeout).as_dict()}
        self._plain: PlainHttp | None = None
        if PlainHttp.suits(self._base):
            self._plain = PlainHttp(self._base, headers=self._headers, timeout=timeout)

    def post(self, path: str, body: Mapping[str, Any]) -> str:
        """Send a body and return the answer's text.

        Raises
        ------
        openai.APIError
            APITimeoutError, APIConnectionError or APIStatusError.
        UnicodeEncodeError
            If the body holds half a surrogate pair.
        """
        # Not escaped: prompts in other scripts would be six times as long.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            response = self._sent(path, content)
        except (self._httpx.TimeoutException, TimeoutError) as error:
            raise self._openai.APITimeoutError(request=self._request(path, content)) from error
        except (self._httpx.RequestError, OSError, http.client.HTTPException) as error:
            raise self._openai.APIConnectionError(request=self._request(path, content)) from error
        if isinstance(response, str):
            return response
        text: str = response.text
        if response.status_code >= 300:
            raise self._status_error(response, text)
        return text

    def _sent(self, path: str, content: bytes) -> Any:  # noqa: ANN401
        """Return the text of a good answer over a plain connection, else a response of httpx."""
        plain = self._plain
        if plain is not None:
            answer = plain.post(path, content)
            if answer.status < 300:
                return answer.content.decode("utf-8", "replace")
            if answer.status < 400:  # to another place, which httpx goes to
                plain = self._plain = None
        request = self._request(path, content)
        if plain is None:
            return self._http.send(request)
        return self._httpx.Response(
            answer.status, headers=answer.headers, content=answer.content, request=request
        )

    def _request(self, path: str, content: bytes) -> Any:  # noqa: ANN401
        return self._httpx.Request(
            "POST",
            f"{self._base}{path}",
            content=content,
            headers=self._headers,
            extensions=dict(self._extensions),
        )

    def _status_error(self, response: Any, text: str) -> Exception:  # noqa: ANN401
        message, body = text.strip() or f"Error code: {response.status_code}", None
        try:
            body = json.loads(text)
        except ValueError:
            pass
        else:
            message = f"Error code: {response.status_code} - {body}"
            body = body.get("error", body) if isinstance(body, dict) else body
        error: Exception = self._openai.APIStatusError(message, response=response, body=body)
        return error


def _httpx_of(openai: ModuleType) -> ModuleType:
    """Return the HTTP library that openai stands on: httpx, from version 3 on httpx2."""
    names = (kind.__module__.partition(".")[0] for kind in openai.DefaultHttpxClient.__mro__)
    return next(sys.modules[name] for name in names if name.startswith("httpx"))
