"""Stores of documents: what one is, a corpus on disk as one, and what their tags come to."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rag_sourcebias.core.data import Corpus, DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import from_metadata
from rag_sourcebias.intake.beir import read_corpus
from rag_sourcebias.intake.documents import (
    as_corpus,
    read_documents,
)
from rag_sourcebias.retrieval.application import load_object
from rag_sourcebias.retrieval.rerank import Held, held_by


@runtime_checkable
class DocumentStore(Protocol):
    """Documents with their tags, read page by page with constant memory.

    A package offers one by an entry point in the group ``rag_sourcebias.stores``, named as the
    kind in ``--store KIND:PLACE``: a callable ``(place, collection)`` that opens it.
    """

    name: str

    def __len__(self) -> int:
        """Number of documents."""

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in a stable order."""

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and stored tags of every document, in a stable order."""


# A corpus on disk as a store of documents: read, never written.


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
    def _read(self) -> tuple[Corpus, Sequence[Mapping[str, object]]]:
        """Corpus, and the metadata of its rows."""
        if self.place.is_dir():
            found = read_corpus(self.place, whole=True)
            return found.corpus, found.metadata
        documents = read_documents(self.place, whole=True)
        return as_corpus([documents]), documents.metadata

    def __len__(self) -> int:
        return len(self._read[0])

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in the order of the files."""
        corpus, metadata = self._read
        return zip(corpus.doc_ids, corpus.texts, metadata, strict=True)

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and tags of every document, as the corpus declares them."""
        tags = self._read[0].tags
        return ((doc_id, tags.get(doc_id)) for doc_id in tags.doc_ids)


class HeldStore:
    """What a vector store or index of an application holds: read once, never written."""

    def __init__(self, held: Held, name: str) -> None:
        self.name = name
        self._rows = [(doc_id, text or "", metadata or {}) for doc_id, text, metadata in held]

    def __len__(self) -> int:
        return len(self._rows)

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document."""
        return iter(self._rows)

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id of every document, and the tags in its metadata."""
        return ((doc_id, from_metadata(metadata)) for doc_id, _, metadata in self._rows)


# Open a store of documents by its address, ``KIND:PLACE``.


STORE_GROUP = "rag_sourcebias.stores"
_CORPUS, _APP = "corpus", "app"


def open_document_store(spec: str, *, collection: str | None = None) -> DocumentStore:
    """Open the store that an address names.

    Parameters
    ----------
    spec : str
        ``corpus:PLACE`` is a BEIR folder or a file of JSON lines, ``app:MODULE:NAME`` a vector
        store or index of an application; both are only read. Any other kind comes
        from an installed package: an entry point of that name in the group
        ``rag_sourcebias.stores``, a callable ``(place, collection)`` that opens the store.
    collection : str, optional
        Name of the collection, where a store holds several.

    Raises
    ------
    DataError
        If the address has no kind or no place, no installed package offers the kind, or the store
        cannot be opened.
    MissingExtraError
        If the package of the store is not installed.
    """
    from importlib.metadata import entry_points  # reads e-mail too: 25 ms

    openers = {entry.name: entry for entry in entry_points(group=STORE_GROUP)}
    kind, colon, place = spec.partition(":")
    known = ", ".join(sorted({_CORPUS, _APP, *openers}))
    if not colon or not place.strip():
        raise DataError(f"store {spec!r} is not KIND:PLACE, such as chroma:./db; kinds are {known}")
    if kind in (_CORPUS, _APP):
        if collection is not None:
            raise DataError(f"store {spec!r} has no collections; leave {collection!r} out")
        if kind == _CORPUS:
            return CorpusStore(place)
        if (held := held_by(load_object(spec, "--store"))) is None:
            raise DataError(
                f"store {spec!r} is no vector store or index of LangChain, LlamaIndex or Chroma"
            )
        return HeldStore(held, spec)
    if kind not in openers:
        raise DataError(f"store kind {kind!r} in {spec!r} is unknown; there are {known}")
    opener: Callable[[str, str | None], DocumentStore] = openers[kind].load()
    return opener(place, collection)


# Shares of sources and styles in a store.


_EVERY = 1_000  # documents between two reports of progress


@dataclass(slots=True)
class TagSummary:
    """Counts over the documents of a store; the key None counts what is unknown."""

    n_documents: int = 0
    cells: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    origins: Counter[tuple[str | None, bool]] = field(default_factory=Counter)

    def add(self, tags: DocTags) -> None:
        """Count one document."""
        self.n_documents += 1
        self.cells[tags.source, tags.style] += 1
        self.origins[tags.origin, tags.source is not None] += 1

    def counts(self, which: int) -> dict[str, int]:
        """Documents of each source (0) or style (1)."""
        found: Counter[str] = Counter()
        for names, n in self.cells.items():
            if (name := names[which]) is not None:
                found[name] += n
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Everything that is printed, as JSON holds it."""
        sources, styles, n = self.counts(0), self.counts(1), self.n_documents
        unknown = n - sum(sources.values())
        return {
            "n_documents": n,
            "sources": _shares(sources, n),
            "untagged": {"documents": unknown, "share": unknown / n if n else None},
            "styles": _shares(styles, n),
            "origins": [
                {"origin": origin, "source_known": known, "documents": count}
                for (origin, known), count in sorted(self.origins.items(), key=str)
            ],
        }


def summarise(
    tags: Iterable[tuple[str, DocTags]], on_progress: Callable[[int], None]
) -> TagSummary:
    """Count the tags of all documents."""
    found = TagSummary()
    for _, row in tags:
        found.add(row)
        if found.n_documents % _EVERY == 0:
            on_progress(found.n_documents)
    return found


def _shares(counts: dict[str, int], total: int) -> dict[str, Any]:
    return {name: {"documents": n, "share": n / total} for name, n in counts.items()}


_COUNTS = 3


def summarise_store(spec: str) -> tuple[str, TagSummary]:
    """Count the tags of a store of documents; returns its name too.

    One that changes meanwhile is counted up to three times; then the last count is taken, and
    that is logged.
    """
    store = open_document_store(spec)
    for _ in range(_COUNTS):
        before, found = len(store), summarise(store.tags(), lambda _: None)
        if before == found.n_documents == len(store):
            return store.name, found
    logging.getLogger("rag_sourcebias").warning(
        "%s changes while it is counted: %s documents before, %s counted",
        store.name,
        before,
        found.n_documents,
    )
    return store.name, found
