"""One correctness score, raw and without what style adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.audit.answers_auc import auc_change_interval
from rag_sourcebias.audit.answers_bias import attempt, measure_bias, questions_needed
from rag_sourcebias.audit.answers_correctness import system_correctness
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.answer_finding import answer_finding, answer_style
from rag_sourcebias.measures.answer_adjustment import cross_fit_adjustment, fit_adjustment
from rag_sourcebias.measures.answer_verdicts import verdict_flips
from rag_sourcebias.types.answer_parts import AnswerStyle
from rag_sourcebias.types.answer_report import AnswerBias, AnswerConfig, AnswerScorer
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.intervals import Interval

__all__ = ["FitData", "measure_scorer"]

_NO_SPREAD = 1e-12
_OUTSIDE = 0.05  # share of answers beyond the lengths of the fit worth a note


@dataclass(frozen=True, slots=True, kw_only=True)
class FitData:
    """Other answers with scores of the same scorer, on which the adjustment is fitted."""

    name: str
    answers: AnswerScores


def measure_scorer(
    name: str,
    answers: AnswerScores,
    config: AnswerConfig,
    *,
    settings: Mapping[str, str],
    fit: FitData | None,
) -> AnswerScorer:
    """Measure one score before and after adjustment.

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system, or the data to fit on are too few.
    """
    notes: list[str] = []
    if answers.n_unscored > answers.n_empty:
        missing = int(np.count_nonzero(np.isnan(answers.scores) & (answers.words > 0)))
        notes.append(f"{missing} of {len(answers)} answers have words but no score; left out")
    raw = measure_bias(answers, config, notes=notes, called="raw score")
    correctness = system_correctness(answers, config, notes=notes)
    found = _adjust(answers, config, fit, notes) if config.adjust else None
    if found is None:
        scorer = AnswerScorer(
            name=name,
            settings=dict(settings),
            scores=answers.scores,
            adjusted_scores=np.empty(0),
            raw=raw,
            correctness=correctness,
            notes=tuple(notes),
        )
        return _decided(scorer, answers, config)
    after, how = found
    adjusted = measure_bias(after, config, notes=notes, called="adjusted score")
    to_pass, to_fail = verdict_flips(
        answers, after, raw.threshold, threshold_after=adjusted.threshold
    )
    before_spread = raw.spread.unfairness
    change, within = (
        _auc_change(answers, after, config, within_systems=inside) for inside in (False, True)
    )
    _note_change(within, notes)
    _note_losses(raw, adjusted, notes)
    scorer = AnswerScorer(
        name=name,
        settings=dict(settings),
        scores=answers.scores,
        adjusted_scores=after.scores,
        raw=raw,
        adjusted=adjusted,
        adjustment=how,
        spread_cut=1 - adjusted.spread.unfairness / before_spread
        if before_spread > _NO_SPREAD
        else None,
        n_flips=len(to_pass) + len(to_fail),
        auc_change=change,
        auc_change_within=within,
        correctness=correctness,
        notes=tuple(notes),
    )
    return _decided(scorer, answers, config)


def _decided(scorer: AnswerScorer, answers: AnswerScores, config: AnswerConfig) -> AnswerScorer:
    """Return the scorer with its verdict."""
    undecided = answer_style(scorer.raw) in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW)
    needed = questions_needed(answers, config) if undecided else None
    return replace(scorer, finding=answer_finding(scorer, n_needed=needed))


def _adjust(
    answers: AnswerScores, config: AnswerConfig, fit: FitData | None, notes: list[str]
) -> tuple[AnswerScores, str] | None:
    """Adjusted answers and how they came about; None (and a note) where too few are correct."""
    what = (
        "score minus what length adds, learned from correct answers to the same question (least "
        "squares on ln(1 + words), linear between its quartiles)"
    )
    if fit is not None:
        try:
            learned = fit_adjustment(fit.answers)
        except InsufficientDataError as error:
            raise InsufficientDataError(
                f"no adjustment can be fitted on {fit.name!r}: {error}",
                n=error.n,
                n_needed=error.n_needed,
            ) from error
        length = np.log1p(answers.words[answers.scored])
        outside = np.mean((length < learned.shortest) | (length > learned.longest))
        if outside > _OUTSIDE:
            notes.append(
                f"adjusted score: {outside:.0%} of the answers are shorter or longer than any "
                f"correct answer of {fit.name!r}, where the adjustment is constant"
            )
        return learned.apply(answers), (
            f"{what}; fitted on {fit.name!r} ({learned.n_answers:,} answers to "
            f"{learned.n_questions:,} questions)"
        )
    n_questions = len(set(answers.question_ids))
    if n_questions < config.folds:
        notes.append(
            f"adjusted score: {n_questions} question(s) cannot be dealt into {config.folds} folds"
        )
        return None
    moved = attempt(
        lambda: cross_fit_adjustment(answers, folds=config.folds, rng=config.seed),
        notes,
        "adjusted score",
    )
    if moved is None:
        return None
    return moved, (
        f"{what}; cross-fitted: each answer by a fit on the other {config.folds - 1} of "
        f"{config.folds} groups of questions"
    )


def _auc_change(
    before: AnswerScores, after: AnswerScores, config: AnswerConfig, *, within_systems: bool
) -> Interval | None:
    """Whether the adjusted score separates correct from wrong at least as well."""
    try:
        return auc_change_interval(
            before,
            after,
            confidence_level=config.confidence_level,
            within_systems=within_systems,
        )
    except InsufficientDataError:
        return None  # what is lacking was noted with the AUC itself, or nothing has changed


def _note_change(change: Interval | None, notes: list[str]) -> None:
    if change is None:
        return
    verdict = "no loss or gain beyond chance"
    if not change.lower <= 0 <= change.upper:
        how = "better" if change.estimate > 0 else "worse"
        verdict = f"the adjusted score separates correct from wrong {how}"
    notes.append(
        f"change of the AUC within systems by the adjustment: {change.estimate:+.3f} "
        f"[{change.lower:+.3f}, {change.upper:+.3f}], paired by question: {verdict}"
    )


def _note_losses(raw: AnswerBias, adjusted: AnswerBias, notes: list[str]) -> None:
    lower = [
        f"{name!r} {old:.3f} to {new:.3f}"
        for name, old in raw.system_aucs.items()
        if old is not None and (new := adjusted.system_aucs[name]) is not None and new < old
    ]
    if lower:
        notes.append(f"within single systems the AUC falls: {', '.join(lower)}")
    notes.append(
        "intervals of the adjusted score take the fitted adjustment as given; where one system "
        "alone writes answers of some length, its own part and that of length cannot be told apart"
    )
