"""Choose a tag store by the name of its file."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.jsonl_store import JsonlTagStore
from rag_sourcebias.tagging.memory_store import MemoryTagStore
from rag_sourcebias.tagging.sqlite_store import SqliteTagStore
from rag_sourcebias.tagging.store import TagStore

__all__ = ["open_tag_store"]

_SQLITE = (".sqlite", ".sqlite3", ".db")


def open_tag_store(spec: str | Path | None = None) -> TagStore:
    """Open the tag store that a file name asks for.

    Parameters
    ----------
    spec : str, Path or None
        ``.jsonl``: a log of one process. ``.sqlite``, ``.sqlite3`` or ``.db``: a database several
        processes may share. None: memory. A file that is missing is created by the first ``put``.

    Raises
    ------
    DataError
        If the name has another ending, or the file is damaged.
    """
    if spec is None:
        return MemoryTagStore()
    if isinstance(spec, str | Path):
        ending = Path(spec).suffix.lower()
        if ending == ".jsonl":
            return JsonlTagStore(spec)
        if ending in _SQLITE:
            return SqliteTagStore(spec)
    raise DataError(
        f"tag store {spec!r} is not recognised; name a file that ends in .jsonl or in "
        f"{', '.join(_SQLITE)}, or give None to keep the tags in memory"
    )
