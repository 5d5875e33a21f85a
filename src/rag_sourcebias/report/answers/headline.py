"""The whole report in a few sentences, no more certain than its intervals."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.answers.adjusting import auc_clause, overshoot
from rag_sourcebias.report.answers.numbers import auc_ends, percent
from rag_sourcebias.report.answers.verdicts import AnswerVerdict, verdicts
from rag_sourcebias.report.answers.wording import gap_clause
from rag_sourcebias.report.format import count, join, shorten
from rag_sourcebias.types.answer_parts import AdjustmentCode, AnswerStyle, AnswerUse
from rag_sourcebias.types.answer_report import AnswerBiasReport

__all__ = ["headline"]

_NAMED = 2
_NAME = 48
_SAYS: tuple[tuple[AnswerStyle, str, str], ...] = (
    (AnswerStyle.REWARDS, "rewards a system's style", "reward a system's style"),
    (AnswerStyle.SLIGHT, "rewards style only slightly", "reward style only slightly"),
    (
        AnswerStyle.ALIKE,
        "shows no more than a small effect of style",
        "show no more than a small effect of style",
    ),
    (
        AnswerStyle.CANNOT_TELL,
        "may reward style or not: these are too few to tell",
        "may reward style or not: these are too few to tell",
    ),
    (
        AnswerStyle.TOO_FEW,
        "may reward style or not: these are too few for an interval",
        "may reward style or not: these are too few for an interval",
    ),
)


def headline(report: AnswerBiasReport) -> str:
    """Return what a reader in a hurry should take away."""
    found = verdicts(report)
    if not found:
        return "No score was examined."
    parts = [_useless(found), _style(report, found), _gains(found), _adjustment(found)]
    return " ".join(p for p in parts if p)


def _useless(found: Sequence[AnswerVerdict]) -> str:
    """Name the scores that do not tell right from wrong: what else they reward matters little."""
    group = [v for v in found if v.finding.use is AnswerUse.USELESS]
    if not group:
        return ""
    verb = "is useless: it does" if len(group) == 1 else "are useless: they do"
    ends = auc_ends(group[0].scorer.raw.auc_within)
    shown = f" (AUC within systems {ends})" if len(group) == 1 else ""
    return f"{_who(group, of=len(found))} {verb} not tell right from wrong{shown}."


def _style(report: AnswerBiasReport, found: Sequence[AnswerVerdict]) -> str:
    sizes = sorted({v.scorer.raw.spread.n_questions for v in found})
    span = count(sizes[-1]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
    unit = "question" if sizes == [1] else "questions"
    k = len(report.systems)
    who = "the system" if k == 1 else "both systems" if k == 2 else f"all {k} systems"
    start = f"On {span} {unit} that {who} answered correctly"
    clauses = []
    for kind, one, many in _SAYS:
        if group := [v for v in found if v.style is kind]:
            clauses.append(f"{_who(group, of=len(found))} {one if len(group) == 1 else many}")
    return f"{start}, {'; '.join(clauses)}."


def _who(group: Sequence[AnswerVerdict], *, of: int) -> str:
    if len(group) > _NAMED:
        return f"all {of} scores" if len(group) == of else f"{len(group)} of {of} scores"
    return join([shorten(v.scorer.name, _NAME) for v in group])


def _gains(found: Sequence[AnswerVerdict]) -> str:
    """Say whose equally correct answers score highest and lowest, where that is clear."""
    clear = [
        v
        for v in found
        if v.style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT) and v.extremes.clear
    ]
    if not clear:
        return ""
    groups: dict[tuple[str, str], list[AnswerVerdict]] = {}
    for v in clear:
        groups.setdefault((v.extremes.best, v.extremes.worst), []).append(v)
    order = sorted(groups.values(), key=len, reverse=True)
    text = f"Equally correct, {_gap(order[0])}"
    if len(found) > 1:
        text += _under(order[0])
    if len(order) == 2:
        text += f"; {_gap(order[1])}{_under(order[1])}"
    elif len(order) > 2:
        text += f"; under the other {len(clear) - len(order[0])}, other systems gain most"
    return f"{text}."


def _largest(group: Sequence[AnswerVerdict]) -> AnswerVerdict:
    return max(group, key=lambda v: v.extremes.effect or 0.0)


def _gap(group: Sequence[AnswerVerdict]) -> str:
    found = _largest(group)
    best, worst = shorten(found.extremes.best, _NAME), shorten(found.extremes.worst, _NAME)
    return f"answers of {best} score {gap_clause(found)} above those of {worst}"


def _under(group: Sequence[AnswerVerdict]) -> str:
    text = f" under {shorten(_largest(group).scorer.name, _NAME)}"
    if len(group) == 1:
        return text
    return f"{text}, and less far under {'one other' if len(group) == 2 else len(group) - 1}"


def _adjustment(found: Sequence[AnswerVerdict]) -> str:
    tried = [
        v
        for v in found
        if v.adjustment is not AdjustmentCode.ABSENT and v.style is not AnswerStyle.TOO_FEW
    ]
    if not tried:
        return ""
    if len(tried) == 1:
        return _one(tried[0])
    parts = []
    if good := [v for v in tried if v.adjustment is AdjustmentCode.CUTS]:
        cuts = sorted(v.scorer.spread_cut or 0.0 for v in good)
        low, high = percent(cuts[0]), percent(cuts[-1])
        span = low if low == high else f"{low} to {high}"
        tested = all(v.scorer.auc_change_within is not None for v in good)
        cost = ", at no measurable loss of AUC within systems" if tested else ""
        parts.append(f"cuts the spread by {span} under {_scores(good, len(tried))}{cost}")
    for kind, text in (
        (AdjustmentCode.COSTS, "lowers the AUC within systems (or may) under"),
        (AdjustmentCode.FAILS, "does not help under"),
        (AdjustmentCode.IDLE, "finds no clear effect to remove under"),
    ):
        if group := [v for v in tried if v.adjustment is kind]:
            parts.append(f"{text} {_scores(group, len(tried))}")
    return f"The adjustment {'; it '.join(parts)}.{_too_far(found)}"


def _scores(group: Sequence[AnswerVerdict], of: int) -> str:
    if len(group) == of:
        return "both scores" if of == 2 else f"all {of} scores"
    return _who(group, of=of)


def _one(verdict: AnswerVerdict) -> str:
    scorer = verdict.scorer
    cut = scorer.spread_cut
    if verdict.adjustment is AdjustmentCode.IDLE:
        return "There was no clear effect for the adjustment to remove."
    if cut is None:
        return f"After the adjustment {auc_clause(scorer)}."
    way = "cuts" if cut >= 0 else "widens"
    link = "but" if verdict.adjustment is AdjustmentCode.COSTS else "and"
    return (
        f"The adjustment {way} the spread of the systems by {percent(abs(cut))}, {link} "
        f"{auc_clause(scorer)}.{_too_far([verdict])}"
    )


def _too_far(found: Sequence[AnswerVerdict]) -> str:
    """Say where an adjustment that helps goes too far."""
    group = [v for v in found if v.adjustment is AdjustmentCode.CUTS and overshoot(v)]
    if not group:
        return ""
    if len(found) == 1:
        return f" It goes too far: what is left favours {shorten(overshoot(group[0]), _NAME)}."
    return f" Under {_who(group, of=len(found))} it goes too far: what is left favours others."
