"""Taggers, and the stores of documents they are run over."""

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Protocol, TypeAlias, runtime_checkable

from rag_sourcebias.core.codec import write_atomic
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.core.tags import UNKNOWN, TagStore
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.observe.document_stores import DocumentStore
from rag_sourcebias.observe.tags import open_tag_store

# What a tagger is, and how several of them decide one document together.


Tagger: TypeAlias = Callable[[str, str, Mapping[str, object]], DocTags | None]
"""Takes id, text and metadata of a document; returns its tags, or None where it knows nothing."""

Row: TypeAlias = tuple[str, str, Mapping[str, object]]


def tag_documents(
    documents: Iterable[Row],
    taggers: Sequence[Tagger],
    *,
    conflicts: Counter[tuple[str, str]] | None = None,
) -> Iterator[tuple[str, DocTags]]:
    """Tag documents in their order, with constant memory.

    Each of source, style and pair id comes from the first tagger that knows it; origin and
    confidence come with the source. What no tagger knows stays None. Where no tagger knows the
    source, the origin is the first one given (declared provenance may say that a text is neither
    of the two), otherwise None.

    Parameters
    ----------
    documents : iterable of (doc_id, text, metadata)
    taggers : sequence of Tagger
        In order of trust. One that has ``tag_many(texts)``, returning a list of ``DocTags`` or
        None, is given many texts at once.
    conflicts : Counter, optional
        Documents whose source two taggers name differently are counted here, by the origins of
        the tag that stands and of the one that contradicts it.

    Yields
    ------
    tuple of (str, DocTags)
        One for every document, in the given order.

    Raises
    ------
    DataError
        If a tagger raises or returns something else than tags: names document and tagger.
    """
    for chunk in _pages(documents, 256):  # some taggers are faster with many at once
        found = [_ask_many(tagger, chunk) for tagger in taggers]
        for index, (doc_id, _, _) in enumerate(chunk):
            said = [tags for column in found if (tags := column[index]) is not None]
            if conflicts is not None:
                conflicts.update(_contradictions(said))
            yield doc_id, _combine(said)


