"""Answers of several systems as texts, with the references they are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["AnswerTexts"]


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTexts:
    """One row per answer.

    Parameters
    ----------
    question_ids, systems : tuples of str, length n
        No pair occurs twice.
    answers : tuple of str, length n
        May be empty: an abstention, or a failed call.
    references : tuple of tuple of str, length n
        Accepted reference answers of the row's question, at least one.
    correct : float64 array of shape (n,)
        Human verdict: 1 correct, 0 wrong, NaN where nobody judged.
    name, license, attribution : str

    Raises
    ------
    DataError
        If there is no row, an answer occurs twice, columns differ in length, an answer is no
        text, a row has no reference, or a verdict is not 0, 1 or NaN.
    """

    question_ids: tuple[str, ...] = field(repr=False)
    systems: tuple[str, ...] = field(repr=False)
    answers: tuple[str, ...] = field(repr=False)
    references: tuple[tuple[str, ...], ...] = field(repr=False)
    correct: FloatArray = field(repr=False)
    name: str = "answers"
    license: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        n = len(self.question_ids)
        if not n:
            raise DataError("there is no answer; at least one row is needed")
        for what in ("systems", "answers", "references", "correct"):
            if len(getattr(self, what)) != n:
                raise DataError(f"{len(getattr(self, what))} {what} for {n} question ids")
        correct = np.array(self.correct, dtype=np.float64)
        correct.setflags(write=False)
        object.__setattr__(self, "correct", correct)
        seen: set[tuple[str, str]] = set()
        for i, pair in enumerate(zip(self.question_ids, self.systems, strict=True)):
            where = f"the answer of {pair[1]!r} to question {pair[0]!r}"
            if pair in seen:
                raise DataError(f"{where} occurs twice; keep one row per answer")
            seen.add(pair)
            if not isinstance(self.answers[i], str):
                raise DataError(f"{where} is not text: {self.answers[i]!r:.80}")
            if not any(r.strip() for r in self.references[i]):
                raise DataError(f"{where} has no reference answer to compare it with")
            if not (np.isnan(correct[i]) or correct[i] in (0.0, 1.0)):
                raise DataError(
                    f"human verdict {correct[i]:g} of {where} is not accepted; expected 1 for "
                    "correct, 0 for wrong or NaN for not judged"
                )

    def __len__(self) -> int:
        return len(self.question_ids)
