"""What a probe keeps beside its log, so that a restart goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import time
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Dataset, DocTags, Qrels, Query, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.protocols import Retriever
from rag_sourcebias.core.values import FloatArray, check_level, from_plain
from rag_sourcebias.io.files import PRIVATE, PathLike, open_file, read_json, sound, write_atomic
from rag_sourcebias.monitor.data import CanaryPoint, check_range
from rag_sourcebias.observe.events import DroppedEvents, guarded
from rag_sourcebias.observe.unobserved import suppress
from rag_sourcebias.stats.ranking import MEASURES, relative_delta, source_codes_for, source_scores
from rag_sourcebias.stats.sequential import (
    BettingTest,
    ChangeDetector,
    read_state,
    rebuild,
    restore,
    write_state,
)

# Queries whose relevant documents exist twice: by people, and as a rewrite by an LLM.


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
            _refuse(
                f"query without a relevant document of source {source!r}",
                [ids[row] for row in lacking],
            )

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
        _refuse(
            f"document whose source is neither {human!r} nor {llm!r}",
            [d for _, d, source, _ in table if source not in (human, llm)],
        )
        pairs = {(d, source) for _, d, source, _ in table}
        source_of = dict(pairs)
        _refuse("document with two sources", [d for d, s in pairs if s != source_of[d]])
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


# Ask a live retriever, without its answers counting as production, and score what it says.


_logger = logging.getLogger("rag_sourcebias.monitor")
Ask = Callable[[str], Iterable[Any] | RankedList]
_MEASURE = re.compile(r"([A-Za-z]+)@([1-9][0-9]{0,3})")


def read_measure(measure: str) -> tuple[str, int]:
    """Split a name such as ``"NDCG@5"``.

    Raises
    ------
    DataError
        If it is not a measure of :mod:`rag_sourcebias.stats.ranking` with a cutoff.
    """
    found = _MEASURE.fullmatch(measure)
    if found is None or found[1] not in MEASURES:
        raise DataError(
            f"measure {measure!r} is unknown; accepted are {', '.join(MEASURES)} with a cutoff, "
            "such as 'NDCG@5'"
        )
    return found[1], int(found[2])


def ask_retriever(retriever: Retriever, *, depth: int = 10) -> Ask:
    """Return a callable for :class:`CanaryProbe` that asks a :class:`Retriever`.

    Its scores are kept, so that tied documents share their ranks as they do in an audit.
    """

    def ask(text: str) -> RankedList:
        return retriever.retrieve([Query(query_id="canary", text=text)], depth).ranked_list(0)

    return ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What was answered in one round.

    Parameters
    ----------
    rows : list of int
        Queries that were answered, as rows of the canary queries; one may come twice.
    lists : list of RankedList
        Their rankings.
    failed : int
        Queries that raised, gave something else than document ids, or took too long.
    """

    rows: list[int]
    lists: list[RankedList]
    failed: int


def ask_queries(
    ask: Ask,
    queries: CanaryQueries,
    rows: Iterable[int],
    *,
    doc_id: Callable[[Any], str] | None,
    timeout: float | None,
    dropped: DroppedEvents,
    stop: Callable[[], bool] = lambda: False,
) -> Answers:
    """Ask one query after the other; nothing that the retriever raises gets through.

    Parameters
    ----------
    rows : iterable of int
        Queries to ask; one that comes twice is asked twice.
    timeout : float or None
        A query that took longer counts as failed. It is not cut short: a thread cannot be.
    stop : callable
        Whether to leave the rest out, after the first.
    """
    answered: list[int] = []
    lists: list[RankedList] = []
    failed = 0
    for number, row in enumerate(rows):
        if number and stop():
            break
        started, found = time.monotonic(), None
        with guarded(dropped, "canary query failed"), suppress():
            found = _ranking(ask(queries.queries[row].text), str(len(lists)), doc_id)
        if found is not None and timeout is not None and time.monotonic() - started > timeout:
            dropped.add("canary query took longer than its time-out")
            found = None
        if found is None:
            failed += 1
        else:
            answered.append(row)
            lists.append(found)
    return Answers(rows=answered, lists=lists, failed=failed)


def ids_compared(queries: CanaryQueries, answers: Answers) -> bool:
    """Warn if nothing that came back is a known twin; False if nothing came back at all.

    Its id may have been read from the wrong place, and then every score is 0 without an error.
    """
    found = {doc_id for ranked in answers.lists for doc_id in ranked.doc_ids}
    if found and found.isdisjoint(queries.tags.doc_ids):
        _logger.warning(
            "none of the %d documents that answered the first canary round is one of the "
            "%d known twins; is their id read from the right place (doc_id=)?",
            len(found),
            len(queries.tags),
        )
    return bool(found)


