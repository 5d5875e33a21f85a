"""The sentences about what the adjustment of one score gains and costs."""

from __future__ import annotations

from rag_sourcebias.inference.answer_finding import AUC_LOSS
from rag_sourcebias.report.answers.numbers import auc, auc_ends, change_ends, percent, with_ends
from rag_sourcebias.report.answers.verdicts import AnswerVerdict, extremes
from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.types.answer_parts import AdjustmentCode, AnswerStyle
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer

__all__ = ["adjustment_sentence", "auc_clause", "auc_sentence", "overshoot"]

_NAME = 40


def auc_clause(scorer: AnswerScorer) -> str:
    """Return what the adjustment does to telling right from wrong within systems, and over all."""
    adjusted = scorer.adjusted
    before, after = scorer.raw.auc_within, None if adjusted is None else adjusted.auc_within
    change = scorer.auc_change_within
    if before is None or after is None:
        return "whether it still tells right from wrong within systems cannot be tested here"
    if change is None:
        text = f"the AUC within systems stays at {auc_ends(after)}"
    else:
        way = "goes"
        if change.excludes(0):
            way = "rises" if change.estimate > 0 else "falls"
        text = (
            f"the AUC within systems {way} from {auc(before)} to {auc(after)} (change "
            f"{change_ends(change)}, paired by question)"
        )
    pooled = auc(scorer.raw.auc), auc(None if adjusted is None else adjusted.auc)
    return f"{text}, and over all systems, put side by side, from {pooled[0]} to {pooled[1]}"


def adjustment_sentence(verdict: AnswerVerdict, *, brief: bool = False) -> str:
    """Return what the adjusted score gains and costs; ``brief`` leaves its unfairness out."""
    scorer, after = verdict.scorer, verdict.scorer.adjusted
    if after is None or verdict.style is AnswerStyle.TOO_FEW:
        return ""
    now = with_ends(scorer, after.spread.unfairness, after.unfairness)
    cut = scorer.spread_cut
    if cut is None:
        spread = f"leaves the spread of the systems at {now}"
    else:
        to = "" if brief else f", to {now}"
        spread = (
            f"{'cuts' if cut >= 0 else 'widens'} the spread of the systems by "
            f"{percent(abs(cut))}{to}"
        )
    tail = {
        AdjustmentCode.COSTS: _cost(scorer),
        AdjustmentCode.FAILS: " It does not help here.",
        AdjustmentCode.IDLE: " No clear effect was there to remove.",
    }.get(verdict.adjustment, _left(verdict, after))
    return f"The adjustment {spread}; {auc_clause(scorer)}.{tail}"


def _cost(scorer: AnswerScorer) -> str:
    """Say what a falling AUC means."""
    change = scorer.auc_change_within
    if change is None or not change.excludes(0):
        return " The fall may be chance, but nothing shows that the adjusted score is as good."
    size = "a little less well" if change.estimate > -AUC_LOSS else "less well"
    return f" It tells right from wrong {size}: weigh that against the spread."


def _left(verdict: AnswerVerdict, after: AnswerBias) -> str:
    """Say what an adjustment that helps leaves behind, and in whose favour."""
    kind, found = verdict.finding.left, extremes(after)
    if kind in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT):
        size = "still measurable" if kind is AnswerStyle.REWARDS else "measurable, but small"
        whom = ""
        if found.clear and found.effect is not None:
            whom = (
                f": {shorten(found.best, _NAME)} over {shorten(found.worst, _NAME)} by "
                f"{number(found.effect, digits=2)} standard deviations"
            )
        return f" What is left is {size}{whom}."
    return " What is left cannot be told from none." if kind is AnswerStyle.ALIKE else ""


def auc_sentence(scorer: AnswerScorer) -> str:
    """Return what happens to the AUC, within systems together and within each."""
    after = scorer.adjusted
    if after is None or scorer.raw.auc_within is None or after.auc_within is None:
        return ""
    clause = auc_clause(scorer)
    fallen = [
        (new - old, name, old, new)
        for name, old in scorer.raw.system_aucs.items()
        if old is not None
        and (new := after.system_aucs.get(name)) is not None
        and auc(new) != auc(old)
        and new < old
    ]
    text = f"{clause[:1].upper()}{clause[1:]}"
    if not fallen:
        return f"{text}; within no single system does it fall."
    _, name, old, new = min(fallen)
    most = f"{shorten(name, _NAME)}, from {auc(old)} to {auc(new)}"
    which = f"for {most}" if len(fallen) == 1 else f"for {len(fallen)} of them, most for {most}"
    return f"{text}; within single systems it falls {which}."


def overshoot(verdict: AnswerVerdict) -> str:
    """Return the system that an adjustment favours which goes too far, or nothing."""
    after = verdict.scorer.adjusted
    if (
        after is None
        or verdict.finding.left is not AnswerStyle.REWARDS
        or not extremes(after).clear
    ):
        return ""
    now = extremes(after).best
    return "" if now == verdict.extremes.best else now
