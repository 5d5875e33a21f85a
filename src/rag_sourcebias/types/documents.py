"""Documents, their tags and the queries, stored as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError

__all__ = ["Corpus", "DocTags", "Query", "TagTable"]

Origin = Literal["declared", "provenance", "detected", "pipeline"]
IntArray = npt.NDArray[np.int32]


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
        How the source became known: ``"declared"``, ``"provenance"``, ``"detected"`` or
        ``"pipeline"``.
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


def _encode(values: Iterable[str | None]) -> tuple[tuple[str, ...], IntArray]:
    """Factorise labels: sorted names and one code per value, -1 for None."""
    column = list(values)
    names = tuple(sorted({v for v in column if v is not None}))
    index: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    index[None] = -1
    return names, np.fromiter((index[v] for v in column), dtype=np.int32, count=len(column))


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
    """

    doc_ids: tuple[str, ...]
    sources: tuple[str, ...]
    source_codes: IntArray
    pair_ids: tuple[str, ...]
    pair_codes: IntArray
    styles: tuple[str, ...]
    style_codes: IntArray
    origins: tuple[Origin | None, ...] | None = None
    confidences: npt.NDArray[np.float32] | None = None
    whole: Mapping[str, int] | None = None

    @classmethod
    def from_tags(cls, items: Iterable[tuple[str, DocTags]]) -> TagTable:
        """Build a table from ``(doc_id, tags)`` pairs.

        Raises
        ------
        DataError
            If a document id occurs twice.
        """
        rows = list(items)
        doc_ids = tuple(doc_id for doc_id, _ in rows)
        if len(set(doc_ids)) != len(doc_ids):
            twice = Counter(doc_ids).most_common(1)[0][0]
            raise DataError(f"document id {twice!r} is tagged twice; each id may have one tag row")
        sources, source_codes = _encode(tags.source for _, tags in rows)
        pair_ids, pair_codes = _encode(tags.pair_id for _, tags in rows)
        styles, style_codes = _encode(tags.style for _, tags in rows)
        origins = tuple(tags.origin for _, tags in rows)
        confidences = [tags.confidence for _, tags in rows]
        return cls(
            doc_ids=doc_ids,
            sources=sources,
            source_codes=source_codes,
            pair_ids=pair_ids,
            pair_codes=pair_codes,
            styles=styles,
            style_codes=style_codes,
            origins=origins if any(origins) else None,
            confidences=(
                np.array([np.nan if c is None else c for c in confidences], dtype=np.float32)
                if any(c is not None for c in confidences)
                else None
            ),
        )

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Row number by document id."""
        return {doc_id: row for row, doc_id in enumerate(self.doc_ids)}

    def __len__(self) -> int:
        return len(self.doc_ids)

    def get(self, doc_id: str) -> DocTags:
        """Tags of one document; all unknown when the id is not in the table."""
        row = self.row_of.get(doc_id)
        if row is None:
            return DocTags()

        def name(names: tuple[str, ...], codes: IntArray) -> str | None:
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
        get = self.row_of.get
        return np.fromiter(map(get, doc_ids, repeat(-1)), dtype=np.int64, count=len(doc_ids))

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

    def merge_sources(self, groups: Mapping[str, Sequence[str]]) -> TagTable:
        """Return a table in which each group replaces its member sources.

        Examples
        --------
        >>> table = TagTable.from_tags([("a", DocTags(source="llm:x")), ("b", DocTags())])
        >>> table.merge_sources({"llm": ["llm:x"]}).sources
        ('llm',)
        """
        new_name: dict[str, str] = {}
        for group, members in groups.items():
            for member in members:
                if member not in self.sources:
                    raise DataError(
                        f"group {group!r} names source {member!r}, which no document has; "
                        f"sources are {list(self.sources)}"
                    )
                new_name[member] = group
        labels = [new_name.get(s, s) for s in self.sources]
        names, recode = _encode(labels)
        codes = np.where(
            self.source_codes >= 0, recode[self.source_codes] if len(recode) else -1, -1
        ).astype(np.int32)
        whole = None if self.whole is None else Counter[str]()
        for name, count in (self.whole or {}).items():
            if whole is not None:
                whole[new_name.get(name, name)] += count
        return replace(self, sources=names, source_codes=codes, whole=whole)

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

    texts: tuple[str, ...] = field(repr=False)
    tags: TagTable

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.tags):
            raise DataError(f"{len(self.texts)} texts but {len(self.tags)} tag rows; need as many")

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Document ids in row order."""
        return self.tags.doc_ids

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
