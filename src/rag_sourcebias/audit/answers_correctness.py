"""Human correctness of each system from few labels and many scores (METHODS §4)."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.audit.answers_bias import attempt
from rag_sourcebias.intervals import mean_interval
from rag_sourcebias.intervals.default import MIN_LABELED
from rag_sourcebias.intervals.mean import Method
from rag_sourcebias.types.answer_report import AnswerConfig, SystemCorrectness
from rag_sourcebias.types.answers import AnswerScores
from rag_sourcebias.types.intervals import Interval

__all__ = ["system_correctness"]


def system_correctness(
    answers: AnswerScores, config: AnswerConfig, *, notes: list[str]
) -> tuple[SystemCorrectness, ...]:
    """Estimate each system's share of correct answers with a rectifier of its own.

    Where ``config.labels`` asks for fewer labels than there are, that many are drawn at random
    for each system and the others are hidden. An answer without a score counts with the system's
    mean score: it costs precision, not validity.
    """
    if config.labels is not None:
        notes.append(
            f"human correctness: {config.labels} labels of each system were drawn at random (seed "
            f"{config.seed}) and its other labels hidden"
        )
    return tuple(
        _one(answers, name, code, config, notes) for code, name in enumerate(answers.system_names)
    )


def _one(
    answers: AnswerScores, name: str, code: int, config: AnswerConfig, notes: list[str]
) -> SystemCorrectness:
    rows = answers.system_codes == code
    human, scored = answers.correct[rows], answers.scored[rows]
    judged = np.flatnonzero(~np.isnan(human))
    used, truth = judged, None
    if config.labels is not None and config.labels < len(judged):
        # A seed per system: which labels one gets does not depend on the others.
        draw = np.random.default_rng([config.seed, code])
        used = np.sort(draw.choice(judged, config.labels, replace=False))
        truth = float(human.mean()) if len(judged) == len(human) else None
    elif config.labels is not None:
        notes.append(
            f"human correctness of {name!r}: it has only {len(judged)} labels; all are used"
        )
    others = np.setdiff1d(np.arange(len(human)), used)
    mean = float(answers.scores[rows][scored].mean()) if scored.any() else 0.0
    judge = np.where(scored, answers.scores[rows], mean)

    def interval(method: Method) -> Interval | None:
        return attempt(
            lambda: mean_interval(
                human[used],
                judge[used],
                judge[others],
                method=method,
                confidence_level=config.confidence_level,
                bounds=(0.0, 1.0),
            ),
            notes,
            f"human correctness of {name!r}",
        )

    alone = interval("labels")
    with_scores = None
    if alone is not None and len(others):
        if len(used) >= MIN_LABELED:
            with_scores = interval("regression")
        else:
            notes.append(
                f"human correctness of {name!r}: scores help from {MIN_LABELED} labels on, there "
                f"are {len(used)}"
            )
    return SystemCorrectness(
        system=name,
        n_labeled=len(used),
        n_unlabeled=len(others),
        labels_alone=alone,
        with_scores=with_scores,
        truth=truth,
    )
