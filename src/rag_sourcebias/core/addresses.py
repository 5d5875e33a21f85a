"""Addresses of servers, apart from the passwords and keys that may stand in them."""

import base64
import ipaddress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rag_sourcebias.core.errors import DataError


class Address(NamedTuple):
    """An address that may be shown and stored, and beside it what may not.

    Parameters
    ----------
    url : str
        Without user, password, query and fragment.
    query : str
    authorization : str or None
        Header that says user and password.
    secrets : tuple of str
        Texts that no message may repeat.
    exposed : bool
        Whether what is sent can be read on its way to another machine.
    """

    url: str
    query: str
    authorization: str | None
    secrets: tuple[str, ...]
    exposed: bool

    def redacted(self, text: str, *more: str) -> str:
        """Return a text in which neither the secrets nor ``more`` are repeated."""
        for secret in sorted({*self.secrets, *more} - {""}, key=len, reverse=True):
            text = text.replace(secret, "…")
        return text


def address_of(url: str, name: str) -> Address:
    """Take an http or https address apart.

    Parameters
    ----------
    url : str
    name : str
        Of the parameter, for messages.

    Raises
    ------
    DataError
        If it is no such address; the message repeats it only where it can hold no secret.

    Examples
    --------
    >>> address_of("https://me:pass@example.org/v1?key=x", "base_url").url
    'https://example.org/v1'
    """
    shown = "" if set("@?#") & set(url) else f", got {url!r}"
    wrong = DataError(
        f"{name} must be an http or https address such as http://localhost:8000/v1{shown}"
    )
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise wrong from None  # it may repeat the password
    if (
        parts.scheme not in ("http", "https")
        or not host
        or port == 0
        or " " in url
        or not url.isprintable()
    ):
        raise wrong
    if "@" in parts.path:  # what stands before it may be half a password
        raise DataError(
            f"{name} has an @ behind its host: write @ as %40, and / in a password as %2F"
        )
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    authorization = None
    secrets = [parts.query]
    if user or colon:
        token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        authorization = f"Basic {token}"
        secret = password or user
        secrets += [token, secret, unquote(secret)]
    return Address(
        url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        query=parts.query,
        authorization=authorization,
        secrets=tuple(filter(None, secrets)),
        exposed=parts.scheme == "http" and not is_loopback(host),
    )


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
