"""Tags in an append-only log of JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.append_log import AppendLog
from rag_sourcebias.tagging.jsonl_records import put_line, read_record, remove_line
from rag_sourcebias.tagging.memory_store import MemoryTagStore
from rag_sourcebias.tagging.store import check_rows, check_strings
from rag_sourcebias.types.documents import DocTags

__all__ = ["JsonlTagStore"]

_SPARE_LINES = 10_000  # outdated lines a log may hold, beyond one per document


class JsonlTagStore(MemoryTagStore):
    """Tags in memory and in a log that is replayed on opening; for one process at a time.

    Each line holds one document as ``write_tags`` writes it, with ``text_hash`` beside its tags,
    or a removal. A line that a crash cut short is left out when the log is read, and removed from
    it by the next write. The log is compacted when most of it is outdated.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are created by the first ``put``.

    Raises
    ------
    DataError
        If a line other than the last is damaged (file and line are named), or the file cannot be
        read.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self._log = AppendLog(path)
        for where, record in self._log.read():
            change = read_record(record, where)
            if isinstance(change, str):
                self._forget(change)
            else:
                self._apply([change])

    @property
    def torn_lines(self) -> int:
        """1 if the last line was cut short when the log was opened, else 0."""
        return self._log.torn

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts."""
        checked = check_rows(rows, texts)
        with self._lock:
            self._log.append([put_line(row) for row in checked])
            self._apply(checked)
            self._compact_if_outdated()

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""
        wanted = check_strings(doc_ids, "document id")
        with self._lock:
            ids = [doc_id for doc_id in wanted if doc_id in self._tags]
            self._log.append([remove_line(doc_id) for doc_id in ids])
            removed = super().remove(ids)
            self._compact_if_outdated()
        return removed

    def compact(self) -> None:
        """Rewrite the log with one line per document; a crash leaves the old log or the new one.

        Raises
        ------
        DataError
            If the file was changed by someone else, or cannot be written.
        """
        with self._lock:
            rows = ((i, tags, self._hash_of.get(i)) for i, tags in self._tags.items())
            self._log.rewrite((put_line(row) for row in rows), count=len(self._tags))

    def _compact_if_outdated(self) -> None:
        if self._log.lines > 2 * len(self._tags) + _SPARE_LINES:
            with suppress(DataError):  # the rows are stored; the next write tries again
                self.compact()
