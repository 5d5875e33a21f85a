"""The style adjustment of a similarity, from texts: fit it once, apply it to any response.

A scorer inside an evaluation framework sees one response and one reference at a time; what a
response's style adds was learned before, from answers that people judged (METHODS §3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.answer_adjustment import StyleAdjustment, fit_adjustment
from rag_sourcebias.measures.answer_similarity import reference_similarity
from rag_sourcebias.measures.text import word_counts
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.answer_texts import AnswerTexts
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.arrays import FloatArray

__all__ = [
    "AdjustedScores",
    "ResponseAdjuster",
    "cosine_similarities",
    "fit_similarity_adjustment",
]


class AdjustedScores(NamedTuple):
    """Scores of responses, all of shape (n,).

    Attributes
    ----------
    similarity : float64 array
        As the encoder gives it, in [−1, 1].
    offset : float64 array
        What the style of the response adds to it.
    score : float64 array
        similarity − offset, kept within [−1, 1].
    """

    similarity: FloatArray
    offset: FloatArray
    score: FloatArray


@dataclass(frozen=True, slots=True)
class ResponseAdjuster:
    """A fitted adjustment as a function of responses and their similarities.

    Parameters
    ----------
    adjustment : StyleAdjustment
    covariates : mapping of str to function
        How each covariate of the fit is computed from a response.

    Raises
    ------
    DataError
        If a covariate of the fit has no function, or ``adjustment`` is none.
    """

    adjustment: StyleAdjustment
    covariates: Mapping[str, Callable[[str], float]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.adjustment, StyleAdjustment):
            raise DataError(
                f"an object of type {type(self.adjustment).__qualname__} is no StyleAdjustment; "
                "make one with fit_similarity_adjustment or read_adjustment"
            )
        given = self.covariates or {}
        lacking = [name for name in self.adjustment.covariates if name not in given]
        if lacking:
            raise DataError(
                f"the adjustment was fitted with covariate {lacking[0]!r}; say how to compute it "
                f"from a response: covariates={{{lacking[0]!r}: function of the text}}"
            )

    def check_encoder(self, fingerprint: str) -> None:
        """Refuse an encoder other than the one that the adjustment was fitted on.

        Raises
        ------
        DataError
            If both are known and differ: what style adds is a property of the encoder.
        """
        fitted = self.adjustment.encoder
        if fitted and fitted != fingerprint:
            raise DataError(
                f"the adjustment was fitted on encoder {fitted!r}, not on {fingerprint!r}; fit it "
                "on this one (dataclasses.replace(adjustment, encoder='') skips this check)"
            )

    def __call__(self, responses: Sequence[str], similarities: npt.ArrayLike) -> AdjustedScores:
        """Adjust the similarity of each response; the texts are only measured.

        A response without words gets the offset of the shortest answers of the fit.

        Parameters
        ----------
        responses : sequence of str, length n
        similarities : array-like of shape (n,)
        """
        similarity = np.asarray(similarities, dtype=np.float64)
        n = len(responses)
        if not n:
            return AdjustedScores(similarity, similarity, similarity)
        known = self.covariates or {}
        rows = AnswerScores(
            question_ids=tuple(map(str, range(n))),
            systems=("",) * n,
            scores=similarity,
            correct=np.full(n, np.nan),
            words=word_counts(responses),
            covariates={
                name: np.array([known[name](text) for text in responses], dtype=np.float64)
                for name in self.adjustment.covariates
            },
        )
        offset = self.adjustment.offset(rows)
        return AdjustedScores(similarity, offset, np.clip(similarity - offset, -1.0, 1.0))


def fit_similarity_adjustment(
    answers: AnswerTexts, encoder: Encoder, *, within_systems: bool = False
) -> StyleAdjustment:
    """Learn what style adds to the similarity of an encoder, from answers that people judged.

    Parameters
    ----------
    answers : AnswerTexts
        Several correct answers, of several systems, to each of some questions.
    encoder : Encoder
        Its fingerprint is kept with the adjustment.
    within_systems : bool
        As for :func:`~rag_sourcebias.measures.fit_adjustment`.

    Raises
    ------
    InsufficientDataError
        If too few questions have several correct answers.
    DataError
        If the encoder returns vectors that have no cosine.
    """
    scores = AnswerScores(
        question_ids=answers.question_ids,
        systems=answers.systems,
        scores=reference_similarity(answers.references, answers.answers, encoder),
        correct=answers.correct,
        words=word_counts(answers.answers),
    )
    return fit_adjustment(scores, within_systems=within_systems, encoder=encoder.fingerprint)


def cosine_similarities(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    """Cosine of each row of ``first`` with the same row of ``second``.

    Parameters
    ----------
    first, second : array-like of shape (n, d)

    Returns
    -------
    float64 array of shape (n,)
        Within [−1, 1]: rounding cannot leave the bounds.

    Raises
    ------
    DataError
        If the shapes differ, or a vector is zero or not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2:
        raise DataError(f"vectors of shapes {a.shape} and {b.shape} have no cosine row by row")
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise DataError(f"a vector of row {bad[0]} is zero or not finite, and has no cosine")
    found: FloatArray = np.clip(np.einsum("ij,ij->i", a, b) / norms, -1.0, 1.0)
    return found
