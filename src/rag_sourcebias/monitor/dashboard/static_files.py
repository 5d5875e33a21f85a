"""The files of the page: a table made once, so that no request ever becomes a path."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

__all__ = ["PAGE", "StaticFile", "static_files"]

PAGE = "index.html"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


class StaticFile(NamedTuple):
    """One file as it is sent."""

    content: bytes
    media_type: str
    etag: str


def static_files() -> dict[str, StaticFile]:
    """Return the files of the package's ``static`` folder, by name with ``/``.

    Names that begin with a full stop are left out; licences without a suffix are text.
    """
    folder = files("rag_sourcebias.monitor.dashboard").joinpath("static")
    return dict(_below(folder, "")) if folder.is_dir() else {}


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, StaticFile]]:
    for item in folder.iterdir():
        if item.name.startswith((".", "__")):
            continue
        if item.is_dir():
            yield from _below(item, f"{prefix}{item.name}/")
            continue
        dot = item.name.rfind(".")
        kind = ".txt" if dot < 0 else item.name[dot:].lower()
        if kind in _TYPES:
            content = item.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            yield prefix + item.name, StaticFile(content, _TYPES[kind], etag)
