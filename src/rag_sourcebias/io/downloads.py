"""Download a file once, completely and verified."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.addresses import Address, address_of
from rag_sourcebias.io.files import PathLike

if TYPE_CHECKING:
    import http.client
    import urllib.request

__all__ = ["Progress", "download", "has_checksum"]

_CHUNK = 1 << 16
_CHECKSUM = re.compile(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}")
_RETRY_STATUS = (408, 429)
Progress = Callable[[int, int | None], None]


class _TryAgainError(Exception):
    """A passing fault: the connection broke or the server was not ready."""


def download(
    url: str,
    target: PathLike,
    *,
    checksum: str,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 5,
    backoff: float = 1.0,
) -> Path:
    """Download a file, resuming where an earlier attempt broke off.

    Parameters
    ----------
    url : str
        An http or https address. A user and password in it are sent to its host alone; messages
        show neither them nor its query.
    target : path
        Missing folders are made. Incoming data lies in ``<target>.part``; the target appears only
        complete and verified. If it exists with the right checksum, nothing is downloaded.
    checksum : str
        ``"md5:<32 hex digits>"`` or ``"sha256:<64 hex digits>"`` of the file.
    progress : callable or None
        Called as ``progress(received, total)``, in bytes; total is None when unknown.
    timeout : float
        Seconds without any data after which an attempt is given up.
    attempts : int
        Broken connections and the answers 408, 429 and 5xx are tried again, up to this many times.
    backoff : float
        Seconds before the second attempt, doubled for each further one.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    DataError
        If the file cannot be had, is not the one expected (it is removed then), or lies behind a
        redirection that leaves http and https, or https for http.
    """
    address = address_of(url, "url")
    if attempts < 1:
        raise DataError(f"attempts must be at least 1, got {attempts}")
    file = Path(target)
    if has_checksum(file, checksum):
        return file
    part = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _fetch(address, part, progress, timeout=timeout, attempts=attempts, backoff=backoff)
    except OSError as error:
        raise DataError(f"cannot write {part}: {error.strerror or error}") from error
    _verify(part, checksum, address.url)
    part.replace(file)
    return file


def _fetch(
    address: Address,
    part: Path,
    progress: Progress | None,
    *,
    timeout: float,
    attempts: int,
    backoff: float,
) -> None:
    for attempt in range(attempts):
        try:
            _attempt(address, part, progress, timeout)
        except _TryAgainError as error:
            if attempt + 1 == attempts:
                raise DataError(
                    f"cannot download {address.url} ({attempts} attempts): {error}; what was "
                    "received is kept, try again later or put the file at "
                    f"{part.with_suffix('')} yourself"
                ) from error
            time.sleep(backoff * 2**attempt)
        else:
            return


def _verify(part: Path, checksum: str, url: str) -> None:
    found = _digest(part, checksum)
    if found != checksum:
        part.unlink()
        raise DataError(
            f"{url} is not the expected file: its checksum is {found}, expected {checksum}; "
            "the download was removed"
        )


def has_checksum(file: Path, checksum: str) -> bool:
    """Whether the file exists and has this checksum (as :func:`download` takes it)."""
    if not _CHECKSUM.fullmatch(checksum):
        raise DataError(f"checksum {checksum!r} is neither md5:<32 hex> nor sha256:<64 hex>")
    return file.is_file() and _digest(file, checksum) == checksum


def _digest(file: Path, checksum: str) -> str:
    kind = checksum.partition(":")[0]
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{digest.hexdigest()}"


def _attempt(address: Address, part: Path, progress: Progress | None, timeout: float) -> None:
    """Fetch what is missing of ``part``; raise `_TryAgainError` if it is still incomplete."""
    have = part.stat().st_size if part.exists() else 0
    response = _request(address, have, timeout)
    with response:
        if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return  # nothing was missing
            part.unlink()
            raise _TryAgainError("the partial file did not fit the one on the server")
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        # A server that knows no ranges answers 200 with the whole file.
        start = have if response.status == HTTPStatus.PARTIAL_CONTENT and resumed else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        with part.open("ab" if start else "wb") as stream:
            received = _copy(response, stream, start, total, progress)
    if total is not None and received < total:
        raise _TryAgainError(f"the connection broke after {received} of {total} bytes")


def _request(address: Address, have: int, timeout: float) -> http.client.HTTPResponse:
    """Ask for the file from byte ``have`` on; answers 2xx and 416 are returned."""
    import http.client
    import urllib.error
    import urllib.request

    url = f"{address.url}?{address.query}" if address.query else address.url
    request = urllib.request.Request(url, headers={"User-Agent": "rag-sourcebias"})
    if address.authorization is not None:  # not for where a redirection leads
        request.add_unredirected_header("Authorization", address.authorization)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response: http.client.HTTPResponse = _opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if have and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return cast("http.client.HTTPResponse", error)  # it can be read like a response
        error.close()
        text = f"the server answered {error.code} {error.reason}"
        if error.code >= 500 or error.code in _RETRY_STATUS:
            raise _TryAgainError(text) from error
        raise DataError(f"cannot download {address.url}: {address.redacted(text)}") from error
    except urllib.error.URLError as error:
        raise _TryAgainError(f"no connection ({address.redacted(str(error.reason))})") from error
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgainError(f"the connection broke ({address.redacted(repr(error))})") from error
    return response


def _opener() -> urllib.request.OpenerDirector:
    """Return what follows redirections, but neither out of http and https nor out of https."""
    import urllib.request

    class Redirections(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self,
            req: urllib.request.Request,
            *answer: Any,  # noqa: ANN401
        ) -> urllib.request.Request | None:
            scheme = answer[-1].partition(":")[0].lower()  # of the new address
            if scheme != "https" and (scheme != "http" or req.type == "https"):
                raise DataError(
                    f"cannot download from {req.type}://{req.host}: it redirects to an address of "
                    f"{scheme}, which is not followed; give an address that needs no redirection"
                )
            return super().redirect_request(req, *answer)

    return urllib.request.build_opener(Redirections)


def _copy(
    response: http.client.HTTPResponse,
    stream: IO[bytes],
    start: int,
    total: int | None,
    progress: Progress | None,
) -> int:
    import http.client

    received = start
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (http.client.HTTPException, OSError) as error:
            raise _TryAgainError(f"the connection broke ({error!r})") from error
        if not chunk:
            return received
        stream.write(chunk)
        received += len(chunk)
        if progress is not None:
            progress(received, total)
