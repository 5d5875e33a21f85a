"""The verb: how much correctness scores reward a system's style ([W] §5)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.answers_scorer import FitData, measure_scorer
from rag_sourcebias.audit.answers_summary import (
    answer_warnings,
    check_answers,
    describe_systems,
    describe_texts,
)
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import word_counts
from rag_sourcebias.types.answer_report import (
    ANSWER_SCHEMA_VERSION,
    AnswerBiasReport,
    AnswerConfig,
)
from rag_sourcebias.types.answer_texts import AnswerTexts
from rag_sourcebias.types.answers import AnswerScores

__all__ = ["measure_answer_bias"]

Scores = Mapping[str, npt.ArrayLike]


def measure_answer_bias(
    scores: Scores,
    answers: AnswerTexts,
    *,
    config: AnswerConfig | None = None,
    fit_scores: Scores | None = None,
    fit_on: AnswerTexts | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
    text_statistics: bool = True,
) -> AnswerBiasReport:
    """Measure what correctness scores of answers reward besides correctness.

    Parameters
    ----------
    scores : mapping of scorer name to array-like of shape (n,)
        Score of each answer, higher is better, in any unit; NaN where there is none. The score of
        an answer without words is not used.
    answers : AnswerTexts of n answers
        Of at least 2 systems to the same questions, with human verdicts.
    config : AnswerConfig, optional
    fit_scores : mapping of scorer name to array-like of shape (m,), optional
        Scores of the answers in ``fit_on``, by the same scorers.
    fit_on : AnswerTexts of m answers, optional
        Other judged answers from which the adjustment is learned. Without them it is cross-fitted
        on ``answers``.
    settings : mapping of str to mapping, optional
        Settings to state per scorer.
    text_statistics : bool
        Compare the correct answers' texts with their references too.

    Returns
    -------
    AnswerBiasReport

    Raises
    ------
    DataError
        If there is only one system, a score is infinite, shapes disagree, or ``fit_on`` and
        ``fit_scores`` do not go together.
    InsufficientDataError
        If no question was answered correctly by every system.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lengths = np.tile([2, 12], 60)
    >>> answers = AnswerTexts(
    ...     question_ids=tuple(f"q{i // 2}" for i in range(120)),
    ...     systems=("short", "long") * 60,
    ...     answers=tuple("word " * n for n in lengths),
    ...     references=(("word",),) * 120,
    ...     correct=np.ones(120),
    ... )
    >>> scores = {"cosine": 0.9 - 0.1 * np.log1p(lengths) + 0.02 * rng.normal(size=120)}
    >>> report = measure_answer_bias(scores, answers, text_statistics=False)
    >>> scorer = report.scorer("cosine")
    >>> scorer.raw.spread.unfairness > 0.05, scorer.spread_cut > 0.9
    (True, True)
    """
    config = config or AnswerConfig()
    if not scores:
        raise DataError("no scores were given; give at least one scorer with a score per answer")
    check_answers(answers)
    fits = _fit_data(scores, config, fit_scores, fit_on)
    words = word_counts(answers.answers)
    scorers = tuple(
        measure_scorer(
            name,
            _scored(name, column, answers, words),
            config,
            settings=(settings or {}).get(name, {}),
            fit=fits.get(name),
        )
        for name, column in scores.items()
    )
    systems = describe_systems(answers, words)
    warnings = answer_warnings(answers, words, systems)
    texts = describe_texts(answers, words, config, warnings) if text_statistics else ()
    return AnswerBiasReport(
        schema_version=ANSWER_SCHEMA_VERSION,
        name=answers.name,
        config=config,
        question_ids=answers.question_ids,
        answer_systems=answers.systems,
        correct=answers.correct,
        words=words,
        systems=systems,
        scorers=scorers,
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        text_statistics=texts,
        license=answers.license,
        attribution=answers.attribution,
        warnings=tuple(warnings),
    )


def _scored(
    name: str, column: npt.ArrayLike, answers: AnswerTexts, words: npt.NDArray[np.int64]
) -> AnswerScores:
    try:
        return AnswerScores(
            question_ids=answers.question_ids,
            systems=answers.systems,
            scores=np.asarray(column, dtype=np.float64),
            correct=answers.correct,
            words=words,
        )
    except (TypeError, ValueError) as error:
        raise DataError(f"scorer {name!r}, answers {answers.name!r}: {error}") from error


def _fit_data(
    scores: Scores, config: AnswerConfig, fit_scores: Scores | None, fit_on: AnswerTexts | None
) -> dict[str, FitData]:
    if fit_on is None and fit_scores is None:
        return {}
    if fit_on is None or fit_scores is None:
        raise DataError("fit_on and fit_scores go together: other answers, and their scores")
    if not config.adjust:
        raise DataError("fit_on serves the adjustment, which adjust=False switches off")
    lacking = [name for name in scores if name not in fit_scores]
    if lacking:
        raise DataError(
            f"fit_scores lack scorer {lacking[0]!r}; they have {list(fit_scores)}: an adjustment "
            "holds only for the scorer it was learned from"
        )
    words = word_counts(fit_on.answers)
    return {
        name: FitData(name=fit_on.name, answers=_scored(name, fit_scores[name], fit_on, words))
        for name in scores
    }
