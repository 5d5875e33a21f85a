"""The verdict on a correctness score: does it tell right from wrong, does it reward style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.answers.data import (
    AdjustmentCode,
    AnswerBias,
    AnswerFinding,
    AnswerScorer,
    AnswerScores,
    AnswerSpread,
    AnswerStyle,
    AnswerUse,
    RankInversions,
    ThresholdVerdicts,
)
from rag_sourcebias.core.codec import PathLike, read_fitted, write_fitted
from rag_sourcebias.core.data import BoolArray, FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.infer.means import group_codes, others_below
from rag_sourcebias.measure.texts import word_counts
from rag_sourcebias.retrieval.cache import checked_vectors

# How much a correctness score rewards the system rather than the answer ([W] §5).


class PairedAnswers(NamedTuple):
    """Scores of correct answers to the questions that every system answered correctly.

    Parameters
    ----------
    systems : tuple of str, length k
    scores : float64 array of shape (m, k)
    clusters : int64 array of shape (m,), optional
        Codes of the questions' clusters.
    """

    systems: tuple[str, ...]
    scores: FloatArray
    clusters: IntArray | None


def paired_correct(answers: AnswerScores) -> PairedAnswers:
    """Take the questions that every system answered correctly, with a score.

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    systems = answers.system_names
    usable = answers.scored & (answers.correct == 1)
    rows = _of_all_systems(answers, usable)
    if not len(rows):
        counts = np.bincount(answers.system_codes[usable], minlength=len(systems)).tolist()
        shown = ", ".join(f"{s!r} {n}" for s, n in zip(systems, counts, strict=True))
        raise InsufficientDataError(
            f"no question has a correct, scored answer of every system (such answers: {shown}); "
            "leave out systems that answer little, or judge more answers",
            n=0,
        )
    return PairedAnswers(
        systems=systems,
        scores=answers.scores[rows],
        clusters=answers.clusters_of(rows),
    )


def _of_all_systems(answers: AnswerScores, usable: BoolArray) -> IntArray:
    """Rows of the questions with a usable answer of every system; shape (questions, systems)."""
    shape = (int(answers.question_codes.max()) + 1, len(answers.system_names))
    table = np.full(shape, -1, dtype=np.int64)
    table[answers.question_codes[usable], answers.system_codes[usable]] = np.flatnonzero(usable)
    rows: IntArray = table[(table >= 0).all(axis=1)]
    return rows