def _pages(documents: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rows = iter(documents)
    while page := list(islice(rows, size)):
        yield page


def _ask_many(tagger: Tagger, rows: Sequence[Row]) -> list[DocTags | None]:
    name = getattr(tagger, "__qualname__", None) or type(tagger).__qualname__
    tag_many = getattr(tagger, "tag_many", None)
    found: list[DocTags | None] = []
    where = f"documents {rows[0][0]!r} to {rows[-1][0]!r}"
    try:
        if tag_many is not None:
            found = list(tag_many([text for _, text, _ in rows]))
        else:
            for row in rows:
                where = f"document {row[0]!r}"
                found.append(tagger(*row))
    except SourceBiasError as error:
        raise DataError(f"{where}: tagger {name}: {error}") from error
    except Exception as error:  # the caller's own code: whatever it raises, name the document
        raise DataError(
            f"{where}: tagger {name} raised {type(error).__name__}: {error}; "
            "a tagger returns DocTags, or None where it knows nothing"
        ) from error
    if len(found) != len(rows):
        raise DataError(f"tagger {name} returned {len(found)} tags for {len(rows)} texts")
    for row, tags in zip(rows, found, strict=True):
        if not (tags is None or isinstance(tags, DocTags)):
            raise DataError(
                f"document {row[0]!r}: tagger {name} returned {tags!r} ({type(tags).__name__}); "
                "expected DocTags, or None where it knows nothing"
            )
    return found


_ANY_MODEL = ("llm:any", "llm:unnamed")


def _contradictions(found: Sequence[DocTags]) -> set[tuple[str, str]]:
    """Origins of the tag that stands and of each that names another source."""
    named = [tags for tags in found if tags.source is not None]
    return {
        (named[0].origin or "unstated", tags.origin or "unstated")
        for tags in named[1:]
        if tags.source != named[0].source
        and (
            "human" in (tags.source, named[0].source)
            or not {tags.source, named[0].source} & set(_ANY_MODEL)
        )
    }


def _combine(found: Sequence[DocTags]) -> DocTags:
    if len(found) == 1:
        return found[0]
    said = next((tags for tags in found if tags.origin is not None), DocTags())
    decided = next((tags for tags in found if tags.source is not None), said)
    return DocTags(
        source=decided.source,
        style=next((tags.style for tags in found if tags.style is not None), None),
        pair_id=next((tags.pair_id for tags in found if tags.pair_id is not None), None),
        origin=decided.origin,
        confidence=decided.confidence,
    )


# Identity of taggers: it changes when they would tag differently, so that stale tags are seen.


def taggers_fingerprint(taggers: Tagger | Sequence[Tagger]) -> str:
    """Identity of taggers in their order, as 16 hexadecimal digits.

    A tagger says who it is by an attribute ``fingerprint``, a text that changes whenever it would
    tag differently. A function without one is known by its source text and what it closes over.

    Raises
    ------
    DataError
        Without taggers, or for one that has no ``fingerprint``.

    Examples
    --------
    >>> from rag_sourcebias.tagging import IdTagger
    >>> taggers_fingerprint(IdTagger()) == taggers_fingerprint([IdTagger()])
    True
    """
    several = [taggers] if callable(taggers) else list(taggers)
    if not several:
        raise DataError("no taggers; expected at least one")
    return digest([_identity(tagger) for tagger in several])


def digest(*parts: object) -> str:
    """Hash plain values (texts, numbers, sequences, sets, mappings) to 16 hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, default=lambda values: sorted(values, key=repr))
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _identity(tagger: object) -> str:
    named = getattr(tagger, "fingerprint", None)
    if isinstance(named, str) and named:
        return named
    if isinstance(tagger, FunctionType):
        with suppress(OSError):  # typed at a prompt, or made by exec: no source
            closed = [repr(cell.cell_contents) for cell in tagger.__closure__ or ()]
            return digest(inspect.getsource(tagger), closed)
    raise DataError(
        f"a tagger ({type(tagger).__name__}) has no fingerprint; give it an attribute "
        "'fingerprint', a text that changes whenever it would tag differently"
    )


# What tagging a store came to.


@dataclass(kw_only=True)
class TagResult:
    """Counts of one pass of taggers over a store.

    Parameters
    ----------
    fingerprint : str
        Identity of the taggers.
    dry_run : bool
        Nothing was written.
    n_written : int
        Documents whose tags were written, or would be in a dry run.
    n_unchanged : int
        Documents that already carried exactly these tags.
    n_untagged : int
        Documents whose source no tagger knows.
    sources, styles : mapping of str to int
        Documents of each source and of each style.
    origins : mapping of str to int
        Documents with a source, by how it is known.
    conflicts : mapping of (str, str) to int
        Documents that two taggers call differently, by the origins of the tag that stands and of
        the one that contradicts it.
    n_missing : int
        Documents that were deleted from the store before their tags could be written.
    missing_ids : tuple of str
        The first of them.
    backup : str or None
        The file that keeps the tags that were replaced.
    """

    fingerprint: str
    dry_run: bool
    n_written: int = 0
    n_unchanged: int = 0
    n_untagged: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    styles: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_missing: int = 0
    missing_ids: tuple[str, ...] = ()
    backup: str | None = None

    @property
    def n_documents(self) -> int:
        """Documents looked at."""
        return self.n_written + self.n_unchanged + self.n_missing

    def add(self, tags: DocTags, *, written: bool) -> None:
        """Count one document."""
        self.n_written += written
        self.n_unchanged += not written
        if tags.style is not None:
            self.styles[tags.style] += 1
        if tags.source is None:
            self.n_untagged += 1
            return
        self.sources[tags.source] += 1
        if tags.origin is not None:
            self.origins[tags.origin] += 1


# Tagging the documents of a store.


@runtime_checkable
class WritableStore(DocumentStore, Protocol):
    """A store that keeps the tags of its documents."""

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Write the tags of every document into its metadata, nothing else of it being touched.

        Goes on where an interrupted pass of the same taggers stopped.

        Parameters
        ----------
        dry_run : bool
            Count only.
        overwrite : bool
            Replace tags that other taggers wrote.
        backup : str or Path, optional
            Tag store (.sqlite) that keeps the tags that are replaced.
        on_progress : callable, optional
            Told how many documents are done.

        Raises
        ------
        DataError
            If other taggers tagged the store before and ``overwrite`` is off.
        """


def tag_store(
    store: DocumentStore,
    taggers: Sequence[Tagger],
    *,
    dry_run: bool = False,
    overwrite: bool = False,
    backup: str | Path | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> TagResult:
    """Tag the documents of a store, or count what would be written; see :class:`WritableStore`.

    Raises
    ------
    DataError
        Unless it is a dry run, if the store is only read.
    """
    if isinstance(store, WritableStore):
        return store.tag(
            taggers, dry_run=dry_run, overwrite=overwrite, backup=backup, on_progress=on_progress
        )
    if not dry_run:
        raise DataError(
            f"{store.name} is only read; keep its tags in a file beside it with --sidecar "
            "tags.sqlite, or count only with --dry-run"
        )
    counts = TagResult(fingerprint=taggers_fingerprint(taggers), dry_run=True)
    known = dict(store.tags())
    tagged = tag_documents(store.documents(), taggers, conflicts=counts.conflicts)
    for done, (doc_id, tags) in enumerate(tagged, start=1):
        counts.add(tags, written=tags != known[doc_id])
        if on_progress is not None and (done % 1_000 == 0 or done == len(known)):
            on_progress(done)
    return counts


# Tags of a store's documents in a file beside it; the store itself is only read.


_PAGE = 1_000


class SidecarStore:
    """The documents of a store, their tags kept by document id and text hash in a tag store.

    Which taggers wrote the tags is noted in a small file beside it, ``<file>.taggers.json``.

    Parameters
    ----------
    documents : DocumentStore
    path : str or Path
        File of the tags, as :func:`open_tag_store` takes it; created by the first tag.

    Raises
    ------
    DataError
        If the file has another ending, or is damaged.
    """

    def __init__(self, documents: DocumentStore, path: str | Path) -> None:
        self._documents = documents
        self.path = Path(path)
        self.name = f"{documents.name}, tags in {path}"
        self.tag_store: TagStore = open_tag_store(path)
        self._note = self.path.with_name(f"{self.path.name}.taggers.json")

    def __len__(self) -> int:
        return len(self._documents)

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in the order of the store."""
        return self._documents.documents()

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and tags of every document of the store, all unknown where the file has none."""
        for page in _pages(self.documents(), _PAGE):
            ids = [doc_id for doc_id, _, _ in page]
            yield from zip(ids, self.tag_store.get(ids), strict=True)

    def left_over(self) -> list[str]:
        """Ids in the file that the store does not hold, such as deleted documents."""
        there = {doc_id for doc_id, _, _ in self.documents()}
        return [doc_id for doc_id in self.tag_store.table().doc_ids if doc_id not in there]

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Keep the tags of every document in the file; see :class:`DocumentStore`.

        Old tags are put into the backup, a tag store; without a name it is
        ``<file>.before-<taggers>.sqlite``.

        Raises
        ------
        DataError
            If other taggers wrote the file and ``overwrite`` is off, or a file cannot be written.
        """
        fingerprint = taggers_fingerprint(taggers)
        replacing = len(self.tag_store) > 0 and self._tagged_by() != fingerprint
        if replacing and not overwrite:
            raise DataError(
                f"{self.path} holds the tags of {len(self.tag_store)} documents by other taggers; "
                "replace them with --overwrite (they are kept in a backup), or name another file"
            )
        counts = TagResult(fingerprint=fingerprint, dry_run=dry_run)
        if not dry_run:
            if replacing:
                table = self.tag_store.table()
                rows = ((doc_id, table.get(doc_id)) for doc_id in table.doc_ids)
                counts.backup = str(backup or f"{self.path}.before-{fingerprint[:8]}.sqlite")
                open_tag_store(counts.backup).put(rows)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # before the first tag, so that an interrupted pass is known as one of these taggers
            write_atomic(self._note, json.dumps({"taggers": fingerprint}) + "\n")
        for page in _pages(self.documents(), _PAGE):
            texts = {doc_id: text for doc_id, text, _ in page}
            before = self.tag_store.get([doc_id for doc_id, _, _ in page])
            by_text = self.tag_store.get_by_text([texts[doc_id] for doc_id, _, _ in page])
            changed: list[tuple[str, DocTags]] = []
            tagged = tag_documents(page, taggers, conflicts=counts.conflicts)
            for (doc_id, tags), old, same_text in zip(tagged, before, by_text, strict=True):
                # the text of a document may have changed where its tags have not
                differs = tags != old or (tags != UNKNOWN and same_text == UNKNOWN)
                counts.add(tags, written=differs)
                if differs:
                    changed.append((doc_id, tags))
            if not dry_run:
                self.tag_store.put(changed, texts=texts)
            if on_progress is not None:
                on_progress(counts.n_documents)
        return counts

    def _tagged_by(self) -> str | None:
        try:
            found = read_json(self._note, "a note on taggers")
        except DataError:  # then --overwrite is asked for
            return None
        return str(found.get("taggers")) if isinstance(found, dict) else None