def score_answers(queries: CanaryQueries, answers: Answers, measure: str) -> FloatArray:
    """Score rankings once per source, as :func:`rag_sourcebias.source_scores` does.

    Returns
    -------
    ndarray of shape (answers, 2)
        Scores of human and LLM documents, in [0, 1].
    """
    if not answers.rows:
        return np.empty((0, 2))
    name, cutoff = read_measure(measure)
    # A query may have come twice: each answer is a query of its own.
    qrels, n = queries.qrels, len(answers.rows)
    parts = [np.flatnonzero(qrels.query_codes == row) for row in answers.rows]
    entries = np.concatenate(parts)
    judged = Qrels(
        query_ids=tuple(str(number) for number in range(n)),
        doc_ids=qrels.doc_ids,
        query_codes=np.repeat(np.arange(n), [len(p) for p in parts]).astype(np.int32),
        doc_codes=qrels.doc_codes[entries],
        grades=qrels.grades[entries],
    )
    scores = source_scores(
        Run.from_lists(answers.lists),
        judged,
        queries.tags,
        sources=(queries.human, queries.llm),
        measures=[name],
        cutoffs=[cutoff],
    )
    # Rounding may pass 1 by an ulp.
    return np.asarray(np.clip(scores.values[0].T, 0.0, 1.0), np.float64)


def _ranking(answer: Any, name: str, doc_id: Callable[[Any], str] | None) -> RankedList:  # noqa: ANN401
    """Read an answer; a document that comes twice keeps its first rank (:class:`Run`)."""
    scores = None
    if isinstance(answer, RankedList):
        ids, scores = answer.doc_ids, answer.scores
    elif isinstance(answer, str | bytes):
        raise DataError("the retriever answered with one string; expected a list of document ids")
    else:
        ids = tuple(answer if doc_id is None else map(doc_id, answer))
    for found in ids:
        if not isinstance(found, str):
            raise DataError(
                f"the retriever answered with {type(found).__name__}; expected document ids "
                "(str), or pass doc_id= to read them off its items"
            )
    ranked = RankedList(query_id=name, doc_ids=ids, scores=scores)
    if scores is not None:
        Run.from_lists([ranked])  # refuses scores that are NaN or not as many: here, not later
    return ranked


# Confidence sequence of Relative Δ, which is a ratio of two means, by betting.
# With scores H, L in [0, 1] of the two sources, Relative Δ is 200·(E[H] − E[L])/(E[H] + E[L]), and
# m = E[H]/(E[H] + E[L]) = ½ + Δ/400 is the human share of both. Queries are drawn independently,
# so for the true m the numbers
# X_m = (1 − m)·H + m·(1 − L), in [0, 1], have the mean m,
# because (1 − m)·E[H] = m·E[L]. Each candidate m of a grid is therefore tested by betting
# (:mod:`~rag_sourcebias.stats.sequential`; Waudby-Smith & Ramdas 2024): no approximation, and valid
# at all rounds at once by Ville's inequality. X_m − m = (1 − m)·H − m·L: the capital of bets above
# m falls in m, that of bets below rises, so the candidates that stand are an interval; its ends
# are candidates that fell, hence the grid makes it wider, never narrower.


def observations(scores: FloatArray, shares: FloatArray) -> FloatArray:
    """Return X_m for scores of shape (n, 2) and shares of shape (points,): (n, points)."""
    found = (1 - shares) * scores[:, :1] + shares * (1 - scores[:, 1:])
    return np.clip(found, 0.0, 1.0)


