"""What the numbers of an answer-style report mean, and the standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.inference.answer_finding import SMALL
from rag_sourcebias.report.format import level, number
from rag_sourcebias.types.answer_report import AnswerBiasReport

__all__ = [
    "SECTIONS",
    "correctness_section",
    "differences_note",
    "how_to_read",
    "uses_scores",
]

SECTIONS = {
    "means": (
        "Systems on equally correct answers",
        "Mean score of each system over the questions that all of them answered correctly, as "
        "distance from the mean of the systems in standard deviations of the scores within a "
        "system. A score of correctness alone would put all systems on the line. Lines are "
        "intervals of one mean; differences between systems are known better, because they are "
        "taken question by question.",
    ),
    "length": (
        "Length and score",
        "The same means against the length of correct answers. A slope means that the score pays "
        "for short or for long answers. The adjusted marks should lie level.",
    ),
    "thresholds": (
        "Verdicts at a threshold",
        "An answer counts as correct if its score reaches the threshold. Where such verdicts "
        "contradict people more for one system than for another, its style is rewarded or "
        "punished. A threshold that fits all systems needs both rows of each system alike.",
    ),
    "order": (
        "Order of the systems",
        "Who is best, by people and by mean score, over all questions with a verdict and a score "
        "of every system. Dashed orange lines lead to a place that people do not give. Systems "
        "that lie close may change places by chance.",
    ),
    "auc": (
        "Telling right from wrong",
        "AUC is the probability that a correct answer scores above a wrong one: 0.5 is chance, 1 "
        "perfect. Over all systems it also moves by putting systems side by side. The AUC within "
        "systems compares answers of one system only: it says whether a score tells right from "
        "wrong.",
    ),
    "text": (
        "The texts",
        "How the correct answers of the systems differ before any score sees them.",
    ),
}


_FEW_LABELS = (
    "Human correctness from few labels",
    "The share of answers that people would call correct, from a sample of labels alone and with "
    "the score of all other answers. What the score gets wrong is corrected for each system on its "
    "own, so that style cannot favour one. The score can only make intervals narrower, or fail to.",
)
_ALL_LABELS = (
    "Human correctness",
    "The share of answers that people call correct, from all labels there are. No score can add "
    "to them; with labels for some answers only, each score would be used on the others.",
)


def correctness_section(report: AnswerBiasReport) -> tuple[str, str]:
    """Return title and text of the section on human correctness."""
    return _FEW_LABELS if uses_scores(report) else _ALL_LABELS


def uses_scores(report: AnswerBiasReport) -> bool:
    """Whether a score helps to estimate human correctness anywhere."""
    return any(c.with_scores is not None for s in report.scorers for c in s.correctness)


def differences_note(report: AnswerBiasReport) -> str:
    """Return the key of the table of pairs."""
    own = level(report.config.confidence_level)
    found = {d.difference.confidence_level for s in report.scorers for d in s.raw.differences} or {
        report.config.confidence_level
    }
    if found == {report.config.confidence_level}:
        return f"Each interval holds {own} on its own; of many, some exclude 0 by chance"
    return f"Each interval holds {level(max(found))}, so that all together hold {own}"


def how_to_read(report: AnswerBiasReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    confidence = level(report.config.confidence_level)
    found = [
        (
            "What is unfairness?",
            "The standard deviation of the systems' mean scores over questions that all of them "
            "answered correctly, in the unit of the score. It is 0 for a score that sees only "
            "correctness. Scores have different ranges, so compare them by the same number in "
            "standard deviations within systems.",
        ),
        (
            "Why is a difference style?",
            "Because people called all of these answers correct, to the same questions. What is "
            "left is how they are written: length, wording, extra facts, format. If people were "
            "kinder to one system, or “correct” was judged coarsely, that is in it too.",
        ),
        (
            "When is an effect called small?",
            f"When the systems lie apart by less than {number(SMALL)} standard deviations within "
            "systems. With enough questions even that can be measured.",
        ),
        (
            "What do the intervals cover?",
            f"With {confidence} confidence the value for all questions like these, one number at a "
            "time, for exactly these systems. The two systems named are those that lie furthest "
            "apart, so with few questions their distance is overstated.",
        ),
    ]
    if any(s.adjusted is not None for s in report.scorers):
        found.append(
            (
                "What does the adjustment do?",
                "It learns from correct answers how the score changes with style, such as length, "
                "and subtracts that; each answer is adjusted by a fit that has not seen its "
                "question. It is worth using if the spread falls and the AUC does not. Where one "
                "system alone writes answers of some length, what is its own and what is length "
                "cannot be told apart, and both go.",
            )
        )
    found.append(
        (
            "Are differing verdicts all style?",
            "No. Equally correct answers to one question also differ by the chances of wording, "
            "which no adjustment removes, so their share does not fall to 0. What should fall is "
            "the difference between systems.",
        )
    )
    if report.config.threshold is None:
        found.append(
            (
                "Where do the thresholds come from?",
                "Each is the one that separates correct from wrong answers best on these data, "
                "separately for the score as it is and adjusted. On new answers it will do a "
                "little worse.",
            )
        )
    return tuple(found)
