"""What a report of an answer audit says about the answers themselves."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.measures import TEXT_STATISTICS, installed_statistics
from rag_sourcebias.types.answer_report import AnswerConfig, AnsweringSystem
from rag_sourcebias.types.answer_texts import AnswerTexts
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = ["answer_warnings", "check_answers", "describe_systems", "describe_texts"]

_FEW = 100  # questions all systems answered correctly, below which differences are coarse
_FACTOR = 1.5  # of mean lengths worth a warning


def check_answers(answers: AnswerTexts) -> None:
    """Refuse answers that allow no comparison.

    Raises
    ------
    DataError
        If there is only one system.
    InsufficientDataError
        If nobody judged an answer, or none is correct.
    """
    names = list(dict.fromkeys(answers.systems))
    if len(names) < 2:
        raise DataError(
            f"all {len(answers)} answers are of system {names[0]!r}; a score's preference shows "
            "between at least 2 systems that answer the same questions"
        )
    judged = int(np.count_nonzero(~np.isnan(answers.correct)))
    correct = int(np.count_nonzero(answers.correct == 1))
    if not correct:
        state = f"{judged} judged answers" if judged else f"{len(answers)} answers, none judged,"
        raise InsufficientDataError(
            f"among {state} there is no answer that people marked correct; style shows between "
            "correct answers: judge some answers of every system to the same questions",
            n=0,
        )


def describe_systems(answers: AnswerTexts, words: IntArray) -> tuple[AnsweringSystem, ...]:
    """Count and measure the answers of each system."""
    column = np.asarray(answers.systems)
    found = []
    for name in dict.fromkeys(answers.systems):
        rows = column == name
        filled = rows & (words > 0)
        right = filled & (answers.correct == 1)
        found.append(
            AnsweringSystem(
                name=name,
                n_answers=int(np.count_nonzero(rows)),
                n_correct=int(np.count_nonzero(rows & (answers.correct == 1))),
                n_wrong=int(np.count_nonzero(rows & (answers.correct == 0))),
                n_empty=int(np.count_nonzero(rows & (words == 0))),
                mean_words=float(words[filled].mean()) if filled.any() else 0.0,
                mean_words_correct=float(words[right].mean()) if right.any() else None,
            )
        )
    return tuple(found)


def answer_warnings(
    answers: AnswerTexts, words: IntArray, systems: tuple[AnsweringSystem, ...]
) -> list[str]:
    """What limits what can be concluded from these answers."""
    warnings = []
    usable = (words > 0) & (answers.correct == 1)
    counts: dict[str, int] = {}
    for question, right in zip(answers.question_ids, usable.tolist(), strict=True):
        counts[question] = counts.get(question, 0) + right
    shared = sum(count == len(systems) for count in counts.values())
    if shared < _FEW:
        least = min(systems, key=lambda s: s.n_correct)
        warnings.append(
            f"only {shared} of {len(counts)} questions were answered correctly by all "
            f"{len(systems)} systems; differences are uncertain (fewest correct: {least.name!r}, "
            f"{least.n_correct})"
        )
    lengths = {s.name: s.mean_words_correct for s in systems if s.mean_words_correct}
    if len(lengths) > 1:
        longest, shortest = (
            max(lengths, key=lengths.__getitem__),
            min(lengths, key=lengths.__getitem__),
        )
        ratio = lengths[longest] / lengths[shortest]
        if ratio >= _FACTOR:
            warnings.append(
                f"correct answers of {longest!r} are {ratio:.1f} times as long as those of "
                f"{shortest!r} ({lengths[longest]:.0f} and {lengths[shortest]:.0f} words): a score "
                "that follows length orders systems by it"
            )
    unjudged = int(np.count_nonzero(np.isnan(answers.correct)))
    if unjudged:
        warnings.append(
            f"{unjudged} of {len(answers)} answers have no human verdict; they count only in "
            "intervals of human correctness, which take the judged ones for a random sample"
        )
    empty = words == 0
    if empty.any():
        marked = int(np.count_nonzero(empty & (answers.correct == 1)))
        warnings.append(
            f"{int(np.count_nonzero(empty))} of {len(answers)} answers have no words and take part "
            "in no comparison of scores" + (f"; people marked {marked} correct" if marked else "")
        )
    return warnings


def describe_texts(
    answers: AnswerTexts, words: IntArray, config: AnswerConfig, warnings: list[str]
) -> tuple[TextStatistic, ...]:
    """Statistics of each system's correct answers against the references ([W] Fig. 6)."""
    from rag_sourcebias.audit.text_summaries import text_statistics

    available = installed_statistics()
    rows: dict[str, list[int]] = {}
    for row in np.flatnonzero((words > 0) & (answers.correct == 1)).tolist():
        rows.setdefault(answers.systems[row], []).append(row)
    try:
        found = text_statistics(
            {name: [answers.answers[i] for i in chosen] for name, chosen in rows.items()},
            {name: [answers.references[i] for i in chosen] for name, chosen in rows.items()},
            statistics=available,
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
    except MissingExtraError as error:
        warnings.append(f"no text statistics: {error}")
        return ()
    lacking = [name for name in TEXT_STATISTICS if name not in available]
    if lacking:
        warnings.append(
            f"text statistics lack {', '.join(lacking)}, whose libraries are not installed; "
            "install them with: pip install 'rag-sourcebias[text]'"
        )
    return found
