"""Answers of several systems to the same questions, scored by a machine and judged by people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import BoolArray, FloatArray, IntArray
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["AnswerScores"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerScores:
    """One row per answer: its question, the system that gave it, its score, the human verdict.

    Parameters
    ----------
    question_ids, systems : tuples of str, length n
        No pair occurs twice.
    scores : float64 array of shape (n,)
        Correctness by machine, such as cosine(embed(reference), embed(answer)), in any unit;
        higher is better. NaN where there is none.
    correct : float64 array of shape (n,)
        Human verdict: 1 correct, 0 wrong, NaN where nobody judged.
    words : int64 array of shape (n,)
        Length of the answer. One without words has no style: it takes part in no measure, with or
        without a score, and is counted.
    covariates : mapping of str to float64 array of shape (n,)
        Other properties of style, finite.

    Raises
    ------
    DataError
        If columns differ in length, an answer occurs twice, or a value is outside its range; the
        message names question and system.
    """

    question_ids: tuple[str, ...]
    systems: tuple[str, ...]
    scores: FloatArray
    correct: FloatArray
    words: IntArray
    covariates: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.systems) != len(self):
            raise DataError(f"{len(self.systems)} systems for {len(self)} question ids")
        if not len(self):
            raise DataError("there is no answer; at least one row is needed")
        self._check_unique()
        object.__setattr__(self, "scores", self._column("scores", self.scores))
        object.__setattr__(self, "correct", self._column("correct", self.correct))
        words = self._column("words", self.words)
        covariates = {name: self._column(name, v) for name, v in self.covariates.items()}
        object.__setattr__(self, "covariates", covariates)
        self._check("score", self.scores, np.isinf, "a finite number, or NaN for no score")
        self._check(
            "human verdict",
            self.correct,
            lambda v: ~(np.isnan(v) | (v == 0) | (v == 1)),
            "1 for correct, 0 for wrong or NaN for not judged",
        )
        self._check(
            "number of words",
            words,
            lambda v: ~((v >= 0) & (v < 2**53) & (v == np.floor(v))),
            "a whole number of at least 0",
        )
        for name, values in covariates.items():
            self._check(f"covariate {name!r}", values, lambda v: ~np.isfinite(v), "a finite number")
        object.__setattr__(self, "words", words.astype(np.int64))

    def _column(self, name: str, values: npt.ArrayLike) -> FloatArray:
        try:
            column = np.array(values, dtype=np.float64)  # a copy: the caller's array may change
        except (TypeError, ValueError) as error:
            raise DataError(f"{name} must be numbers ({error})") from error
        if column.shape != (len(self),):
            raise DataError(f"{name} of shape {column.shape} for {len(self)} question ids")
        column.setflags(write=False)
        return column

    def _check_unique(self) -> None:
        seen: set[tuple[str, str]] = set()
        for row, pair in enumerate(zip(self.question_ids, self.systems, strict=True)):
            if pair in seen:
                raise DataError(f"{self._answer(row)} occurs twice; keep one row per answer")
            seen.add(pair)

    def _check(
        self, name: str, values: FloatArray, bad: Callable[[FloatArray], BoolArray], accepted: str
    ) -> None:
        rows = np.flatnonzero(bad(values))
        if len(rows):
            raise DataError(
                f"{name} {values[rows[0]]:g} of {self._answer(int(rows[0]))} is not accepted "
                f"({len(rows)} such answer(s)); expected {accepted}"
            )

    def _answer(self, row: int) -> str:
        return f"the answer of {self.systems[row]!r} to question {self.question_ids[row]!r}"

    def __len__(self) -> int:
        return len(self.question_ids)

    @property
    def system_names(self) -> tuple[str, ...]:
        """The systems, in the order in which they first occur."""
        return tuple(dict.fromkeys(self.systems))

    @property
    def system_codes(self) -> IntArray:
        """Index of each row's system in :attr:`system_names`; shape (n,)."""
        return _codes(self.systems)

    @property
    def question_codes(self) -> IntArray:
        """Index of each row's question, in the order of first occurrence; shape (n,)."""
        return _codes(self.question_ids)

    @property
    def scored(self) -> BoolArray:
        """Which answers have words and a score."""
        return ~np.isnan(self.scores) & (self.words > 0)

    @property
    def n_unscored(self) -> int:
        """Answers without a score."""
        return int(np.count_nonzero(np.isnan(self.scores)))

    @property
    def n_empty(self) -> int:
        """Answers without words."""
        return int(np.count_nonzero(self.words == 0))

    @property
    def n_empty_correct(self) -> int:
        """Answers without words that people marked correct: abstentions, or faulty labels."""
        return int(np.count_nonzero((self.words == 0) & (self.correct == 1)))

    @property
    def n_unjudged(self) -> int:
        """Answers without a human verdict."""
        return int(np.count_nonzero(np.isnan(self.correct)))

    def with_scores(self, scores: npt.ArrayLike) -> AnswerScores:
        """Return the same answers with other scores, such as adjusted ones."""
        return replace(self, scores=np.asarray(scores, dtype=np.float64))

    def take(self, rows: npt.NDArray[np.integer[Any]] | BoolArray) -> AnswerScores:
        """Return some of the answers, chosen by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return replace(
            self,
            question_ids=tuple(self.question_ids[i] for i in index),
            systems=tuple(self.systems[i] for i in index),
            scores=self.scores[index],
            correct=self.correct[index],
            words=self.words[index],
            covariates={name: values[index] for name, values in self.covariates.items()},
        )

    def judged_items(self) -> JudgedItems:
        """Return the answers as items with the score as the judge, grouped by system.

        From these, :func:`rag_sourcebias.audit.judge_items_with_intervals` gives each system's
        human correctness with an interval where only some answers were judged by people.
        """
        return JudgedItems(
            ids=tuple(f"{q}/{s}" for q, s in zip(self.question_ids, self.systems, strict=True)),
            human=self.correct,
            judge=self.scores,
            groups=self.systems,
            clusters=self.question_ids,
        )


def _codes(names: tuple[str, ...]) -> IntArray:
    place = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.fromiter((place[name] for name in names), np.int64, count=len(names))
