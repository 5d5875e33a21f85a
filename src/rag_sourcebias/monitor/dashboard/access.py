"""Who may ask: names of the host, and the token."""

from __future__ import annotations

import hashlib
import hmac
import re
from http.cookies import CookieError, SimpleCookie

from rag_sourcebias.errors import DataError

__all__ = ["LOOPBACK_HOSTS", "Access"]

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
