"""From a model's answers about one item to a distribution over grades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.judges.parsing import is_refusal, read_distribution, read_grade
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.completions import Completion, CompletionError, LabelScores

__all__ = ["Verdict", "from_scores", "from_text", "from_votes", "smoothed"]

Reply = Completion | LabelScores | CompletionError | None
T = TypeVar("T")


_STATUS = {"timeout": "timeout", "rejected": "rejected", "not_asked": "not_asked"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one item.

    Parameters
    ----------
    probs : float64 array of shape (L,) or None
    status, reason : str
        As in :class:`~rag_sourcebias.types.judgments.Judgments`.
    mass : float
    n_bounded : int
    """

    probs: FloatArray | None = None
    status: str = "ok"
    reason: str = ""
    mass: float = math.nan
    n_bounded: int = 0

    @classmethod
    def failed(cls, error: CompletionError) -> Verdict:
        """Tell why there was no answer."""
        return cls(status=_STATUS.get(error.reason, "error"), reason=str(error))


def from_scores(answer: Reply, labels: Sequence[str], temperature: float) -> Verdict:
    """Normalise label log-probabilities: softmax of log-probability / ``temperature`` ([R] §7)."""
    if isinstance(answer, CompletionError):
        return Verdict.failed(answer)
    scores = _expect(LabelScores, answer)
    logprobs = np.array(scores.logprobs, dtype=np.float64)
    if logprobs.shape != (len(labels),):
        raise DataError(f"{len(logprobs)} log-probabilities for {len(labels)} labels")
    if np.isnan(logprobs).any() or np.isposinf(logprobs).any():
        return Verdict(status="nan", reason=f"label log-probabilities {logprobs.tolist()}")
    top = float(logprobs.max())
    if math.isinf(top):
        return Verdict(
            status="garbage",
            reason="no label is among the continuations that the model reported",
            n_bounded=scores.n_bounded,
        )
    weights = np.exp((logprobs - top) / temperature)
    return Verdict(probs=weights / weights.sum(), mass=scores.mass, n_bounded=scores.n_bounded)


def from_text(reply: Reply, labels: Sequence[str]) -> Verdict:
    """Read a verbalised distribution or grade."""
    if isinstance(reply, CompletionError):
        return Verdict.failed(reply)
    answer = _expect(Completion, reply)
    probs = read_distribution(answer.text, labels)
    if probs is not None and answer.finish_reason not in ("content_filter", "refusal"):
        return Verdict(probs=probs)
    return _unreadable(answer)


def from_votes(replies: Sequence[Reply], labels: Sequence[str], *, needed: int) -> Verdict:
    """Count sampled grades.

    Parameters
    ----------
    replies : sequence
        One per sample.
    labels : sequence of str
    needed : int
        Samples that must be readable; with fewer the item has the status of the first failure.
    """
    counts = np.zeros(len(labels))
    failures: list[Verdict] = []
    for reply in replies:
        if isinstance(reply, CompletionError):
            failures.append(Verdict.failed(reply))
            continue
        answer, grade = _expect(Completion, reply), None
        if answer.finish_reason not in ("content_filter", "refusal"):
            grade = read_grade(answer.text, labels)
        if grade is None:
            failures.append(_unreadable(answer))
        else:
            counts[grade] += 1
    read = float(counts.sum())
    if read >= needed:
        return Verdict(probs=counts / read, mass=read / len(replies))
    reason = f"{int(read)} of {len(replies)} samples could be read: {failures[0].reason}"
    return Verdict(status=failures[0].status, reason=reason, mass=read / len(replies))


def smoothed(probs: FloatArray, weight: float) -> FloatArray:
    """Mix with the uniform distribution: (1 − ``weight``)·p + ``weight``/L.

    k votes with a pseudo-count of a per grade are ``weight`` = L·a / (k + L·a).
    """
    mixed: FloatArray = (1.0 - weight) * probs + weight / probs.shape[-1]
    return mixed


def _unreadable(answer: Completion) -> Verdict:
    shown = " ".join(answer.text.split())
    shown = repr(shown if len(shown) <= 80 else shown[:79] + "…")
    if answer.finish_reason in ("content_filter", "refusal") or is_refusal(answer.text):
        return Verdict(status="refused", reason=f"refused: {shown}")
    cut = ", cut off at max_tokens" if answer.finish_reason == "length" else ""
    return Verdict(status="garbage", reason=f"no grade in {shown}{cut}")


def _expect(kind: type[T], answer: object) -> T:
    if not isinstance(answer, kind):
        raise DataError(f"a completer returned {type(answer).__name__}, not {kind.__name__}")
    return answer
