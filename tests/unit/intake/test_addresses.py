"""Addresses are taken apart, and what is secret in them is told by no message."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.addresses import address_of
from rag_sourcebias.core.errors import DataError


@pytest.mark.parametrize(
    ("url", "shown", "authorization"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1", None),
        ("HTTPS://Example.org", "https://Example.org", None),
        ("https://me:pass@example.org:1/v1/", "https://example.org:1/v1/", "Basic bWU6cGFzcw=="),
        ("https://me:p%40s%2Fs@[::1]:1/v1", "https://[::1]:1/v1", "Basic bWU6cEBzL3M="),
        ("https://me:a@b@example.org/", "https://example.org/", "Basic bWU6YUBi"),
        ("https://token@example.org/v1", "https://example.org/v1", "Basic dG9rZW46"),
        ("https://@example.org/v1", "https://example.org/v1", None),
        ("https://example.org/v1?key=x#y", "https://example.org/v1", None),
    ],
)
def test_what_may_be_shown(url: str, shown: str, authorization: str | None) -> None:
    address = address_of(url, "base_url")
    assert (address.url, address.authorization) == (shown, authorization)


def test_secrets_are_repeated_in_no_form() -> None:
    address = address_of("https://me:p%40ss@example.org/v1?key=x1", "base_url")
    said = "Basic bWU6cEBzcw== of me:p@ss (p%40ss) at /v1?key=x1, sk-1"
    assert address.redacted(said, "sk-1", "") == "Basic … of me:… (…) at /v1?…, …"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000/v1",
        "ftp://example.org",
        "http://",
        "http:///v1",
        "http://example.org:x/v1",
        "http://example.org:0/v1",
        "http://example.org:99999/v1",
        "http://[::1/v1",
        "http://exa mple.org/v1",
        "http://example.org/v1\n",
        "user:s3cret@example.org/v1",
        "http://user:s3cret@example.org:x/v1",
        "http://user:s3/cret@example.org/v1",
        "http://user:1/s3cret@example.org/v1",
        "http://user:s3cret@/v1",
        "//user:s3cret@example.org",
        "example.org/v1?key=s3cret",
        "example.org/v1#s3cret",
    ],
)
def test_what_is_no_address_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(DataError, match=r"base_url (must be an http or https|has an @)") as caught:
        address_of(url, "base_url")
    assert "s3" not in str(caught.value)
    assert "cret" not in str(caught.value)
    assert ("got" in str(caught.value)) == ("s3" not in url)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        ("http://example.org/v1", True),
        ("http://10.0.0.1/v1", True),
        ("http://localhost.example.org/v1", True),
        ("https://example.org/v1", False),
        ("http://localhost:8000/v1", False),
        ("http://LOCALHOST/v1", False),
        ("http://127.8.8.8/v1", False),
        ("http://[::1]:8000/v1", False),
    ],
)
def test_what_others_on_the_way_can_read(url: str, exposed: bool) -> None:
    assert address_of(url, "base_url").exposed is exposed