def answer_spread(answers: AnswerScores, *, ddof: int = 0) -> AnswerSpread:
    """Mean score per system on correct answers, paired by question, and its spread.

    Parameters
    ----------
    ddof : int
        0 is the standard deviation of these systems ([W]), 1 estimates that of all systems such
        as these.

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    pairs = paired_correct(answers)
    n, k = pairs.scores.shape
    means = pairs.scores.mean(axis=0)
    within = float(np.sqrt(pairs.scores.var(axis=0, ddof=1).mean())) if n > 1 else 0.0
    # Equal scores differ by rounding from their mean.
    within_sd = within if within > 1e-12 * max(1.0, np.abs(means).max()) else None
    usable = answers.scored & (answers.correct == 1)
    effects = None
    if within_sd is not None:
        effects = tuple(((means - means.mean()) / within_sd).tolist())
    return AnswerSpread(
        systems=pairs.systems,
        means=tuple(means.tolist()),
        n_correct=tuple(np.bincount(answers.system_codes[usable], minlength=k).tolist()),
        n_questions=n,
        unfairness=float(means.std(ddof=ddof)),
        within_sd=within_sd,
        effects=effects,
    )


def correctness_auc(answers: AnswerScores) -> float | None:
    """Probability that a correct answer scores above a wrong one, ties counting one half.

    Over all scored answers with a human verdict, of all systems together.

    Returns
    -------
    float or None
        In [0, 1]; None if there is no correct or no wrong answer.
    """
    found = if_enough(question_auc, answers)
    return None if found is None else found.auc


def system_aucs(answers: AnswerScores) -> dict[str, float | None]:
    """:func:`correctness_auc` among the answers of each system."""
    codes = answers.system_codes
    return {
        name: correctness_auc(answers.take(codes == code))
        for code, name in enumerate(answers.system_names)
    }


# A correctness score without what length and style add to it.
# Among correct answers to the same question a difference in score is style. The adjustment learns
# from these differences how the score falls with length, and subtracts that. Where one system
# alone writes answers of some length, what is its own and what is length cannot be told apart, and
# both go.


_PER_COEFFICIENT = 5  # answers beyond the first of each question, for every coefficient
_CONSTANT = 1e-9  # a spread below this share of the values is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleAdjustment:
    """What the style of an answer adds to its score; made by :func:`fit_adjustment`.

    Parameters
    ----------
    shortest, longest : float
        ln(1 + words) of the correct answers it was fitted on; beyond them the offset is constant.
    knots : tuple of float
        ln(1 + words) where the slope changes.
    coefficients : float64 array of shape (1 + knots,)
        Of ln(1 + words), and of the change at each knot.
    center : float
        Makes the mean offset of the fitted answers 0: the score keeps its level.
    n_answers, n_questions : int
        Correct answers behind it, and their questions, each with at least two.
    encoder : str
        Fingerprint of the encoder whose similarities it was fitted on; empty where it is not
        known, or where the scores come from something else.
    """

    shortest: float
    longest: float
    knots: tuple[float, ...]
    coefficients: FloatArray
    center: float
    n_answers: int
    n_questions: int
    encoder: str = ""

    def offset(self, words: IntArray) -> FloatArray:
        """What style adds to the score of answers of so many words; of the same shape."""
        span = (self.shortest, self.longest)
        return _terms(words, span, self.knots) @ self.coefficients - self.center

    def apply(self, answers: AnswerScores) -> AnswerScores:
        """Return the answers with the offset subtracted from their scores."""
        return replace(answers, scores=answers.scores - self.offset(answers.words))

    def adjust(self, responses: Sequence[str], similarities: FloatArray) -> AdjustedScores:
        """Adjust the similarity of each response; the texts are only measured.

        A response without words gets the offset of the shortest answers of the fit.

        Parameters
        ----------
        responses : sequence of str, length n
        similarities : float64 array of shape (n,)
        """
        offset = self.offset(word_counts(responses))
        return AdjustedScores(similarities, offset, np.clip(similarities - offset, -1.0, 1.0))

    def check_encoder(self, fingerprint: str) -> None:
        """Refuse an encoder other than the one that the adjustment was fitted on.

        Raises
        ------
        DataError
            If both are known and differ: what style adds is a property of the encoder.
        """
        if self.encoder and self.encoder != fingerprint:
            raise DataError(
                f"the adjustment was fitted on encoder {self.encoder!r}, not on {fingerprint!r}; "
                "fit it on this one (dataclasses.replace(adjustment, encoder='') skips this check)"
            )


def fit_adjustment(answers: AnswerScores, *, encoder: str = "") -> StyleAdjustment:
    """Learn from correct answers to the same questions what style adds to the score.

    Least squares of score − mean over the question on the same differences of ln(1 + words),
    linear between knots at its quartiles. Wrong and unjudged answers are not used.

    Parameters
    ----------
    answers : AnswerScores
        Scores in any unit, with verdicts of people; several systems for each question.
    encoder : str
        Fingerprint of the encoder behind the scores, kept with the adjustment.

    Raises
    ------
    InsufficientDataError
        If too few questions have several correct answers.

    Examples
    --------
    >>> words = np.tile([1, 5, 20, 60], 30)
    >>> given = AnswerScores(
    ...     question_ids=tuple(f"q{i // 4}" for i in range(120)),
    ...     systems=("a", "b", "c", "d") * 30,
    ...     scores=1 - 0.1 * np.log1p(words),
    ...     correct=np.ones(120),
    ...     words=words,
    ... )
    >>> np.ptp(fit_adjustment(given).apply(given).scores).round(6)
    np.float64(0.0)
    """
    used = answers.scored & (answers.correct == 1)
    used &= (np.bincount(answers.question_codes, weights=used) > 1)[answers.question_codes]
    n = int(np.count_nonzero(used))
    questions = answers.question_codes[used]
    n_questions = len(np.unique(questions))
    lengths = np.log1p(answers.words[used]) if n else np.zeros(1)
    span = (float(lengths.min()), float(lengths.max()))
    inner = np.unique(np.quantile(lengths, [0.25, 0.5, 0.75]))
    knots = tuple(inner[(inner > span[0]) & (inner < span[1])].tolist())
    needed = _PER_COEFFICIENT * (1 + len(knots))
    if n - n_questions < needed:
        raise InsufficientDataError(
            f"{n} correct, scored answers to {n_questions} question(s) with several of them are "
            f"too few to learn what style adds; {needed} more answers than questions are needed",
            n=n - n_questions,
            n_needed=needed,
        )
    terms = _terms(answers.words[used], span, knots)
    scores, within = _within(answers.scores[used], questions), _within(terms, questions)
    # A constant column differs from its mean by rounding only, which must not become a slope.
    moved = within.std(axis=0) > _CONSTANT * (1e-300 + np.abs(terms).max(axis=0))
    scale = np.where(moved, within.std(axis=0), np.inf)
    coefficients = np.linalg.lstsq(within / scale, scores, rcond=1e-9)[0] / scale
    return StyleAdjustment(
        shortest=span[0],
        longest=span[1],
        knots=knots,
        coefficients=coefficients,
        center=float((terms @ coefficients).mean()),
        n_answers=n,
        n_questions=n_questions,
        encoder=encoder,
    )


def cross_fit_adjustment(
    answers: AnswerScores,
    *,
    folds: int = 5,
    rng: np.random.Generator | int = 0,
) -> AnswerScores:
    """Adjust each answer with a fit that has not seen its question.

    Parameters
    ----------
    folds : int
        Parts into which the questions, or their clusters, are dealt at random.

    Returns
    -------
    AnswerScores
        In the same order, with adjusted scores.

    Raises
    ------
    DataError
        If there are fewer questions than folds, or fewer than 2 folds.
    InsufficientDataError
        If the questions outside some fold are too few for a fit.
    """
    codes = answers.units
    n = int(codes.max()) + 1
    part = np.random.default_rng(rng).permutation(n) % folds
    scores = np.empty(len(answers))
    for fold in range(folds):
        inside = (part == fold)[codes]
        fit = fit_adjustment(answers.take(~inside))
        scores[inside] = fit.apply(answers.take(inside)).scores
    return replace(answers, scores=scores)


def _terms(words: IntArray, span: tuple[float, float], knots: tuple[float, ...]) -> FloatArray:
    """One column per coefficient."""
    length = np.clip(np.log1p(words), *span)
    return np.column_stack([length, *(np.maximum(length - knot, 0.0) for knot in knots)])


def _within(values: FloatArray, groups: IntArray) -> npt.NDArray[Any]:
    """Values minus the mean of their group, along the first axis."""
    code = group_codes(groups)
    columns = values.reshape(len(values), -1)
    sums = np.column_stack([np.bincount(code, weights=column) for column in columns.T])
    return (columns - (sums / np.bincount(code)[:, None])[code]).reshape(values.shape)


# A fitted style adjustment as a JSON file.


_KIND = "style adjustment"
_SCHEMA_VERSION = 1


def write_adjustment(adjustment: StyleAdjustment, path: PathLike) -> None:
    """Write an adjustment; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    write_fitted(adjustment, path, kind=_KIND, version=_SCHEMA_VERSION)


