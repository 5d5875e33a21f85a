"""What is asked of a language model, what comes back, and what a judge said about every item."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import BoolArray, FloatArray, LabelDistributions, coded
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    SourceBiasError,
    require_at_least,
)
from rag_sourcebias.core.finding import Finding

# What is asked of a language model and what comes back.


FailureReason = Literal[
    "timeout", "unreachable", "rate_limited", "server", "malformed", "rejected", "not_asked"
]
_PASSING: tuple[FailureReason, ...] = ("timeout", "unreachable", "rate_limited", "server")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One question to a language model.

    Parameters
    ----------
    prompt : str
    labels : tuple of str
        Not empty: ask for the log-probability of each label as the continuation of the prompt
        (the rest is then ignored). Empty: ask for text.
    max_tokens : int
        Most tokens of the answer.
    temperature : float
        At least 0; 0 asks for the most likely answer.
    sample : int
        Number of the sample; also its seed. Requests that differ only here are asked separately.
    """

    prompt: str
    labels: tuple[str, ...] = ()
    max_tokens: int = 16
    temperature: float = 0.0
    sample: int = 0

    def __post_init__(self) -> None:
        require_at_least(1, max_tokens=self.max_tokens)
        if not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise DataError(f"temperature must be finite and at least 0, got {self.temperature}")
        if self.labels and (len(set(self.labels)) < max(len(self.labels), 2) or "" in self.labels):
            raise DataError(f"labels {self.labels} must be at least two, distinct and not empty")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Text that a model wrote.

    Parameters
    ----------
    text : str
    finish_reason : str
        ``"stop"``, ``"length"``, ``"content_filter"``, ``"refusal"``, or what the server says.
    prompt_tokens, completion_tokens : int
    logprobs : tuple of float or None
        Log-probability of each token of the text, where the server gives them.
    """

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class LabelScores:
    """Log-probability of each label as the continuation of one prompt.

    Parameters
    ----------
    logprobs : tuple of float
        One per label, in the order asked for. NaN where the model computed NaN.
    n_bounded : int
        Labels the server did not report; each stands at the smallest log-probability it did
        report, which no unreported label can exceed.
    prompt_tokens, completion_tokens : int
    """

    logprobs: tuple[float, ...]
    n_bounded: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def mass(self) -> float:
        """Probability that the continuation is one of the labels (an upper bound if bounded)."""
        return math.fsum(math.exp(value) for value in self.logprobs)


class CompletionError(SourceBiasError):
    """One request failed; others may succeed.

    Parameters
    ----------
    message : str
    reason : FailureReason
    retry_after : float or None
        Seconds the server asked to wait.
    fatal : bool
        Every other request would fail alike (a wrong key, an unknown model): the run stops.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: FailureReason,
        retry_after: float | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason: FailureReason = reason
        self.retry_after = retry_after
        self.fatal = fatal

    @property
    def passing(self) -> bool:
        """Whether asking again may help. A malformed answer may be a proxy's hiccup."""
        return not self.fatal and (self.reason in _PASSING or self.reason == "malformed")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a run asked and was charged for.

    Parameters
    ----------
    requests : int
    from_cache : int
        Of these, answered from the cache or by an equal request.
    failed : int
        Of these, without an answer in the end.
    retries : int
        Times a request was sent again.
    prompt_tokens, completion_tokens : int
        Of the answers that were new in this run.
    """

    requests: int = 0
    from_cache: int = 0
    failed: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


# Log-perplexities of texts as data.


@dataclass(frozen=True, kw_only=True, eq=False)
class LogPerplexities:
    """Log-perplexity of each text, in nats per token.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN for a text of which no token is predicted, such as an empty one.
    tokens : int64 array of shape (n,)
        Tokens predicted.
    parts : int64 array of shape (n,)
        Windows or chunks in which the text was read; more than 1 where it is longer than one.
    prefix_cut : int64 array of shape (n,), optional
        Of conditional ones: tokens at the end of the prefix that were not read for want of room.
    """

    values: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    prefix_cut: npt.NDArray[np.int64] | None = None

    @property
    def n_prefix_cut(self) -> int:
        """Texts whose prefix was not read to its end."""
        return 0 if self.prefix_cut is None else int(np.count_nonzero(self.prefix_cut))


# Items that a judge scored and people labelled in part.


def mean_judge(judges: FloatArray) -> FloatArray:
    """Equal-weight mean of several judges; shape (n,).

    Each is standardised by the values it gave, so that scales may differ, and the mean put back on
    the mean scale of the judges. Constant judges tell nothing and are left out.

    Parameters
    ----------
    judges : float64 array of shape (n, p)
        NaN where a judge gave no usable answer. The mean is over those that did; NaN for none.
    """
    total, said = np.zeros(len(judges)), np.zeros(len(judges))
    centres, scales = [], []
    for column in judges.T:
        answered = ~np.isnan(column)
        values = column[answered]
        scale = float(values.std()) if len(values) else 0.0
        if scale > 1e-10 * np.abs(values).max(initial=0.0):
            total[answered] += (values - values.mean()) / scale
            said += answered
            centres.append(float(values.mean()))
            scales.append(scale)
    if not scales:  # constant judges: nothing to standardise by
        known = ~np.isnan(judges)
        total, said = np.where(known, judges, 0.0).sum(axis=1), known.sum(axis=1, dtype=np.float64)
        centres, scales = [0.0], [1.0]
    mean = np.divide(total, said, out=np.full(len(judges), np.nan), where=said > 0)
    return np.asarray(float(np.mean(centres)) + float(np.mean(scales)) * mean)


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedItems:
    """Human and judge values of items, one row per item.

    Parameters
    ----------
    ids : tuple of str
        Unique.
    human : float64 array of shape (n,)
        NaN where nobody labelled the item; otherwise finite.
    judge : float64 array of shape (n,)
        NaN where the judge gave no usable answer; otherwise finite.
    groups : tuple of str or None
        What is compared, such as the system or the source each item comes from.
    clusters : tuple of str or None
        Items of one cluster (a question answered by several systems) may depend on each other.
    judges : mapping of str to float64 array of shape (n,), or None
        Values of several judges by name, of which ``judge`` is the mean: see :meth:`of_judges`.
    notes : tuple of Finding
        What was understood when the values were read, and a user should know.

    Raises
    ------
    DataError
        If columns differ in length, an id is repeated, or a value is infinite.
    """

    ids: tuple[str, ...]
    human: FloatArray
    judge: FloatArray
    groups: tuple[str, ...] | None = None
    clusters: tuple[str, ...] | None = None
    judges: Mapping[str, FloatArray] | None = None
    notes: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        by_people, by_judge = (int(np.isfinite(v).sum()) for v in (self.human, self.judge))
        return f"<JudgedItems: {len(self.ids):,}; {by_people:,} by people, {by_judge:,} by a judge>"

    def __post_init__(self) -> None:
        n = len(self.ids)
        for name in ("human", "judge"):
            object.__setattr__(self, name, self._column(name, getattr(self, name)))
        if self.judges is not None:
            object.__setattr__(
                self, "judges", {name: self._column(name, v) for name, v in self.judges.items()}
            )
        for name in ("groups", "clusters"):
            column = getattr(self, name)
            if column is not None and len(column) != n:
                raise DataError(f"{len(column)} {name} for {n} ids")
        if len(set(self.ids)) < n:
            seen: set[str] = set()
            again = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise DataError(f"item {again!r} occurs twice; keep one row per item")

    @classmethod
    def of_judges(
        cls,
        *,
        ids: tuple[str, ...],
        human: FloatArray,
        judges: Mapping[str, FloatArray],
        groups: tuple[str, ...] | None = None,
        clusters: tuple[str, ...] | None = None,
        notes: tuple[Finding, ...] = (),
    ) -> JudgedItems:
        """Items that several judges scored, or one judge several times.

        Parameters
        ----------
        judges : mapping of str to float64 array of shape (n,)
            In any units; NaN where one gave no usable answer.

        Returns
        -------
        JudgedItems
            ``judge`` is the mean of the judges (:func:`mean_judge`); with one, just its values.

        Raises
        ------
        DataError
            If there is no judge, or one of several has no value at all.
        """
        columns = {name: np.asarray(v, dtype=np.float64) for name, v in judges.items()}
        for name, values in columns.items():
            if values.shape != (len(ids),):
                raise DataError(f"{name} values of shape {values.shape} for {len(ids)} ids")
            if len(columns) > 1 and np.isnan(values).all():
                raise DataError(
                    f"judge {name!r} has no value for any of {len(ids)} items; leave it out"
                )
        if not columns:
            raise DataError("no judge is given")
        return cls(
            ids=ids,
            human=human,
            judge=(
                mean_judge(np.stack([*columns.values()], axis=1))
                if len(columns) > 1
                else next(iter(columns.values()))
            ),
            groups=groups,
            clusters=clusters,
            judges=columns if len(columns) > 1 else None,
            notes=notes,
        )

    def _column(self, name: str, column: FloatArray) -> FloatArray:
        values = np.asarray(column, dtype=np.float64)
        if values.shape != (len(self.ids),):
            raise DataError(f"{name} values of shape {values.shape} for {len(self.ids)} ids")
        bad = np.flatnonzero(np.isinf(values))
        if len(bad):
            raise DataError(
                f"{name} value of item {self.ids[bad[0]]!r} is infinite; use NaN for missing"
            )
        return values

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labeled(self) -> BoolArray:
        """Which items have a human label."""
        return ~np.isnan(self.human)

    @property
    def judged(self) -> BoolArray:
        """Which items have a judge value."""
        return ~np.isnan(self.judge)

    @property
    def n_labeled(self) -> int:
        """Items with a human label, whether or not the judge answered."""
        return int(np.count_nonzero(self.labeled))

    @property
    def n_unlabeled(self) -> int:
        """Items without a human label."""
        return len(self) - self.n_labeled

    @property
    def n_judge_missing(self) -> int:
        """Items for which the judge gave no usable answer, labelled or not."""
        return int(np.count_nonzero(np.isnan(self.judge)))

    def take(self, rows: npt.NDArray[np.integer[Any]] | BoolArray) -> JudgedItems:
        """Return some of the items, chosen by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows

        def pick(column: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if column is None else tuple(column[i] for i in index)

        return replace(
            self,
            ids=tuple(self.ids[i] for i in index),
            human=self.human[index],
            judge=self.judge[index],
            groups=pick(self.groups),
            clusters=pick(self.clusters),
            judges=self.judges and {name: v[index] for name, v in self.judges.items()},
        )


# What a judge said about every item it was asked about, failures included.


#: ``ok``: a distribution. ``garbage``: an answer without a readable grade. ``refused``: the model
#: declined. ``nan``: the model computed no number. ``timeout``: no answer in time, after all
#: retries. ``rejected``: the server does not accept this item (too long, filtered). ``error``: the
#: server failed, after all retries. ``not_asked``: the run stopped before.
STATUSES = ("ok", "garbage", "refused", "nan", "timeout", "rejected", "error", "not_asked")


@dataclass(frozen=True, kw_only=True)
class JudgeItem:
    """One item to judge.

    Parameters
    ----------
    query_id, doc_id : str
        The pair; for answers, the question and the system (or answer) that is judged.
    texts : mapping of str to str
        What stands at each placeholder of the prompt.
    """

    query_id: str
    doc_id: str
    texts: Mapping[str, str]

    @classmethod
    def relevance(cls, *, query_id: str, doc_id: str, query: str, text: str) -> JudgeItem:
        """Ask how relevant a text is to a query."""
        return cls(
            query_id=query_id,
            doc_id=doc_id,
            texts={"query": query, "passage": text, "document": text},
        )

    @classmethod
    def correctness(
        cls,
        *,
        query_id: str,
        doc_id: str,
        question: str,
        reference: str | Sequence[str],
        answer: str,
    ) -> JudgeItem:
        """Ask whether an answer agrees with one of the reference answers."""
        references = [reference] if isinstance(reference, str) else list(reference)
        if not references:
            raise DataError(
                f"question {query_id!r} has no reference answer; at least one is needed"
            )
        return cls(
            query_id=query_id,
            doc_id=doc_id,
            texts={"question": question, "reference": " / ".join(references), "answer": answer},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgments(Stored):
    """A judge's answers, one row per item, in the order in which they were asked for.

    Parameters
    ----------
    query_ids, doc_ids : tuples of str, length m
        No pair occurs twice.
    probs : float64 array of shape (m, L)
        Probability of each grade; rows that are not ok are NaN.
    status : tuple of str, length m
        ``"ok"``: a distribution. ``"garbage"``: an answer without a readable grade. ``"refused"``:
        the model declined. ``"nan"``: the model computed no number. ``"timeout"``: no answer in
        time. ``"rejected"``: the server does not accept this item (too long, filtered).
        ``"error"``: the server failed. ``"not_asked"``: the run stopped before.
    reasons : tuple of str, length m
        Why an item has no judgment; empty for ok.
    mass : float64 array of shape (m,)
        Scoring: probability the model gave to the labels together, before they were normalised
        (small: the labels are not what it would have said). Votes: share of samples that could be
        read. NaN where that is unknown.
    judge : str
    settings : mapping of str to str
    usage : Usage
        What this run asked and was charged for.
    cost : float or None
        Of this run; None without prices.
    currency : str

    Raises
    ------
    DataError
        If columns differ in length, a pair occurs twice, a status is unknown, or probabilities
        and status disagree.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    probs: FloatArray
    status: tuple[str, ...]
    reasons: tuple[str, ...]
    mass: FloatArray
    judge: str
    settings: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        m = len(self.query_ids)
        if self.probs.ndim != 2 or self.probs.shape[1] < 2:
            raise DataError(
                f"probabilities of shape {self.probs.shape}: one row per item, one column per grade"
            )
        columns = (self.doc_ids, self.probs, self.status, self.reasons, self.mass)
        if any(len(column) != m for column in columns):
            raise DataError("columns of the judgments differ in length")
        unknown = sorted(set(self.status) - set(STATUSES))
        if unknown:
            raise DataError(f"status {unknown[0]!r} is not one of {', '.join(STATUSES)}")
        wrong = np.flatnonzero(np.isfinite(self.probs).all(axis=1) != self.ok)
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"item query {self.query_ids[row]!r}, document {self.doc_ids[row]!r} has status "
                f"{self.status[row]!r} and probabilities {self.probs[row].tolist()}; exactly the "
                "ok items have probabilities"
            )
        twice = [
            p for p, n in Counter(zip(self.query_ids, self.doc_ids, strict=True)).items() if n > 1
        ]
        if twice:
            raise DataError(f"{len(twice)} pair(s) judged twice, first {twice[0]}; keep one each")

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def n_grades(self) -> int:
        """Number of grades."""
        return len(self.probs.T)

    @property
    def ok(self) -> BoolArray:
        """Which items have a judgment; shape (m,)."""
        return np.array([s == "ok" for s in self.status], dtype=np.bool_)

    def counts(self) -> dict[str, int]:
        """Return how many items ended with each status, in the order of :data:`STATUSES`."""
        found = Counter(self.status)
        return {status: found[status] for status in STATUSES if found[status]}

    def distributions(self) -> LabelDistributions:
        """Return the distributions of the items that have one.

        Raises
        ------
        InsufficientDataError
            If none has; the message names the first reason.
        """
        ok = self.ok
        if not ok.any():
            raise InsufficientDataError(
                f"no item was judged ({self}); first: "
                + (self.reasons[0] if self.reasons else "no items were given"),
                n=0,
            )
        rows = np.flatnonzero(ok)
        query_ids, query_codes = coded(self.query_ids[row] for row in rows)
        doc_ids, doc_codes = coded(self.doc_ids[row] for row in rows)
        return LabelDistributions(
            query_ids=query_ids,
            doc_ids=doc_ids,
            query_codes=query_codes,
            doc_codes=doc_codes,
            probs=self.probs[ok],
        )

    def values(self) -> FloatArray:
        """Return the grade expected of each item, NaN where there is no judgment; shape (m,)."""
        return self.probs @ np.arange(self.n_grades, dtype=np.float64)

    def __str__(self) -> str:
        counts = self.counts()
        parts = [f"{counts.pop('ok', 0)} of {len(self)} items judged by {self.judge}"]
        parts += [f"{n} {status.replace('_', ' ')}" for status, n in counts.items()]
        return ", ".join(parts)