class RelativeDeltaSequence:
    """Relative Δ of rounds so far, its bounds, and whether it left the reference or changed.

    The bounds are those of this moment, not the narrowest so far: the latter are empty once a
    retriever has changed for good, while these always hold the estimate.

    Parameters
    ----------
    reference : float
        In percent, strictly between −200 and 200.
    confidence_level : float
    points : int
        Candidates, evenly spread over [−200, 200]; 401 are one percent point apart.
    change_run_length : float
        Queries between false alarms of change, at least on average.

    Attributes
    ----------
    n : int
        Queries.
    total : ndarray of shape (2,)
        Sums of the scores.
    left_at : int
        Queries up to the first round after which the bounds did not hold the reference; else 0.
    changed_at : int
        Number of the query at which a change from the reference was seen first; else 0.
    """

    kind = "relative-delta"

    def __init__(
        self,
        *,
        reference: float = 0.0,
        confidence_level: float = 0.95,
        points: int = 401,
        change_run_length: float = 10_000.0,
    ) -> None:
        check_level(confidence_level)
        if not -200 < reference < 200:
            raise DataError(f"reference {reference!r} is outside (-200, 200); it is in percent")
        check_range("points", points, 3)
        self.reference, self.confidence_level = float(reference), confidence_level
        self.points, self.change_run_length = points, change_run_length
        share = 0.5 + self.reference / 400
        self.shares = np.unique(np.append(np.linspace(0.0, 1.0, points), share))
        self._at = int(np.searchsorted(self.shares, share))
        groups, level = len(self.shares), 1 - (1 - confidence_level) / 2
        self._above = BettingTest(
            self.shares, groups=groups, side="greater", confidence_level=level
        )
        self._below = BettingTest(self.shares, groups=groups, side="less", confidence_level=level)
        self._change = ChangeDetector(share, run_length=change_run_length)
        self.n, self.left_at, self.changed_at = 0, 0, 0
        self.total: FloatArray = np.zeros(2)

    @property
    def estimate(self) -> float | None:
        """Relative Δ so far, in percent; None before either source scored."""
        return relative_delta(*self.total.tolist())

    @property
    def evidence(self) -> float:
        """Logarithm of the e-value against the reference: the mean of both directions."""
        both = np.logaddexp(self._above.log_e[self._at], self._below.log_e[self._at])
        return float(both) - math.log(2)

    @property
    def change_evidence(self) -> float:
        """Logarithm of the change statistic; of its alarm level from the alarm on."""
        level = self.change_run_length if self.changed_at else float(self._change.statistic[0])
        return math.log(level) if level > 0 else 0.0

    def update(self, scores: npt.ArrayLike) -> None:
        """Add a round: scores of human and LLM documents, shape (n, 2), in [0, 1].

        Raises
        ------
        DataError
            If a score is not in [0, 1]; nothing is added then.
        """
        rows = np.asarray(scores, np.float64).reshape(-1, 2)
        if not ((rows >= 0) & (rows <= 1)).all():
            raise DataError("scores must be in [0, 1]")
        if not len(rows):
            return
        values = observations(rows, self.shares)
        self._above.update_many(values)
        self._below.update_many(values)
        moved = self._change.update_many(values[:, [self._at]])[:, 0] >= self.change_run_length
        if not self.changed_at and moved.any():
            self.changed_at = self.n + int(moved.argmax()) + 1
        self.n += len(rows)
        self.total = self.total + rows.sum(axis=0)
        here = max(self._above.log_e[self._at], self._below.log_e[self._at])
        if not self.left_at and here >= self._above.threshold:
            self.left_at = self.n

    def interval(self) -> tuple[float, float]:
        """Return the bounds at this moment, in percent."""
        threshold = self._above.threshold
        too_low = np.flatnonzero(self._above.log_e >= threshold)
        too_high = np.flatnonzero(self._below.log_e >= threshold)
        lower = float(self.shares[too_low[-1]]) if len(too_low) else 0.0
        upper = float(self.shares[too_high[0]]) if len(too_high) else 1.0
        return round(400 * lower - 200, 9), round(400 * upper - 200, 9)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        parts = {
            "above": self._above.to_dict(),
            "below": self._below.to_dict(),
            "change": self._change.to_dict(),
        }
        return write_state(self.kind, self.settings, self._members()) | {"parts": parts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RelativeDeltaSequence:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        settings, state = read_state(data, cls.kind)
        found = rebuild(cls, settings)
        restore(found, found._members(), state)
        parts = data.get("parts")
        if not isinstance(parts, Mapping):
            raise DataError(f"the state of kind {cls.kind!r} needs 'parts'")
        above = BettingTest.from_dict(parts.get("above", {}))
        below = BettingTest.from_dict(parts.get("below", {}))
        if not above.groups == below.groups == len(found.shares):
            raise DataError(f"the state of kind {cls.kind!r} holds tests of another grid")
        found._above, found._below = above, below
        found._change = ChangeDetector.from_dict(parts.get("change", {}))
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {
            "reference": self.reference,
            "confidence_level": self.confidence_level,
            "points": self.points,
            "change_run_length": self.change_run_length,
        }

    def _members(self) -> dict[str, Any]:
        names = ("n", "left_at", "changed_at", "total")
        return {name: getattr(self, name) for name in names}


# The log of canary rounds: one JSON object per line, appended and never rewritten.


_BLOCK = 1 << 16
_KINDS = {
    name: dict if name == "labels" else kind
    for name, kind in typing.get_type_hints(CanaryPoint).items()
}
_LONGEST = 1 << 14  # bytes that a point may take on average, labels and all


def append_point(path: PathLike, point: CanaryPoint) -> None:
    """Append a point and wait until it is on the disk.

    A line that a killed process left half written is closed first, so only that one is lost.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    line = json.dumps(point.to_dict(), allow_nan=False).encode("ascii") + b"\n"
    try:
        with Path(path).open("a+b", buffering=0) as stream:
            end = stream.seek(0, os.SEEK_END)
            if end:
                stream.seek(end - 1)
                if stream.read(1) != b"\n":
                    line = b"\n" + line
            if stream.write(line) != len(line):
                raise OSError("the disk took only part of the line")
            os.fsync(stream.fileno())
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def read_points(path: PathLike, limit: int = 2_000) -> list[CanaryPoint]:
    """Read the last points of a log, oldest first; only the end of a big file is read.

    Parameters
    ----------
    path : path
        A file that is not there yet has no points.
    limit : int
        At least 1.

    Raises
    ------
    DataError
        If the file cannot be read, or holds something else than points. Lines that are not JSON
        are left out: a process was killed, or is just writing.
    """
    check_range("limit", limit, 1)
    file = Path(path)
    if not os.path.lexists(file):
        return []
    with sound(file, "the log of a canary probe"), open_file(file) as stream:
        start = stream.seek(0, os.SEEK_END)
        least, data = max(0, start - limit * _LONGEST - _BLOCK), b""
        while start > least and data.count(b"\n") <= limit:
            size = min(_BLOCK, start)
            start -= size
            stream.seek(start)
            data = stream.read(size) + data
    lines = data.split(b"\n")[1 if start else 0 :]  # the first begins somewhere in a line
    tail = [line for line in lines if line.strip()]
    points: list[CanaryPoint] = []
    for line in tail:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # also bytes that are not UTF-8
            continue
        with sound(file, "a log of canary points", names_file=False):
            # `from_plain` says what is wrong with a point, but takes ten times as long.
            if isinstance(row, dict) and all(
                name in row and isinstance(row[name], kind) for name, kind in _KINDS.items()
            ):
                points.append(CanaryPoint(**{name: row[name] for name in _KINDS}))
            else:
                points.append(from_plain(CanaryPoint, row))
    if not points and len(tail) > 1:
        raise DataError(f"{file} holds no canary points; expected one JSON object per line")
    return points[-limit:]


# What a probe keeps beside its log, so that a restart goes on.


_KIND = "canary-probe"
_REMEDY = "delete it to start anew"


@dataclass(slots=True, kw_only=True)
class ProbeState:
    """Evidence so far, and where the draws stand.

    Parameters
    ----------
    settings : mapping of str to object
        What must not change between one process and the next.
    sequence : RelativeDeltaSequence
    entropy : int
        Seed; with the number of the round it seeds the draws of that round, so a restart goes on
        with draws that are independent of those before.
    rounds : int
        Rounds so far; resets do not change it.
    """

    settings: Mapping[str, Any]
    sequence: RelativeDeltaSequence
    entropy: int
    rounds: int = 0


def state_path(log: Path) -> Path:
    """Return the file beside a log."""
    return log.with_name(f"{log.name}.state")


def open_state(
    log: Path | None,
    settings: Mapping[str, Any],
    sequence: RelativeDeltaSequence,
    rng: np.random.Generator | int | None,
) -> ProbeState:
    """Return the state beside a log, or begin one with a new sequence and a seed.

    Raises
    ------
    DataError
        If the file cannot be read or written, or was written with other settings.
    UnsupportedVersionError
        If another release wrote it.
    """
    settings = {**settings, **sequence.settings}
    path = None if log is None else state_path(log)
    if path is not None and path.exists():
        data = read_json(path, "the state of a canary probe", remedy=_REMEDY)
        with sound(path, "the state of a canary probe", remedy=_REMEDY, names_file=False):
            found, members = read_state(data, _KIND)
            sequence = RelativeDeltaSequence.from_dict(data.get("sequence", {}))
        for name, value in settings.items():
            if found.get(name) != value:
                raise DataError(
                    f"{path} was written with {name} {found.get(name)!r}, now it is {value!r}; "
                    "probe into another log, or delete the file to start anew"
                )
        with sound(path, "whole numbers under 'entropy' and 'rounds'", remedy=_REMEDY):
            entropy, rounds = int(members["entropy"]), int(members["rounds"])
        if entropy < 0 or rounds < 0:
            raise DataError(f"{path} holds an entropy or rounds below 0; {_REMEDY}")
        return ProbeState(settings=found, sequence=sequence, entropy=entropy, rounds=rounds)
    entropy = int(np.random.default_rng(rng).integers(2**63))
    state = ProbeState(settings=settings, sequence=sequence, entropy=entropy)
    if log is not None:
        save_state(log, state)  # shows now whether it can be
    return state


def save_state(log: Path, state: ProbeState) -> None:
    """Write the state; a kill at any moment leaves the old one or the new one.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    members = {"entropy": str(state.entropy), "rounds": state.rounds}
    data = write_state(_KIND, state.settings, members) | {"sequence": state.sequence.to_dict()}
    write_atomic(state_path(log), json.dumps(data), mode=PRIVATE)
