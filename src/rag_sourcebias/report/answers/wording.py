"""The sentences about one score: what it rewards, what the adjustment does, what verdicts become.

Systems are compared on questions that all of them answered correctly.
"""

from __future__ import annotations

from rag_sourcebias.report.answers.adjusting import adjustment_sentence
from rag_sourcebias.report.answers.numbers import (
    auc_ends,
    effect,
    in_sds,
    of_questions,
    percent,
    value,
    with_ends,
)
from rag_sourcebias.report.answers.verdicts import AnswerVerdict
from rag_sourcebias.report.format import count, interval, join, number, shorten
from rag_sourcebias.types.answer_parts import AnswerStyle, AnswerUse
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer

__all__ = [
    "effect_of",
    "gap_clause",
    "length_sentence",
    "order_sentence",
    "questions",
    "sentence",
    "short",
    "style_sentence",
    "threshold_sentence",
    "use_sentence",
]

_NAME = 40
_WEAK = 0.1  # correlations below are called none
_PAIRS = 3


def short(verdict: AnswerVerdict) -> str:
    """Return the finding in a few words."""
    favoured = f"favours {shorten(verdict.extremes.best, _NAME)} most"
    text = {
        AnswerStyle.REWARDS: f"rewards style: {favoured}"
        if verdict.extremes.clear
        else "rewards style",
        AnswerStyle.SLIGHT: "rewards style, but slightly",
        AnswerStyle.ALIKE: "no more than a small effect of style",
        AnswerStyle.CANNOT_TELL: "cannot tell whether style counts",
        AnswerStyle.TOO_FEW: "too few questions" if _several(verdict) else "one system only",
    }[verdict.style]
    return f"useless: {text}" if verdict.finding.use is AnswerUse.USELESS else text


def sentence(verdict: AnswerVerdict) -> str:
    """Return everything about one score, without its name."""
    scorer = verdict.scorer
    parts = [
        use_sentence(verdict),
        style_sentence(verdict),
        length_sentence(scorer.raw),
        adjustment_sentence(verdict),
        threshold_sentence(scorer),
        order_sentence(scorer),
    ]
    return " ".join(p for p in parts if p)


def use_sentence(verdict: AnswerVerdict) -> str:
    """Return whether the score tells right from wrong, where it does not or nobody can tell."""
    found = verdict.scorer.raw.auc_within
    said = {
        AnswerUse.USELESS: "The score is useless: it does not tell right from wrong",
        AnswerUse.CANNOT_TELL: "Cannot tell whether the score tells right from wrong",
    }.get(verdict.finding.use)
    return "" if said is None else f"{said} (AUC within systems {auc_ends(found)})."


def questions(n: int) -> str:
    """Return ``1,312 questions``."""
    return f"{count(n)} question{'' if n == 1 else 's'}"


def gap_clause(verdict: AnswerVerdict) -> str:
    """Return how far the extremes lie apart: ``3.50 [3.42, 3.57] standard deviations``."""
    found = verdict.extremes
    sd, i = verdict.scorer.raw.spread.within_sd, found.difference
    if sd is None or found.effect is None:
        gap = max(verdict.scorer.raw.spread.means) - min(verdict.scorer.raw.spread.means)
        return value(verdict.scorer, gap)
    text = number(found.effect, digits=2)
    if i is not None:
        text += f" {interval(i, scale=1 / sd, digits=2)}"
    return f"{text} standard deviations"


def style_sentence(verdict: AnswerVerdict, *, brief: bool = False) -> str:
    """Return whether the score rewards style; unless ``brief`` with the unfairness."""
    scorer, bias = verdict.scorer, verdict.scorer.raw
    if verdict.style is AnswerStyle.TOO_FEW:
        return _few(verdict)
    where = _where(scorer, bias, brief=brief)
    if verdict.style is AnswerStyle.ALIKE:
        return f"Equally correct answers of all systems score much alike ({where})."
    if verdict.style is AnswerStyle.CANNOT_TELL:
        needed = verdict.finding.n_needed
        plan = f" About {questions(needed)} are needed to tell." if needed else ""
        return (
            "Cannot tell whether equally correct answers score alike: the interval of the "
            f"unfairness holds 0 and more than small differences ({where}).{plan}"
        )
    found = verdict.extremes
    if not found.clear:
        return (
            f"Equally correct answers do not score alike ({where}), but which system gains most "
            "cannot be told."
        )
    slight = " only" if verdict.style is AnswerStyle.SLIGHT else ""
    return (
        f"Equally correct answers of {shorten(found.best, _NAME)} score{slight} "
        f"{gap_clause(verdict)} above those of {shorten(found.worst, _NAME)} ({where})."
    )


