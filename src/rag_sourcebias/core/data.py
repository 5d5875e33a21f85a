"""What everybody shares as data: documents and their tags, runs, judgments, histograms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from operator import eq
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, MissingTagsError, require_at_least
from rag_sourcebias.core.finding import Code, Finding

# Documents, their tags and the queries, stored as columns.


Origin = Literal["declared", "provenance", "detected", "unverified", "pipeline"]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]  # codes of documents, queries, tags: half the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class DocTags:
    """What is known about the origin of one document.

    Parameters
    ----------
    source : str or None
        ``"human"``, ``"llm:<model>"``, or None when unknown. Unknown is never folded into human.
    style : str or None
        Writing style label.
    pair_id : str or None
        Shared by a document and its rewrites.
    origin : str or None
        How the source became known: ``"declared"``, ``"provenance"``, ``"detected"`` (by a
        detector whose error on these documents was measured), ``"unverified"`` (by one whose error
        here nobody knows) or ``"pipeline"``.
    confidence : float or None
        Confidence of a detected source, in [0, 1].
    """

    source: str | None = None
    style: str | None = None
    pair_id: str | None = None
    origin: Origin | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.source is not None and not self.source.strip():
            raise DataError("source tag is an empty string; use None for an unknown source")
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise DataError(f"confidence {self.confidence!r} is outside [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query."""

    query_id: str
    text: str


def _encode(values: Iterable[str | None]) -> tuple[tuple[str, ...], CodeArray]:
    """Factorise labels: sorted names and one code per value, -1 for None."""
    column = list(values)
    names = tuple(sorted(set(column) - {None}))  # type: ignore[type-var]
    if not names:
        return (), np.full(len(column), -1, dtype=np.int32)
    index: dict[str | None, int] = {None: -1, **{name: i for i, name in enumerate(names)}}
    return names, np.fromiter(map(index.__getitem__, column), np.int32, len(column))  # type: ignore[return-value]


_BITS = (1 << 20) - 1  # of a hash: a table of them stays in a processor's cache
MANY_IDS = 30_000  # ids from which it pays to load pyarrow, which takes a tenth of a second


