"""Queries whose relevant documents exist twice: by people, and as a rewrite by an LLM."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures.source import source_codes_for
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import DocTags, Query, TagTable
from rag_sourcebias.types.relevance import Qrels

__all__ = ["FEWEST_QUERIES", "CanaryQueries"]

FEWEST_QUERIES = 20
_SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class CanaryQueries:
    """Queries to ask, and which documents of both sources answer them.

    Build it with :meth:`from_dataset` or :meth:`from_tables`. The documents must be in the index
    of the retriever that is probed, the twins with equal chances: a rewrite that was never
    indexed looks like a skew.

    Parameters
    ----------
    queries : tuple of Query, length nq
        At least 20, with unique ids and texts that are not blank.
    qrels : Qrels
        Relevant documents (grade at least 1) of both sources; ``query_ids`` are those of
        ``queries``, in that order.
    tags : TagTable
        Source of every document of the qrels.
    human, llm : str
        Sources compared.

    Raises
    ------
    DataError
        If ids repeat, a text is blank, or a query lacks a relevant document of a source; the
        message names the queries.
    InsufficientDataError
        If there are fewer than 20 queries.
    """

    queries: tuple[Query, ...] = field(repr=False)
    qrels: Qrels = field(repr=False)
    tags: TagTable = field(repr=False)
    human: str
    llm: str

    def __post_init__(self) -> None:
        ids = [query.query_id for query in self.queries]
        _refuse("query id given twice", [i for i, n in Counter(ids).items() if n > 1])
        _refuse("query without text", [q.query_id for q in self.queries if not q.text.strip()])
        if len(ids) < FEWEST_QUERIES:
            raise InsufficientDataError(
                f"{len(ids)} canary queries are too few: at least {FEWEST_QUERIES} with relevant "
                "documents of both sources are needed for a figure that says anything",
                n=len(ids),
                n_needed=FEWEST_QUERIES,
            )
        if self.qrels.query_ids != tuple(ids):
            raise DataError("query ids of the qrels must be those of the queries, in their order")
        if self.human == self.llm:
            raise DataError(f"human and llm are both {self.human!r}; give two sources to compare")
        _known(self.tags, self.human, self.llm)
        for source in (self.human, self.llm):
            lacking = np.flatnonzero(_relevant_counts(self.qrels, self.tags, source) == 0)
            what = f"query without a relevant document of source {source!r}"
            _refuse(what, [ids[row] for row in lacking])

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, *, human: str = "human", llm: str | None = None
    ) -> CanaryQueries:
        """Take the queries of a paired data set that have relevant documents of both sources.

        Parameters
        ----------
        dataset : Dataset
            Of rewrites. Queries that lack one of the sources are left out.
        human : str
        llm : str or None
            May be left out where the data set has two sources.

        Raises
        ------
        DataError
            If the documents are no twins, or the sources are not clear.
        InsufficientDataError
            If fewer than 20 queries remain.
        """
        if dataset.design == "independent":
            raise DataError(
                f"data set {dataset.name!r} has no twins: its sources answer the same queries with "
                "different contents; canary queries need rewrites"
            )
        others = [source for source in dataset.corpus.tags.sources if source != human]
        if llm is None and len(others) != 1:
            raise DataError(
                f"data set {dataset.name!r} has the sources {list(dataset.corpus.tags.sources)}; "
                f"name the one to hold against {human!r} with llm="
            )
        other = others[0] if llm is None else llm
        tags, qrels = dataset.corpus.tags, dataset.qrels
        _known(tags, human, other)
        good = np.ones(len(qrels.query_ids), dtype=bool)
        for source in (human, other):
            good &= _relevant_counts(qrels, tags, source) > 0
        kept = {name for name, keep in zip(qrels.query_ids, good, strict=True) if keep}
        rows = [
            (qrels.query_ids[q], qrels.doc_ids[d], tags.get(qrels.doc_ids[d]).source, int(grade))
            for q, d, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
            if grade > 0 and qrels.query_ids[q] in kept
        ]
        return cls.from_tables(
            [query for query in dataset.queries if query.query_id in kept],
            [(q, d, s, grade) for q, d, s, grade in rows if s in (human, other)],
            human=human,
            llm=other,
        )

    @classmethod
    def from_tables(
        cls,
        queries: Mapping[str, str] | Iterable[Query],
        relevant: Iterable[tuple[str, str, str | None, int]],
        *,
        human: str,
        llm: str,
    ) -> CanaryQueries:
        """Build it from texts by query id and rows of ``(query id, document id, source, grade)``.

        Raises
        ------
        DataError
            As the class, and if a row names a query without text, another source, a grade below
            1, a pair twice or a document with two sources.
        InsufficientDataError
            If there are fewer than 20 queries.
        """
        if isinstance(queries, Mapping):
            asked = tuple(Query(query_id=name, text=text) for name, text in queries.items())
        else:
            asked = tuple(queries)
        number = {query.query_id: row for row, query in enumerate(asked)}
        table = list(relevant)
        _refuse("relevant document of an unknown query id", {q for q, *_ in table} - number.keys())
        _refuse("relevant document with a grade below 1", [d for _, d, _, g in table if g < 1])
        what = f"document whose source is neither {human!r} nor {llm!r}"
        _refuse(what, [d for _, d, source, _ in table if source not in (human, llm)])
        pairs = {(d, source) for _, d, source, _ in table}
        source_of = dict(pairs)
        if len(source_of) < len(pairs):
            both = [d for d, source in pairs if source != source_of[d]]
            _refuse("document with two sources", both)
        # A query that no row names must still be one, so that its absence is what is reported.
        code = {doc_id: row for row, doc_id in enumerate(source_of)}
        qrels = Qrels(
            query_ids=tuple(query.query_id for query in asked),
            doc_ids=tuple(code),
            query_codes=np.array([number[q] for q, *_ in table], dtype=np.int32),
            doc_codes=np.array([code[d] for _, d, *_ in table], dtype=np.int32),
            grades=np.array([grade for *_, grade in table], dtype=np.int32),
        )
        tags = TagTable.from_tags((d, DocTags(source=source_of[d])) for d in source_of)
        return cls(queries=asked, qrels=qrels, tags=tags, human=human, llm=llm)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def fingerprint(self) -> str:
        """Identity of queries, documents and grades: state of other queries is of no use."""
        pairs = zip(self.qrels.query_codes, self.qrels.doc_codes, self.qrels.grades, strict=True)
        tags, docs = self.tags, self.qrels.doc_ids
        rows = sorted((int(q), docs[d], tags.get(docs[d]).source, int(g)) for q, d, g in pairs)
        texts = [(query.query_id, query.text) for query in self.queries]
        text = json.dumps([self.human, self.llm, texts, rows])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _relevant_counts(qrels: Qrels, tags: TagTable, source: str) -> npt.NDArray[np.int64]:
    """Relevant documents of a source, by query."""
    wanted = source_codes_for(qrels.doc_ids, tags) == tags.sources.index(source)
    rows = (qrels.grades > 0) & wanted[qrels.doc_codes]
    return np.bincount(qrels.query_codes[rows], minlength=len(qrels.query_ids))


def _known(tags: TagTable, *sources: str) -> None:
    """Raise if no document has one of the sources."""
    for source in sources:
        if source not in tags.sources:
            raise DataError(f"no document has source {source!r}; sources are {list(tags.sources)}")


def _refuse(what: str, names: Iterable[str]) -> None:
    """Raise if there are any, naming the first few."""
    found: Sequence[str] = sorted(set(names))
    if found:
        shown = ", ".join(repr(name) for name in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise DataError(f"{what}: {shown}{more}")