def _few(verdict: AnswerVerdict) -> str:
    if not _several(verdict):
        return "With one system there is no other style to compare with."
    scorer, spread = verdict.scorer, verdict.scorer.raw.spread
    needed = verdict.finding.n_needed
    return (
        f"All systems answered only {questions(spread.n_questions)} correctly: too few for an "
        f"interval, so that the unfairness of {value(scorer, spread.unfairness)} says little"
        f"{f'; {questions(needed)} are needed' if needed else ''}."
    )


def _where(scorer: AnswerScorer, bias: AnswerBias, *, brief: bool) -> str:
    n = questions(bias.spread.n_questions)
    if brief:
        return n
    size = in_sds(bias, bias.spread.unfairness)
    text = f"unfairness {with_ends(scorer, bias.spread.unfairness, bias.unfairness)}"
    if size is not None:
        text += f", {number(size, digits=2)} standard deviations within systems"
    return f"{text}; {n}"


def length_sentence(bias: AnswerBias) -> str:
    """Return how score and length go together."""
    rho = bias.length_correlation
    if rho is None:
        return ""
    shown = f"Spearman {number(rho, digits=2)} among correct answers to the same question"
    if abs(rho) < _WEAK:
        return f"Length hardly matters ({shown})."
    return f"The longer an answer, the {'lower' if rho < 0 else 'higher'} its score ({shown})."


def threshold_sentence(scorer: AnswerScorer) -> str:
    """Return on how many questions equally correct answers get different verdicts."""
    raw = scorer.raw.verdicts
    if not raw.n_questions or len(raw.systems) < 2:
        return ""
    text = (
        f"At {value(scorer, scorer.raw.threshold)}, equally correct answers get different verdicts "
        f"on {of_questions(raw.n_flipped, raw.n_questions)}"
    )
    if scorer.adjusted is not None:
        after = scorer.adjusted.verdicts
        text += (
            f", adjusted (at {value(scorer, scorer.adjusted.threshold)}) on "
            f"{percent(after.n_flipped / after.n_questions)} ({count(after.n_flipped)})"
        )
    return text + "."


def order_sentence(scorer: AnswerScorer) -> str:
    """Return which pairs of systems the score puts in another order than people do."""
    raw = scorer.raw.inversions
    if raw is None or not raw.n_pairs:
        return ""
    adjusted = scorer.adjusted.inversions if scorer.adjusted is not None else None
    n = len(raw.inversions)
    if n:
        shown = [f"{shorten(b, 24)} under {shorten(o, 24)}" for b, o in raw.inversions[:_PAIRS]]
        names = join(shown) if n <= _PAIRS else f"{', '.join(shown)} and {n - _PAIRS} more"
        verb = "stands" if n == 1 else "stand"
        text = f"By mean score {n} of {raw.n_pairs} pairs of systems {verb} in another order than "
        text += f"by people ({names})"
    else:
        pairs = "the one pair" if raw.n_pairs == 1 else f"all {raw.n_pairs} pairs"
        text = f"The mean score puts {pairs} of systems in the order of people"
    if adjusted is not None and (n or adjusted.inversions):
        text += f"; adjusted, {len(adjusted.inversions) or 'none'} of {adjusted.n_pairs}"
        text += "" if n else " in another"
    return f"{text}."


def _several(verdict: AnswerVerdict) -> bool:
    return len(verdict.scorer.raw.spread.systems) > 1


def effect_of(bias: AnswerBias, system: str) -> str:
    """Return how far a system's correct answers lie from the mean of the systems."""
    if bias.spread.effects is None:
        return effect(None)
    return effect(bias.spread.effects[bias.spread.systems.index(system)])
