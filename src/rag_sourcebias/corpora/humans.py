"""The human documents that are to be rewritten, read one at a time."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rag_sourcebias.errors import DataError, MissingTagsError
from rag_sourcebias.io.beir_rows import metadata_of
from rag_sourcebias.io.files import PathLike, read_jsonl
from rag_sourcebias.io.tags import read_tags
from rag_sourcebias.types import Corpus, Dataset, TagTable

__all__ = ["HumanInput", "HumanRow", "Untagged", "human_rows", "read_human_rows", "row_digest"]

HumanInput = Dataset | Corpus | PathLike
Untagged = Literal["error", "human"]
_TAG_ENDINGS = tuple(f".{kind}{gz}" for kind in ("tsv", "csv", "jsonl") for gz in ("", ".gz"))


class HumanRow(NamedTuple):
    """One row of ``corpus/human.jsonl``."""

    doc_id: str
    title: str
    text: str
    metadata: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the row as BEIR writes it."""
        row: dict[str, Any] = {"_id": self.doc_id, "title": self.title, "text": self.text}
        return row | ({"metadata": self.metadata} if self.metadata else {})


def human_rows(
    source: HumanInput, *, limit: int | None = None, untagged: Untagged = "error"
) -> Iterator[HumanRow]:
    """Stream the documents by people, in their order; memory does not grow with their number.

    Parameters
    ----------
    source : Dataset, Corpus or path
        A path is a BEIR folder (``corpus/human.jsonl``, or ``corpus.jsonl`` with the source of a
        document in ``tags.tsv``, ``.csv``, ``.jsonl`` or in its metadata; all plain or ``.gz``).
        Documents with another source are left out. In a data set, documents with a pair id are
        named by it, as :func:`rag_sourcebias.io.read_beir` made the ids.
    limit : int, optional
        End after that many.
    untagged : {"error", "human"}
        What a document without a source is: an error, or written by people because you say so.

    Raises
    ------
    MissingTagsError
        At a document without a source, unless ``untagged="human"``.
    DataError
        If an id occurs twice, a row is malformed, or there is no document by people.
    """
    if isinstance(source, Dataset):
        where = source.name
        rows = _of_corpus(source.corpus, where, untagged)
    elif isinstance(source, Corpus):
        where = "the corpus"
        rows = _of_corpus(source, where, untagged)
    else:
        where = os.fspath(source)
        rows = _of_folder(Path(source), untagged)
    n = 0
    # Seen ids lie in a temporary database of SQLite, which keeps them on disk.
    with closing(sqlite3.connect("")) as seen:
        seen.execute("CREATE TABLE ids (id TEXT PRIMARY KEY) WITHOUT ROWID")
        for row in islice(rows, limit):
            try:
                f"{row.doc_id}{row.title}{row.text}".encode()
                seen.execute("INSERT INTO ids VALUES (?)", (row.doc_id,))
            except UnicodeEncodeError as error:
                raise DataError(
                    f"{where}: document {row.doc_id!r} holds half a character ({error.reason}) and "
                    "cannot be written as UTF-8; repair its text"
                ) from error
            except sqlite3.IntegrityError:
                raise DataError(
                    f"{where}: document id {row.doc_id!r} occurs twice among the human documents; "
                    "each needs its own"
                ) from None
            n += 1
            yield row
    if not n:
        raise DataError(f"{where}: there is no document of source 'human' to rewrite")


def read_human_rows(file: Path) -> Iterator[HumanRow]:
    """Stream what :meth:`HumanRow.to_dict` wrote."""
    for number, row in read_jsonl(file):
        yield _row(row, f"{file}:{number}")


def row_digest(rows: Iterator[HumanRow]) -> tuple[int, str]:
    """Count and hash rows, in their order."""
    state, n = blake2b(digest_size=16), 0
    for row in rows:
        more = json.dumps(row.metadata, sort_keys=True) if row.metadata else ""
        state.update("\0".join((row.doc_id, row.title, row.text, more, "\n")).encode())
        n += 1
    return n, state.hexdigest()


def _of_corpus(corpus: Corpus, name: str, untagged: Untagged) -> Iterator[HumanRow]:
    for doc_id, text in corpus:
        tags = corpus.tags.get(doc_id)
        if _is_human(tags.source, doc_id, name, untagged):
            metadata = {"style": tags.style} if tags.style else {}
            yield HumanRow(tags.pair_id or doc_id, "", text, metadata)


def _of_folder(folder: Path, untagged: Untagged) -> Iterator[HumanRow]:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"{folder} {what}; expected a BEIR folder")
    paired = [p for p in _either(folder / "corpus" / "human.jsonl") if p.is_file()]
    plain = [p for p in _either(folder / "corpus.jsonl") if p.is_file()]
    if len(paired) + len(plain) != 1:
        found = [p.name for p in (*paired, *plain)]
        raise DataError(
            f"{folder} holds {', '.join(found) or 'no corpus'}; expected either corpus/human.jsonl "
            "or corpus.jsonl, plain or .gz"
        )
    table = _tags_of(folder) if plain else None
    file = (paired or plain)[0]
    for number, row in read_jsonl(file):
        where = f"{file}:{number}"
        found_row = _row(row, where)
        declared = "human" if paired else _declared(found_row, table)
        if _is_human(declared, found_row.doc_id, where, untagged):
            yield found_row


def _tags_of(folder: Path) -> TagTable | None:
    files = sorted(p for p in folder.glob("tags.*") if p.name.endswith(_TAG_ENDINGS))
    if len(files) > 1:
        raise DataError(f"{folder} holds {', '.join(f.name for f in files)}; keep one tag file")
    return read_tags(files[0]) if files else None


def _declared(row: HumanRow, table: TagTable | None) -> str | None:
    """Return the source of a document, as read_beir finds it: other words are no tags."""
    if table is not None and row.doc_id in table.row_of:
        return table.get(row.doc_id).source
    told = row.metadata.get("source")
    is_tag = isinstance(told, str) and (told == "human" or told.startswith("llm:"))
    return str(told) if is_tag else None


def _either(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(path.name + ".gz")


def _is_human(source: str | None, doc_id: str, where: str, untagged: Untagged) -> bool:
    if source is None and untagged == "error":
        raise MissingTagsError(
            f"{where}: document {doc_id!r} has no source; tag it, or say untagged='human' if every "
            "untagged document was written by people"
        )
    return source is None or source == "human"


def _row(row: Mapping[str, Any], where: str) -> HumanRow:
    doc_id, title, text = row.get("_id"), row.get("title"), row.get("text")
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not isinstance(doc_id, str) or not doc_id:
        raise DataError(f"{where}: _id {doc_id!r} must be a non-empty string; keys are {list(row)}")
    if not isinstance(text, str) or not isinstance(title, str | None):
        raise DataError(f"{where}: title and text of _id {doc_id!r} must be strings")
    return HumanRow(doc_id, title or "", text, metadata_of(row))