class Vocabulary(tuple[str, ...]):
    """Ids of which each occurs once, kept with what finds many of them in others at once."""

    @classmethod
    def of(cls, ids: Iterable[str]) -> Vocabulary:
        """Return ids as a vocabulary; the same one where they are one."""
        return ids if isinstance(ids, cls) else cls(ids)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """Place of each id, from 0."""
        return dict(zip(self, range(len(self)), strict=True))

    @cached_property
    def hashes(self) -> IntArray:
        """Hash of each id, by which many are looked up at once."""
        return np.fromiter(map(hash, self), np.int64, len(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (tuple(self),)  # hashes are of one process

    def differ(self) -> bool:
        """Whether each id occurs once indeed; a set of a million takes twice as long."""
        halves = np.sort(self.hashes.astype(np.int32))
        rows = _holding(halves[1:][halves[1:] == halves[:-1]], self.hashes)
        some = list(map(self.__getitem__, rows.tolist()))
        return len(set(some)) == len(some)


def _holding(some: npt.NDArray[Any], hashes: IntArray) -> IntArray:
    """Return the rows of hashes that may be among some: most are none, by their last bits."""
    table = np.zeros(_BITS + 1, dtype=bool)
    table[some & _BITS] = True
    return np.flatnonzero(table[hashes & _BITS])


def places_of(names: Sequence[str], vocabulary: Iterable[str]) -> IntArray:
    """Return the place of each name in the vocabulary, -1 where it is not there."""
    ids = Vocabulary.of(vocabulary)
    if names == ids:
        return np.arange(len(names), dtype=np.int64)
    found = np.full(len(names), -1, dtype=np.int64)
    if isinstance(names, Vocabulary):
        few, many = sorted((names, ids), key=len)
        order = np.argsort(few.hashes)
        known = few.hashes[order]
        rows = _holding(known, many.hashes)
        at = np.searchsorted(known[:-1], many.hashes[rows])
        same = known[at] == many.hashes[rows]
        rows, places = rows[same], order[at[same]]
        here, there = map(many.__getitem__, rows.tolist()), map(few.__getitem__, places.tolist())
        if all(map(eq, here, there)):
            if few is names:
                rows, places = places, rows
            found[rows] = places
            return found
    # texts that are no vocabulary, or different ids of one hash, as there are hardly ever
    return np.fromiter(map(ids.place_of.get, names, repeat(-1)), np.int64, len(names))


def coded(ids: Iterable[str]) -> tuple[Vocabulary, CodeArray]:
    """Return different ids, in the order in which they come first, and the number of each."""
    every = ids if isinstance(ids, list) else list(ids)
    some = every[:MANY_IDS]
    if len(set(some)) == len(some):
        names = Vocabulary(every)
        if names.differ():
            return names, np.arange(len(every), dtype=np.int32)
    with suppress(ImportError, ValueError):  # a text may hold half of a pair of surrogates
        if len(every) >= MANY_IDS:
            import pyarrow as pa

            encoded = pa.array(every, pa.large_string()).dictionary_encode()
            return Vocabulary(encoded.dictionary.to_pylist()), encoded.indices.to_numpy()
    names = Vocabulary(dict.fromkeys(every))
    # without a line of Python for each id, as dictionaries of results have many
    return names, np.fromiter(map(names.place_of.__getitem__, every), np.int32, len(every))


@dataclass(frozen=True, kw_only=True, eq=False)
class TagTable:
    """Tags of many documents as columns; build it with :meth:`from_tags`.

    Parameters
    ----------
    doc_ids : tuple of str, length n
        Unique document ids.
    sources : tuple of str
        Source names, sorted; ``source_codes`` index into it, -1 is unknown.
    source_codes : int32 array of shape (n,)
    pair_codes : int32 array of shape (n,)
        Documents with the same code are versions of one another; -1 is unpaired.
    styles : tuple of str
    style_codes : int32 array of shape (n,)
    whole : mapping of str to int, optional
        Documents per source of the corpus that this table is an excerpt of, ``""`` for untagged
        ones: an audit needs the tags of what was retrieved or judged, and these numbers.
    by_id : dict or None
        The sources by id, where they were handed over so: few are looked up at once.
    """

    doc_ids: tuple[str, ...]
    sources: tuple[str, ...]
    source_codes: CodeArray
    pair_ids: tuple[str, ...]
    pair_codes: CodeArray
    styles: tuple[str, ...]
    style_codes: CodeArray
    origins: tuple[Origin | None, ...] | None = None
    confidences: npt.NDArray[np.float32] | None = None
    whole: Mapping[str, int] | None = None
    by_id: Mapping[str, Any] | None = field(default=None, init=False)  # a changed table has none

    def __post_init__(self) -> None:
        if isinstance(self.doc_ids, Vocabulary):
            return
        ids = Vocabulary(self.doc_ids)
        if not ids.differ():
            raise DataError(
                f"document id {Counter(ids).most_common(1)[0][0]!r} is tagged twice; each id may "
                "have one tag row"
            )
        object.__setattr__(self, "doc_ids", ids)

    @classmethod
    def from_tags(cls, items: Iterable[tuple[str, DocTags]]) -> TagTable:
        """Build a table from ``(doc_id, tags)`` pairs.

        Raises
        ------
        DataError
            If a document id occurs twice.
        """
        rows = list(items)
        return cls.from_columns(
            (doc_id for doc_id, _ in rows),
            (tags.source for _, tags in rows),
            styles=(tags.style for _, tags in rows),
            pair_ids=(tags.pair_id for _, tags in rows),
            origins=[tags.origin for _, tags in rows],
            confidences=[tags.confidence for _, tags in rows],
        )

    @classmethod
    def from_dict(cls, source_of: Mapping[str, str | None]) -> TagTable:
        """Build a table from ``{doc_id: source}``; a source that is known counts as declared."""
        sources, codes = _encode(source_of.values())
        unknown = np.full(len(codes), -1, dtype=np.int32)
        origins = np.array(["declared", None])[np.minimum(codes, 0)]  # the last one for code -1
        table = cls(
            doc_ids=Vocabulary(source_of),
            sources=sources,
            source_codes=codes,
            pair_ids=(),
            pair_codes=unknown,
            styles=(),
            style_codes=unknown,
            origins=tuple(origins),
        )
        object.__setattr__(table, "by_id", dict(source_of))
        return table

    @classmethod
    def from_columns(
        cls,
        doc_ids: Iterable[str],
        sources: Iterable[str | None],
        *,
        styles: Iterable[str | None],
        pair_ids: Iterable[str | None],
        origins: Sequence[Origin | None],
        confidences: Sequence[float | None],
    ) -> TagTable:
        """Build a table from columns of equal length; None is unknown.

        Raises
        ------
        DataError
            If a document id occurs twice.
        """
        source_names, source_codes = _encode(sources)
        pair_names, pair_codes = _encode(pair_ids)
        style_names, style_codes = _encode(styles)
        confident = len(confidences) > confidences.count(None)
        return cls(
            doc_ids=doc_ids if isinstance(doc_ids, Vocabulary) else tuple(doc_ids),
            sources=source_names,
            source_codes=source_codes,
            pair_ids=pair_names,
            pair_codes=pair_codes,
            styles=style_names,
            style_codes=style_codes,
            origins=tuple(origins) if any(origins) else None,
            confidences=np.array(confidences, dtype=np.float32) if confident else None,
        )

    def __repr__(self) -> str:
        of = ", ".join(self.sources) or "unknown source"
        return f"<TagTable: {len(self):,} documents of {of}>"

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def row_of(self) -> Mapping[str, int]:
        """Row number by document id."""
        return Vocabulary.of(self.doc_ids).place_of

    def get(self, doc_id: str) -> DocTags:
        """Tags of one document; all unknown when the id is not in the table."""
        row = self.row_of.get(doc_id)
        if row is None:
            return DocTags()

        def name(names: tuple[str, ...], codes: CodeArray) -> str | None:
            return names[codes[row]] if codes[row] >= 0 else None

        confidence = None if self.confidences is None else float(self.confidences[row])
        return DocTags(
            source=name(self.sources, self.source_codes),
            style=name(self.styles, self.style_codes),
            pair_id=name(self.pair_ids, self.pair_codes),
            origin=None if self.origins is None else self.origins[row],
            confidence=None if confidence is None or np.isnan(confidence) else confidence,
        )

    def rows_for(self, doc_ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Row number of each id, -1 where the id is not in the table; shape ``(len(doc_ids),)``."""
        return places_of(doc_ids, self.doc_ids)

    @property
    def n_documents(self) -> int:
        """Documents of the corpus: rows of the table, unless it is an excerpt."""
        return len(self) if self.whole is None else sum(self.whole.values())

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts untagged ones when there are any.

        Those of the whole corpus when the table is an excerpt.
        """
        if self.whole is not None:
            return {key: n for key, n in self.whole.items() if key or n}
        result = {
            name: int(np.count_nonzero(self.source_codes == code))
            for code, name in enumerate(self.sources)
        }
        untagged = int(np.count_nonzero(self.source_codes < 0))
        return result | ({"": untagged} if untagged else {})

    def require_sources(self, baseline: str) -> None:
        """Refuse tags that allow no comparison with the baseline.

        Raises
        ------
        MissingTagsError
            If no document has a source tag.
        DataError
            If the baseline, or any other source, is missing.
        """
        present = [source for source, n in self.counts().items() if source and n]
        if not present:
            raise MissingTagsError(
                f"none of {self.n_documents} documents has a source tag; tags name it for each "
                'id, as "human" or "llm:<model>"'
            )
        if baseline not in present:
            raise DataError(
                f"no document has the baseline source {baseline!r}; sources are {present}"
            )
        if len(present) < 2:
            raise DataError(
                f"only source {baseline!r} is tagged; a comparison needs a second source"
            )

    def merge_sources(self, groups: Mapping[str, Sequence[str]]) -> TagTable:
        """Return a table in which each group replaces its member sources.

        Examples
        --------
        >>> table = TagTable.from_tags([("a", DocTags(source="llm:x")), ("b", DocTags())])
        >>> table.merge_sources({"llm": ["llm:x"]}).sources
        ('llm',)
        """
        new_name = {member: group for group, members in groups.items() for member in members}
        for member, group in new_name.items():
            if member not in self.sources:
                raise DataError(
                    f"group {group!r} names source {member!r}, which no document has; "
                    f"sources are {list(self.sources)}"
                )
        names, recode = _encode(new_name.get(s, s) for s in self.sources)
        whole = Counter[str]()
        for name, count in (self.whole or {}).items():
            whole[new_name.get(name, name)] += count
        return replace(
            self,
            sources=names,
            source_codes=np.append(recode, -1)[self.source_codes].astype(np.int32),
            whole=None if self.whole is None else whole,
        )

    def take(self, rows: npt.NDArray[np.intp]) -> TagTable:
        """Return the rows asked for, in that order."""
        return TagTable(
            doc_ids=tuple(self.doc_ids[r] for r in rows),
            sources=self.sources,
            source_codes=self.source_codes[rows],
            pair_ids=self.pair_ids,
            pair_codes=self.pair_codes[rows],
            styles=self.styles,
            style_codes=self.style_codes[rows],
            origins=None if self.origins is None else tuple(self.origins[r] for r in rows),
            confidences=None if self.confidences is None else self.confidences[rows],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """Texts with their tags; row ``i`` of ``texts`` belongs to row ``i`` of ``tags``.

    Parameters
    ----------
    texts : tuple of str, length n
        Exactly the text that is indexed and embedded. Tags never enter it.
    tags : TagTable of length n
    """

    texts: tuple[str, ...]
    tags: TagTable

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.tags):
            raise DataError(f"{len(self.texts)} texts but {len(self.tags)} tag rows; need as many")

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Document ids in row order."""
        return self.tags.doc_ids

    def __repr__(self) -> str:
        return repr(self.tags).replace("TagTable", "Corpus", 1)

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.doc_ids, self.texts, strict=True)

    def take(self, rows: npt.NDArray[np.intp]) -> Corpus:
        """Return a sub-corpus of the given rows, in that order."""
        return Corpus(texts=tuple(self.texts[r] for r in rows), tags=self.tags.take(rows))

    def of_source(self, source: str) -> Corpus:
        """Return the documents of one source.

        Raises
        ------
        DataError
            If no document has that source.
        """
        if source not in self.tags.sources:
            raise DataError(
                f"no document has source {source!r}; sources are {list(self.tags.sources)}"
            )
        return self.take(np.flatnonzero(self.tags.source_codes == self.tags.sources.index(source)))


# Parts of a corpus that does not have to fit in memory.


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Consecutive rows of a corpus, read and worked on together.

    Parameters
    ----------
    index : int
        Number of the shard, from 0.
    first_row : int
        Row of its first document within the whole corpus.
    n_documents : int
    """

    index: int
    first_row: int
    n_documents: int

    @property
    def rows(self) -> range:
        """Rows of the whole corpus that the shard holds."""
        return range(self.first_row, self.first_row + self.n_documents)


# Rankings: a columnar run and the view of one query.


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedList:
    """What one query returned, best first.

    Parameters
    ----------
    query_id : str
    doc_ids : tuple of str
        Document at rank 1 first.
    scores : float64 array of the same length, or None
        Higher is better.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    scores: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.doc_ids)


def _by_score(queries: IntArray, scores: FloatArray) -> IntArray:
    """Return rows by query, then by descending score; equal scores keep their order."""
    lists = _side_by_side(queries, -scores, np.inf)
    if lists is None:
        return np.lexsort((-scores, queries))
    keys, inside = lists
    lengths = inside.sum(axis=1)
    firsts = np.cumsum(lengths) - lengths
    order = np.argsort(keys, axis=1)  # a stable one takes four times as long
    ranked = np.take_along_axis(keys, order, axis=1)
    if np.any(ranked[:, 1:] == ranked[:, :-1]):
        order = np.argsort(keys, axis=1, kind="stable")
    rows: IntArray = order + firsts[:, None]
    return rows[inside]  # what fills a list up is sorted to its end


def _holds_twice(queries: IntArray, docs: IntArray) -> bool:
    """Whether a query holds a document twice."""
    lists = _side_by_side(queries, docs, -1)
    if lists is None:
        keys = np.sort(queries * (int(docs.max(initial=0)) + 1) + docs)
    else:
        keys = np.sort(lists[0], axis=1)
    return bool(np.any((keys[..., 1:] == keys[..., :-1]) & (keys[..., 1:] >= 0)))


def _side_by_side(
    queries: IntArray, values: npt.NDArray[Any], fill: float
) -> tuple[npt.NDArray[Any], BoolArray] | None:
    """Return values as one row per query, filled up, and where they are values.

    None where entries are not in the order of the queries, or lists differ much in length. Many
    short sorts take a fraction of the time of a long one.
    """
    lengths = np.bincount(queries)
    widest = int(lengths.max(initial=0))
    if np.any(np.diff(queries) < 0) or len(lengths) * widest > 2 * len(queries):
        return None
    inside = np.arange(widest) < lengths[:, None]
    rows = np.full(inside.shape, fill, dtype=values.dtype)
    rows[inside] = values
    return rows, inside


class RunCode(Code, home="run"):
    """Sentences about how a run was read."""

    DISTANCES = (
        "Scores rise with the rank in {n} of {n_all:query|queries}: they are read as distances, "
        "the smallest first."
    )
    DISAGREE = (
        "Ranks and scores disagree in {n} of {n_all:query|queries}: there the scores count, as in "
        "trec_eval."
    )
    CONSTANT = "The scores of each query are all equal: the order of the ranks counts."


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Rankings of many queries in compressed-row form.

    Entries ``offsets[i]:offsets[i + 1]`` belong to query ``i``, best first: the stored order is
    the ranking, ranks are 1…n. Scores are optional and only used to recognise ties.

    Parameters
    ----------
    query_ids : tuple of str, length nq
        Unique.
    offsets : int64 array of shape (nq + 1,)
    doc_codes : int32 array of shape (nnz,)
        Index into ``doc_ids``.
    doc_ids : tuple of str
        Vocabulary; unique; may hold documents that were never retrieved.
    scores : float64 array of shape (nnz,), or None
        Higher is better; never NaN. Entries tie where these are equal; other types become float64.
    name : str
    n_duplicates : int
        Entries dropped because the query already held the document (the first one is kept).
    notes : tuple of Finding
        What a reader should know of how the run was read.
    """

    query_ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    doc_codes: npt.NDArray[np.int32]
    doc_ids: tuple[str, ...]
    scores: FloatArray | None = None
    name: str = "run"
    n_duplicates: int = 0
    notes: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc_ids", Vocabulary.of(self.doc_ids))
        if len(set(self.query_ids)) != len(self.query_ids):
            raise DataError(f"run {self.name!r} holds a query id twice")
        if self.offsets.shape != (len(self.query_ids) + 1,) or self.offsets[0] != 0:
            raise DataError(
                f"run {self.name!r}: offsets must start at 0 and have length "
                f"{len(self.query_ids) + 1}, got shape {self.offsets.shape}"
            )
        if np.any(np.diff(self.offsets) < 0) or self.offsets[-1] != len(self.doc_codes):
            raise DataError(f"run {self.name!r}: offsets must rise from 0 to the number of entries")
        if len(self.doc_codes) and not (
            int(self.doc_codes.min()) >= 0 and int(self.doc_codes.max()) < len(self.doc_ids)
        ):
            raise DataError(f"run {self.name!r}: a document code is outside the vocabulary")
        if self.scores is not None:
            object.__setattr__(self, "scores", np.asarray(self.scores, dtype=np.float64))
            if self.scores.shape != self.doc_codes.shape:
                raise DataError(f"run {self.name!r}: scores and documents differ in number")
            bad = np.flatnonzero(np.isnan(self.scores))
            if len(bad):
                raise DataError(
                    f"run {self.name!r}: {len(bad)} NaN score(s), first for query "
                    f"{self.query_ids[int(self.query_codes[bad[0]])]!r}, document "
                    f"{self.doc_ids[self.doc_codes[bad[0]]]!r}; a score must be a number"
                )

    @classmethod
    def from_arrays(
        cls,
        *,
        query_ids: Sequence[str],
        query_codes: npt.NDArray[np.integer[Any]],
        doc_codes: npt.NDArray[np.integer[Any]],
        doc_ids: Sequence[str],
        scores: npt.NDArray[np.floating[Any]] | None = None,
        name: str = "run",
        sort_by_score: bool = False,
    ) -> Run:
        """Build a run from one row per entry, in any query order.

        Rows of one query keep their relative order (their ranking) unless ``sort_by_score``,
        which orders by descending score and keeps the order of ties. Duplicates of a document
        within a query are dropped after the first and counted.

        Parameters
        ----------
        query_ids, doc_ids : sequence of str
            What the codes count into; each id once.
        query_codes, doc_codes : integer arrays of shape (nnz,)
        scores : float array of shape (nnz,), optional
            Higher is better.
        """
        queries = np.asarray(query_codes, dtype=np.int64)
        docs = np.asarray(doc_codes, dtype=np.int64)
        values = None if scores is None else np.asarray(scores, dtype=np.float64)
        order = (
            _by_score(queries, values)
            if sort_by_score and values is not None
            else np.argsort(queries, kind="stable")
        )
        repeated = np.zeros(len(order), dtype=bool)
        if _holds_twice(queries, docs):
            key = (queries * max(len(doc_ids), 1) + docs)[order]
            by_key = np.argsort(key, kind="stable")
            repeated[by_key[1:]] = key[by_key[1:]] == key[by_key[:-1]]
        kept = order[~repeated]
        offsets = np.zeros(len(query_ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(queries[kept], minlength=len(query_ids)), out=offsets[1:])
        return cls(
            query_ids=tuple(query_ids),
            offsets=offsets,
            doc_codes=docs[kept].astype(np.int32),
            doc_ids=Vocabulary.of(doc_ids),
            scores=None if values is None else values[kept],
            name=name,
            n_duplicates=len(order) - len(kept),
        )

    @classmethod
    def from_lists(cls, lists: Iterable[RankedList], *, name: str = "run") -> Run:
        """Collect per-query lists; scores are kept when every list has them."""
        rows = list(lists)
        doc_ids, docs = coded(d for row in rows for d in row.doc_ids)
        scored = [row.scores for row in rows if row.scores is not None]
        return cls.from_arrays(
            query_ids=[row.query_id for row in rows],
            query_codes=np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            doc_codes=docs,
            doc_ids=doc_ids,
            scores=np.concatenate(scored) if scored and len(scored) == len(rows) else None,
            name=name,
        )

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Mapping[str, float]], *, name: str = "run") -> Run:
        """Build a run from ``{query_id: {doc_id: score}}``; order by score, ties in given order."""
        rows = list(mapping.values())
        doc_ids, docs = coded(chain.from_iterable(rows))
        lengths = list(map(len, rows))
        scores = np.fromiter(
            chain.from_iterable(row.values() for row in rows), np.float64, len(docs)
        )
        return cls.from_arrays(
            query_ids=list(mapping),
            query_codes=np.repeat(np.arange(len(rows)), lengths),
            doc_codes=docs,
            doc_ids=doc_ids,
            scores=scores,
            name=name,
            sort_by_score=True,
        )

    @cached_property
    def query_codes(self) -> npt.NDArray[np.int64]:
        """Query index of each entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Rank of each entry within its query, starting at 1, shape (nnz,)."""
        return np.arange(1, len(self.doc_codes) + 1) - self.offsets[self.query_codes]

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self.query_ids):,} queries, {len(self):,} documents found>"

    def __len__(self) -> int:
        return len(self.doc_codes)

    def __iter__(self) -> Iterator[RankedList]:
        return (self.ranked_list(i) for i in range(len(self.query_ids)))

    def ranked_list(self, index: int) -> RankedList:
        """Return the list of query number ``index``."""
        part = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return RankedList(
            query_id=self.query_ids[index],
            doc_ids=tuple(self.doc_ids[c] for c in self.doc_codes[part]),
            scores=None if self.scores is None else self.scores[part],
        )

    def top(self, depth: int) -> Run:
        """Return the run cut after ``depth`` documents per query."""
        require_at_least(1, depth=depth)
        keep = self.ranks <= depth
        offsets = np.zeros_like(self.offsets)
        np.cumsum(np.minimum(np.diff(self.offsets), depth), out=offsets[1:])
        return replace(
            self,
            offsets=offsets,
            doc_codes=self.doc_codes[keep],
            scores=None if self.scores is None else self.scores[keep],
        )


