"""A corpus on disk as a store of documents: read, never written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import read_corpus, source_of_stem
from rag_sourcebias.io.beir_rows import document_text, metadata_of, metadata_text, read_rows
from rag_sourcebias.tagging.fingerprint import taggers_fingerprint
from rag_sourcebias.tagging.keys import from_metadata
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.taggers import Tagger, tag_documents
from rag_sourcebias.tagging.tagging_pass import PassCounts
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.source_names import check_source

__all__ = ["CorpusStore"]

_OWN_KEYS = frozenset({"_id", "title", "text", "metadata"})
_EVERY = 1_000  # documents between two reports of progress


class CorpusStore:
    """Documents of a BEIR folder or of one file of JSON lines.

    Parameters
    ----------
    place : str or Path
        A folder with ``corpus/<source>.jsonl`` files or ``corpus.jsonl``, or one such file
        (``_id``, ``text``, optionally ``title`` and ``metadata``). Metadata are the row's other
        keys and what is under ``metadata``.

    Raises
    ------
    DataError
        If there is no such place, or it holds no corpus.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)
        self.name = f"corpus:{place}"
        if not self.place.exists():
            raise DataError(
                f"corpus {str(place)!r} does not exist; expected a BEIR folder or a file of JSON "
                "lines with _id and text"
            )

    @cached_property
    def _rows(self) -> dict[str, tuple[str, Mapping[str, object], DocTags]]:
        if not self.place.is_dir():
            return {
                doc_id: (document_text(row, titles=True), _metadata(row), _tags(doc_id, row))
                for doc_id, row in read_rows(self.place)
            }
        found = read_corpus(self.place, sources=None, titles=True)
        metadata: dict[str, Mapping[str, object]] = {}
        folder = self.place / "corpus" if found.paired else self.place
        for file in sorted(folder.iterdir()):
            stem = file.name.removesuffix(".gz").removesuffix(".jsonl")
            is_corpus = file.name.endswith((".jsonl", ".jsonl.gz"))
            if is_corpus and (found.paired or stem == "corpus"):
                ending = f"@{source_of_stem(stem)}" if found.paired else ""
                metadata |= {doc_id + ending: _metadata(row) for doc_id, row in read_rows(file)}
        tags = found.corpus.tags
        return {i: (text, metadata[i], tags.get(i)) for i, text in found.corpus}

    def __len__(self) -> int:
        return len(self._rows)

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in the order of the files."""
        for doc_id, (text, metadata, _) in self._rows.items():
            yield doc_id, text, metadata

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and tags of every document, as the corpus declares them."""
        for doc_id, (_, _, tags) in self._rows.items():
            yield doc_id, tags

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,  # noqa: ARG002 - of the protocol
        backup: str | Path | None = None,  # noqa: ARG002
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Count what the taggers would write; see :class:`DocumentStore`.

        Raises
        ------
        DataError
            Unless it is a dry run: a corpus is only read.
        """
        if not dry_run:
            raise DataError(
                f"{self.name} is only read: nothing is written to a corpus; keep its tags in a "
                "file beside it with --sidecar tags.sqlite, or count only with --dry-run"
            )
        counts = PassCounts()
        known = self._rows
        for done, (doc_id, tags) in enumerate(tag_documents(self.documents(), taggers), start=1):
            counts.add(tags, written=tags != known[doc_id][2])
            if on_progress is not None and (done % _EVERY == 0 or done == len(known)):
                on_progress(done)
        return counts.result(fingerprint=taggers_fingerprint(taggers), dry_run=True)


def _metadata(row: Mapping[str, Any]) -> Mapping[str, object]:
    return {k: v for k, v in row.items() if k not in _OWN_KEYS} | dict(metadata_of(row))


def _tags(doc_id: str, row: Mapping[str, Any]) -> DocTags:
    """Tags of a row under our own keys, else what it declares as a BEIR row does."""
    metadata = _metadata(row)
    try:
        found = from_metadata(metadata)
    except DataError as error:
        raise DataError(f"document {doc_id!r}: {error}") from error
    if found != DocTags():
        return found
    source = metadata.get("source")
    try:
        declared = check_source(source) if isinstance(source, str) else None
    except DataError:  # a path, an address or a publisher
        declared = None
    return DocTags(
        source=declared,
        style=metadata_text(row, "style"),
        pair_id=metadata_text(row, "pair_id"),
        origin=None if declared is None else "declared",
    )