def read_adjustment(path: PathLike) -> StyleAdjustment:
    """Read what :func:`write_adjustment` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or holds no complete adjustment.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    found = read_fitted(StyleAdjustment, path, kind=_KIND, version=_SCHEMA_VERSION)
    wanted = 1 + len(found.knots)
    if found.coefficients.shape != (wanted,):
        raise DataError(
            f"{path}: {found.coefficients.size} coefficients; expected {wanted}, one for the "
            "length and each knot"
        )
    numbers = (found.shortest, found.longest, found.center, *found.knots, *found.coefficients)
    if not np.isfinite(numbers).all():
        raise DataError(f"{path} holds a number that is missing or not finite")
    return found


# Similarity of answers to references that list several accepted wordings.


def reference_similarity(
    references: Sequence[Sequence[str]], answers: Sequence[str], encoder: Encoder
) -> FloatArray:
    """Cosine of each answer with the nearest alternative of its reference ([W] §5).

    Both are encoded as documents, each distinct text once.

    Parameters
    ----------
    references : sequence of sequences of str, length n
        Alternatives of each reference.
    answers : sequence of str, length n
        An empty answer has no similarity.

    Returns
    -------
    float64 array of shape (n,)
        In [−1, 1]; NaN for an empty answer.

    Raises
    ------
    DataError
        If a vector is not finite or has length 0.
    """
    wanted = [[part.strip() for part in parts if part.strip()] for parts in references]
    filled = [row for row, answer in enumerate(answers) if answer.strip()]
    similarity = np.full(len(answers), np.nan)
    if not filled:
        return similarity
    texts = {answers[row] for row in filled} | {part for row in filled for part in wanted[row]}
    place = {text: i for i, text in enumerate(sorted(texts))}
    names = [text[:80] for text in place]
    found = checked_vectors(
        encoder.encode_documents(list(place)),
        what=f"encoder {encoder.name!r}",
        names=names,
        similarity="dot",
    )
    vectors = found.astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not norms.all():
        raise DataError(
            f"encoder {encoder.name!r} returned a vector of zeros for "
            f"{names[int(norms.argmin())]!r}, which has no cosine"
        )
    vectors /= norms
    for row in filled:
        parts = vectors[[place[part] for part in wanted[row]]]
        similarity[row] = (parts @ vectors[place[answers[row]]]).max()
    return np.asarray(np.clip(similarity, -1.0, 1.0))  # rounding may exceed the bounds


# The style adjustment of a similarity, from texts: fit it once, apply it to any response.
# A scorer inside an evaluation framework sees one response and one reference at a time; what a
# response's style adds was learned before, from answers that people judged.


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


def fit_similarity_adjustment(answers: AnswerTexts, encoder: Encoder) -> StyleAdjustment:
    """Learn what style adds to the similarity of an encoder, from answers that people judged.

    Parameters
    ----------
    answers : AnswerTexts
        Several correct answers, of several systems, to each of some questions.
    encoder : Encoder
        Its fingerprint is kept with the adjustment.

    Raises
    ------
    InsufficientDataError
        If too few questions have several correct answers.
    DataError
        If the encoder returns vectors that have no cosine.
    """
    return fit_adjustment(
        AnswerScores(
            question_ids=answers.question_ids,
            systems=answers.systems,
            scores=reference_similarity(answers.references, answers.answers, encoder),
            correct=answers.correct,
            words=word_counts(answers.answers),
        ),
        encoder=encoder.fingerprint,
    )


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
    return np.asarray(np.clip(np.einsum("ij,ij->i", a, b) / norms, -1.0, 1.0))


# What each question contributes to the AUC of correct against wrong answers.


class QuestionAUC(NamedTuple):
    """An AUC as a mean over questions, to first order.

    Parameters
    ----------
    auc : float
        In [0, 1]; over all systems equal to :func:`correctness_auc`.
    influence : float64 array of shape (n_questions,)
        Of each question, or cluster of questions, with a usable answer, in the order of first
        occurrence. The error of the AUC is about the mean of these; their mean is 0. Two scores of
        the same answers are compared question by question.
    sizes : int64 array of shape (n_questions,)
        Usable answers of each.
    n_pairs : int
        Pairs of a question with a correct answer and another with a wrong one that can be formed
        so that no question is used twice: what there is of independent comparisons.
    """

    auc: float
    influence: FloatArray
    sizes: IntArray
    n_pairs: int


def question_auc(answers: AnswerScores, *, within_systems: bool = False) -> QuestionAUC:
    """Placements of DeLong et al. (1988), summed over the answers to a question (Obuchowski 1997).

    Answers to one question are easy or hard, and correct or wrong, together; only questions are
    independent.

    Parameters
    ----------
    within_systems : bool
        Compare answers of one system only, over all its pairs of a correct and a wrong answer.
        Otherwise a score also gains by putting systems that are often right above others.

    Raises
    ------
    InsufficientDataError
        If there is no pair of a correct and a wrong scored answer to compare.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct == 1
    codes = answers.system_codes if within_systems else np.zeros(len(answers), dtype=np.int64)
    n1, n0 = (
        np.bincount(codes[usable & which], minlength=int(codes.max()) + 1)
        for which in (right, ~right)
    )
    pairs = int(np.sum(n1 * n0))
    if not pairs:
        where = " of the same system" if within_systems else ""
        raise InsufficientDataError(
            f"of {usable.sum()} scored answers with a human verdict {n1.sum()} are "
            f"correct and {n0.sum()} wrong; both{where} are needed to see how well the score "
            "separates them",
            n=int(min(n1.sum(), n0.sum())),
            n_needed=1,
        )
    usable &= (n1 * n0 > 0)[codes]
    share, auc = np.zeros(len(answers)), 0.0
    for code in np.flatnonzero(n1 * n0):
        rows = np.flatnonzero(usable & (codes == code))
        good, below = right[rows], others_below(answers.scores[rows], right[rows])
        share[rows] = np.where(good, below, n1[code] - below)
        auc += float(below[good].sum()) / pairs
    share = (share - auc * np.where(right, n0[codes], n1[codes]))[usable] / pairs
    question = group_codes(answers.units[usable])
    n = int(question.max()) + 1
    return QuestionAUC(
        auc=auc,
        influence=n * np.bincount(question, weights=share).astype(np.float64),
        sizes=np.bincount(question),
        n_pairs=min(n // 2, *(len(np.unique(question[right[usable] == s])) for s in (True, False))),
    )


# Whether a correctness score follows the length of answers that are all correct.


def length_correlation(answers: AnswerScores) -> float | None:
    """Spearman correlation of score and words among correct answers to the same question.

    Answers are ranked within their question (mid-ranks for ties), ranks are taken as differences
    from the question's mean rank, and these are correlated over all questions. With one question
    it is Spearman's coefficient.

    Returns
    -------
    float or None
        In [−1, 1], negative when shorter answers score higher; None where no question has correct
        answers that differ in both.

    Examples
    --------
    >>> import numpy as np
    >>> answers = AnswerScores(
    ...     question_ids=("q",) * 3,
    ...     systems=("a", "b", "c"),
    ...     scores=np.array([0.9, 0.7, 0.4]),
    ...     correct=np.ones(3),
    ...     words=np.array([2, 9, 30]),
    ... )
    >>> length_correlation(answers)
    -1.0
    """
    used = answers.scored & (answers.correct == 1)
    if not used.any():
        return None
    question = group_codes(answers.question_codes[used])
    score = _centred_ranks(answers.scores[used], question)
    words = _centred_ranks(answers.words[used].astype(np.float64), question)
    size = float(np.sqrt((score**2).sum() * (words**2).sum()))
    if size == 0:
        return None
    return max(-1.0, min(1.0, float((score * words).sum()) / size))


def _centred_ranks(values: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    order = np.lexsort((values, groups))
    new_group = np.diff(groups[order], prepend=-1) != 0
    new_value = new_group | (np.diff(values[order], prepend=np.nan) != 0)
    block = np.cumsum(new_value) - 1
    middle = np.bincount(block, weights=np.arange(len(values))) / np.bincount(block)
    places = np.empty(len(values))
    places[order] = middle[block]
    return places - (np.bincount(groups, weights=places) / np.bincount(groups))[groups]


# What a biased correctness score does to verdicts: pass or fail, and who is best.


_SAME = 1e-12  # means closer than this are tied: the order of summation decides between them


def threshold_verdicts(answers: AnswerScores, threshold: float) -> ThresholdVerdicts:
    """Pass rates per system at a threshold, and verdicts that style decided.

    Raises
    ------
    DataError
        If the threshold is not finite.
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    if not math.isfinite(threshold):
        raise DataError(f"threshold {threshold} must be a finite number on the scale of the score")
    pairs = paired_correct(answers)
    passed, good = (pairs.scores >= threshold).sum(axis=1), answers.scores >= threshold

    def rates(verdict: int) -> tuple[float | None, ...]:
        found = answers.scored & (answers.correct == verdict)
        sides = [found & (answers.system_codes == code) for code in range(len(pairs.systems))]
        return tuple(float(good[rows].mean()) if rows.any() else None for rows in sides)

    return ThresholdVerdicts(
        systems=pairs.systems,
        pass_correct=rates(1),
        pass_wrong=rates(0),
        n_questions=len(passed),
        n_flipped=int(np.count_nonzero((passed > 0) & (passed < len(pairs.systems)))),
    )


def best_threshold(answers: AnswerScores) -> float | None:
    """Threshold with the largest sum of passing correct and failing wrong answers, as shares.

    Chosen and judged on the same answers it looks a little better than it is (Youden 1950).

    Returns
    -------
    float or None
        Halfway between the two scores it separates; the lowest score where no threshold is better
        than passing everything. None without a correct or without a wrong answer.
    """
    usable = answers.scored & ~np.isnan(answers.correct)
    right = answers.correct[usable] == 1
    n1 = np.count_nonzero(right)
    n0 = len(right) - n1
    if not n0 or not n1:
        return None
    values, code = np.unique(answers.scores[usable], return_inverse=True)
    # Passing from values[i] on: the wrong below it fail, the correct below it are lost.
    wrong_below, right_below = (
        np.cumsum(np.bincount(code[which], minlength=len(values)))[:-1] for which in (~right, right)
    )
    best = int(np.argmax(np.concatenate(([0.0], wrong_below / n0 - right_below / n1))))
    if best == 0:
        return float(values[0])
    below, above = values[best - 1 : best + 1].tolist()
    middle = below + (above - below) / 2
    return float(middle if middle > below else above)


def answered_by_all(answers: AnswerScores) -> IntArray:
    """Rows of the questions for which every system has a scored and judged answer.

    Returns
    -------
    int64 array of shape (questions, systems)

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    rows = _of_all_systems(answers, answers.scored & ~np.isnan(answers.correct))
    if not len(rows):
        k = len(answers.system_names)
        raise InsufficientDataError(
            f"no question has a scored and judged answer of each of the {k} system(s)", n=0
        )
    return rows


def rank_inversions(answers: AnswerScores) -> RankInversions:
    """Compare the order of systems by score with that by human correctness.

    Only questions for which every system has a scored and judged answer count, so that no system
    is helped by easier questions.

    Raises
    ------
    InsufficientDataError
        If there is no such question.
    """
    systems = answers.system_names
    rows = answered_by_all(answers)
    score, human = answers.scores[rows].mean(axis=0), answers.correct[rows].mean(axis=0)
    inversions, n_pairs = [], 0
    for i, j in combinations(range(len(systems)), 2):
        by_score, by_people = float(score[i] - score[j]), float(human[i] - human[j])
        if min(abs(by_score), abs(by_people)) <= _SAME:
            continue
        n_pairs += 1
        if by_score * by_people < 0:
            best, other = (i, j) if by_people > 0 else (j, i)
            inversions.append((systems[best], systems[other]))
    return RankInversions(
        systems=systems,
        mean_scores=tuple(score.tolist()),
        correctness=tuple(human.tolist()),
        n_questions=len(rows),
        inversions=tuple(inversions),
        n_pairs=n_pairs,
    )


# The verdict on a correctness score: does it tell right from wrong, does it reward style.


SMALL = 0.1
"""Spread of the system means, in standard deviations within systems, that is called small: below
the smallest of Cohen's conventions for f."""

AUC_LOSS = 0.005
"""Fall of the AUC from which an adjustment is not recommended, be it chance or not."""

USELESS = 0.55
"""AUC within systems below which a score is called useless."""

_CUT = 0.2  # share of the spread below which an adjustment does not help


def answer_finding(scorer: AnswerScorer, *, n_needed: int | None = None) -> AnswerFinding:
    """Decide what the intervals of a score say.

    Parameters
    ----------
    n_needed : int, optional
        Questions that would decide whether the score rewards style.
    """
    style = answer_style(scorer.raw)
    return AnswerFinding(
        use=_use(scorer.raw.auc_within),
        style=style,
        left=None if scorer.adjusted is None else answer_style(scorer.adjusted),
        adjustment=_adjustment(scorer, style),
        n_questions=scorer.raw.spread.n_questions,
        n_needed=n_needed if style in (AnswerStyle.TOO_FEW, AnswerStyle.CANNOT_TELL) else None,
    )


def answer_style(bias: AnswerBias) -> AnswerStyle:
    """Decide whether a score, raw or adjusted, rewards a system's style."""
    found, sd = bias.unfairness, bias.spread.within_sd
    if found is None:
        return AnswerStyle.TOO_FEW
    if found.lower > 0:
        small = sd is not None and found.estimate < SMALL * sd
        return AnswerStyle.SLIGHT if small else AnswerStyle.REWARDS
    # Without spread within systems only an unfairness of exactly 0 is known to be small.
    alike = found.upper < SMALL * sd if sd is not None else found.upper == 0
    return AnswerStyle.ALIKE if alike else AnswerStyle.CANNOT_TELL


def _use(auc: Interval | None) -> AnswerUse:
    if auc is None:
        return AnswerUse.UNTESTED
    if auc.upper < USELESS:
        return AnswerUse.USELESS
    return AnswerUse.SEPARATES if auc.lower > USELESS else AnswerUse.CANNOT_TELL


def _adjustment(scorer: AnswerScorer, style: AnswerStyle) -> AdjustmentCode:
    if scorer.adjusted is None:
        return AdjustmentCode.ABSENT
    change = scorer.auc_change_within
    if change is not None and (change.estimate <= -AUC_LOSS or change.upper < 0):
        return AdjustmentCode.COSTS
    if style in (AnswerStyle.ALIKE, AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW):
        return AdjustmentCode.IDLE  # whatever the spread does then may be chance
    if scorer.spread_cut is not None and scorer.spread_cut >= _CUT:
        return AdjustmentCode.CUTS
    return AdjustmentCode.IDLE if style is AnswerStyle.SLIGHT else AdjustmentCode.FAILS
