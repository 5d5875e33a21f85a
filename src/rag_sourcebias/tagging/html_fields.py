"""Provenance fields of a text that is an HTML page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

__all__ = ["html_fields"]

_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|\?xml)\b", re.IGNORECASE)
_END_OF_HEAD = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
_META = re.compile(r"<meta\s([^>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_JSON_LD = re.compile(
    r"""<script\b[^>]*type\s*=\s*["']?application/ld\+json["']?[^>]*>(.*?)</script""",
    re.IGNORECASE | re.DOTALL,
)
_MEDIA = ("ImageObject", "VideoObject", "AudioObject", "MediaObject", "Photograph")


def html_fields(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of the ``<meta>`` tags of the head and of JSON-LD ``digitalSourceType``.

    A text that is no page (it only talks about these fields) gives nothing, and neither does what
    the JSON-LD says of the page's pictures.

    Examples
    --------
    >>> list(html_fields('<html><head><meta name="AI-Disclosure" content="mode=none"></head>'))
    [('AI-Disclosure', 'mode=none')]
    """
    page = text.lstrip("\ufeff")
    if not _PAGE.match(page):
        return
    end = _END_OF_HEAD.search(page)
    # comments are no part of the page
    head = re.sub(r"<!--.*?-->", "", page[: end.start() if end else len(page)], flags=re.DOTALL)
    for tag in _META.findall(head):
        given = {k.casefold(): a or b or c for k, a, b, c in _ATTRIBUTE.findall(tag)}
        name = given.get("name") or given.get("property") or given.get("http-equiv")
        if name and given.get("content"):
            yield name, html.unescape(given["content"])
    for block in _JSON_LD.findall(page):
        for value in _source_types(block):
            yield "digitalSourceType", value


def _source_types(block: str) -> Iterator[str]:
    try:
        content = json.loads(block)
    except (ValueError, RecursionError):  # a broken page is not our caller's error
        return
    nodes = content if isinstance(content, list) else [content]
    nodes += [n for node in nodes if isinstance(node, dict) for n in _list(node.get("@graph"))]
    for node in nodes:
        if isinstance(node, dict) and not set(map(str, _list(node.get("@type")))) & set(_MEDIA):
            yield from (v for v in _list(node.get("digitalSourceType")) if isinstance(v, str))


def _list(value: object) -> list[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