# Human relevance judgments as columns.


@dataclass(frozen=True, kw_only=True, eq=False)
class Qrels:
    """Relevance grades of (query, document) pairs.

    Parameters
    ----------
    query_ids : tuple of str, length nq
        Unique. The queries over which measures are averaged.
    doc_ids : tuple of str
        Vocabulary, unique.
    query_codes, doc_codes : int32 arrays of shape (m,)
        Indices into ``query_ids`` and ``doc_ids``; no pair occurs twice.
    grades : int32 array of shape (m,)
        At least 0; 0 is judged not relevant.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    query_codes: npt.NDArray[np.int32]
    doc_codes: npt.NDArray[np.int32]
    grades: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc_ids", Vocabulary.of(self.doc_ids))
        if not self.query_codes.shape == self.doc_codes.shape == self.grades.shape:
            raise DataError("qrels columns differ in length")
        if len(self.grades) and self.grades.min() < 0:
            raise DataError(f"grade {self.grades.min()} is negative; grades start at 0")
        _require_once(self, "keep one judgment per pair")

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, int]]) -> Qrels:
        """Build qrels from ``(query_id, doc_id, grade)`` rows."""
        judged = list(rows)
        return cls._from_columns(
            *coded(query_id for query_id, _, _ in judged),
            (doc_id for _, doc_id, _ in judged),
            (grade for _, _, grade in judged),
        )

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Mapping[str, int]]) -> Qrels:
        """Build qrels from ``{query_id: {doc_id: grade}}``."""
        rows = {query: row for query, row in mapping.items() if row}
        return cls._from_columns(
            Vocabulary(rows),
            np.repeat(np.arange(len(rows), dtype=np.int32), list(map(len, rows.values()))),
            chain.from_iterable(rows.values()),
            chain.from_iterable(row.values() for row in rows.values()),
        )

    @classmethod
    def _from_columns(
        cls,
        query_ids: Vocabulary,
        query_codes: CodeArray,
        docs: Iterable[str],
        values: Iterable[int],
    ) -> Qrels:
        doc_ids, doc_codes = coded(docs)
        return cls(
            query_ids=query_ids,
            doc_ids=doc_ids,
            query_codes=query_codes,
            doc_codes=doc_codes,
            grades=np.maximum(np.array(list(values), dtype=np.int32), 0),
        )

    def __repr__(self) -> str:
        return f"<Qrels: {len(self):,} judgments of {len(self.query_ids):,} queries>"

    def __len__(self) -> int:
        return len(self.grades)

    def take(self, rows: npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]) -> Qrels:
        """Return the judgments asked for; query ids and vocabulary stay."""
        return Qrels(
            query_ids=self.query_ids,
            doc_ids=self.doc_ids,
            query_codes=self.query_codes[rows],
            doc_codes=self.doc_codes[rows],
            grades=self.grades[rows],
        )


def _pair(judged: Qrels | LabelDistributions, row: int) -> str:
    return (
        f"query {judged.query_ids[judged.query_codes[row]]!r}, document "
        f"{judged.doc_ids[judged.doc_codes[row]]!r}"
    )


def _require_once(judged: Qrels | LabelDistributions, remedy: str) -> None:
    keys = judged.query_codes.astype(np.int64) * max(len(judged.doc_ids), 1) + judged.doc_codes
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(same):
        first = _pair(judged, int(order[same[0]]))
        raise DataError(f"{len(same)} pair(s) judged twice, first {first}; {remedy}")


# What a judge believes about relevance: a distribution over grades for every pair.


_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelDistributions:
    """Probabilities of the grades 0 … R of (query, document) pairs.

    Parameters
    ----------
    query_ids : tuple of str
        Unique.
    doc_ids : tuple of str
        Vocabulary, unique.
    query_codes, doc_codes : int32 arrays of shape (m,)
        Indices into ``query_ids`` and ``doc_ids``; no pair occurs twice.
    probs : float64 array of shape (m, R + 1)
        Rows sum to 1 (within 1e-6; they are rescaled to sum to 1 exactly).

    Raises
    ------
    DataError
        Naming the first pair whose row does not sum to 1, is negative or not finite, or occurs
        twice.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    query_codes: npt.NDArray[np.int32]
    doc_codes: npt.NDArray[np.int32]
    probs: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.probs.ndim != 2 or self.probs.shape[1] < 2:
            raise DataError(
                f"label distributions of shape {self.probs.shape}: one row per pair and one column "
                "per grade, at least two"
            )
        if not self.query_codes.shape == self.doc_codes.shape == self.probs.shape[:1]:
            raise DataError("label distribution columns differ in length")
        totals = self.probs.sum(axis=1)
        # written so that NaN counts as wrong
        bad = ~((np.abs(totals - 1) <= _SUM_TOLERANCE) & (self.probs >= -_SUM_TOLERANCE).all(1))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(
                f"{bad.sum()} label distribution(s) do not sum to 1, first {_pair(self, row)}: "
                f"{np.array2string(self.probs[row], precision=6)} sums to {totals[row]:.6g}; "
                "divide each row by its sum, and leave out pairs the judge gave no answer for"
            )
        probs = np.maximum(self.probs, 0.0)
        object.__setattr__(self, "probs", probs / probs.sum(axis=1, keepdims=True))
        _require_once(self, "average the distributions or keep one")

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, Sequence[float]]]) -> LabelDistributions:
        """Build from ``(query_id, doc_id, probabilities)`` rows."""
        judged = list(rows)
        if not judged:
            raise DataError("no label distributions: at least one judged pair is needed")
        n_grades = len(judged[0][2])
        for query_id, doc_id, row in judged:
            if len(row) != n_grades:
                raise DataError(
                    f"query {query_id!r}, document {doc_id!r}: {len(row)} probabilities where "
                    f"the first pair has {n_grades}"
                )
        query_ids, query_codes = coded(query_id for query_id, _, _ in judged)
        doc_ids, doc_codes = coded(doc_id for _, doc_id, _ in judged)
        return cls(
            query_ids=query_ids,
            doc_ids=doc_ids,
            query_codes=query_codes,
            doc_codes=doc_codes,
            probs=np.array([row for _, _, row in judged], dtype=np.float64),
        )

    @classmethod
    def from_qrels(cls, qrels: Qrels, *, n_grades: int) -> LabelDistributions:
        """Give every judged pair all its probability on its grade.

        Raises
        ------
        DataError
            If a grade is not below ``n_grades``.
        """
        if len(qrels) and qrels.grades.max() >= n_grades:
            row = int(np.argmax(qrels.grades))
            raise DataError(
                f"grade {qrels.grades[row]} of {_pair(qrels, row)} is outside the scale "
                f"0 … {n_grades - 1}"
            )
        return cls(
            query_ids=qrels.query_ids,
            doc_ids=qrels.doc_ids,
            query_codes=qrels.query_codes,
            doc_codes=qrels.doc_codes,
            probs=np.eye(n_grades)[qrels.grades],
        )

    @classmethod
    def mean_of(cls, judges: Sequence[LabelDistributions]) -> LabelDistributions:
        """Average the distributions of several judges, for each pair of those that labelled it.

        Raises
        ------
        DataError
            If their scales have different numbers of grades.
        """
        grades = sorted({judge.n_grades for judge in judges})
        if len(grades) != 1:
            raise DataError(
                f"judges with {' and '.join(map(str, grades))} grades cannot be averaged; state "
                "the number of grades where votes lack the highest, or rescale their labels"
            )
        if len(judges) == 1:
            return judges[0]
        queries: dict[str, int] = {}
        docs: dict[str, int] = {}
        query_codes, doc_codes = (
            np.concatenate([
                np.array([index.setdefault(i, len(index)) for i in ids], dtype=np.int64)[codes]
                for ids, codes in columns
            ])
            for index, columns in (
                (queries, [(judge.query_ids, judge.query_codes) for judge in judges]),
                (docs, [(judge.doc_ids, judge.doc_codes) for judge in judges]),
            )
        )  # fmt: skip
        pairs, row = np.unique(query_codes * len(docs) + doc_codes, return_inverse=True)
        probs = np.concatenate([judge.probs for judge in judges])
        total = np.stack([np.bincount(row, weights=column) for column in probs.T], axis=1)
        return cls(
            query_ids=tuple(queries),
            doc_ids=tuple(docs),
            query_codes=(pairs // len(docs)).astype(np.int32),
            doc_codes=(pairs % len(docs)).astype(np.int32),
            probs=total / total.sum(axis=1, keepdims=True),
        )

    @property
    def n_grades(self) -> int:
        """Number of grades, R + 1."""
        return int(self.probs.shape[1])

    def __repr__(self) -> str:
        return f"<LabelDistributions: {len(self):,} pairs, grades 0 to {self.n_grades - 1}>"

    def __len__(self) -> int:
        return len(self.query_codes)


# A corpus with its queries and judgments, and what it allows one to conclude.


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Everything an audit of a retriever needs.

    Parameters
    ----------
    name : str
    corpus : Corpus
        The mixed corpus: documents of every source.
    queries : tuple of Query
    qrels : Qrels
    design : {"rewrites", "independent", "unknown"}
        ``"rewrites"``: documents of different sources with one ``pair_id`` say the same thing, so
        a skew is source bias proper. ``"independent"``: they answer the same query but differ in
        content and quality, so a skew is not bias by itself.
    license, attribution : str
        Shown in every report made from the data.
    """

    name: str
    corpus: Corpus
    queries: tuple[Query, ...]
    qrels: Qrels
    design: Literal["rewrites", "independent", "unknown"] = "unknown"
    license: str = ""
    attribution: str = ""

    def __repr__(self) -> str:
        corpus = repr(self.corpus).strip("<>").removeprefix("Corpus: ")
        return f"<Dataset {self.name} ({self.design}): {len(self.queries):,} queries, {corpus}>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Counts between edges.

    Parameters
    ----------
    edges : float64 array of shape (bins + 1,)
    counts : int64 array of shape (bins,)
        Values outside the outer edges are in the first and the last bin.
    mean, median : float
    """

    edges: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)
    mean: float
    median: float

    @classmethod
    def of(cls, values: FloatArray, edges: FloatArray) -> Histogram:
        """Count the finite ones of values, of which there is at least one."""
        finite = values[np.isfinite(values)]
        counts, _ = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)
        return cls(
            edges=edges.copy(),
            counts=counts.astype(np.int64),
            mean=float(finite.mean()),
            median=float(np.median(finite)),
        )
