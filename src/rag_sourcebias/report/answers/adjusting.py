"""The sentences about what the adjustment of one score gains and costs."""

from __future__ import annotations

from rag_sourcebias.report.answers.numbers import auc, auc_ends, change_ends, percent, with_ends
from rag_sourcebias.report.answers.verdicts import (
    AUC_LOSS,
    AnswerVerdict,
    auc_change,
    extremes,
    style_kind,
)
from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer

__all__ = ["adjustment_sentence", "auc_clause", "auc_sentence", "overshoot"]

_NAME = 40


def auc_clause(scorer: AnswerScorer) -> str:
    """Return what the adjustment does to telling right from wrong; it takes both to test that."""
    before, after = scorer.raw.auc, None if scorer.adjusted is None else scorer.adjusted.auc
    change = auc_change(scorer)
    if before is None or after is None or change is None:
        return "whether it still tells right from wrong cannot be tested on these answers"
    if abs(change) < 0.0005:
        return f"the AUC stays at {auc_ends(after)}"
    text = f"the AUC {'rises' if change > 0 else 'falls'} from {auc(before)} to {auc(after)}"
    if scorer.auc_change is not None:
        return f"{text} (change {change_ends(scorer.auc_change)}, paired by question)"
    if before.lower <= after.upper and after.lower <= before.upper:
        text += ", with intervals that overlap"
    return text


def adjustment_sentence(verdict: AnswerVerdict, *, brief: bool = False) -> str:
    """Return what the adjusted score gains and costs; ``brief`` leaves its unfairness out."""
    scorer, after = verdict.scorer, verdict.scorer.adjusted
    if after is None or verdict.style == "few":
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
        "costs": _cost(scorer),
        "fails": " It does not help here.",
        "idle": " No clear effect was there to remove.",
    }.get(verdict.adjustment, _left(after))
    return f"The adjustment {spread}; {auc_clause(scorer)}.{tail}"


def _cost(scorer: AnswerScorer) -> str:
    """Say what a falling AUC means."""
    change, bounds = auc_change(scorer), scorer.auc_change
    if bounds is None or not bounds.excludes(0):
        return " The fall may be chance, but nothing shows that the adjusted score is as good."
    small = change is not None and change > -AUC_LOSS
    size = "a little less well" if small else "less well"
    return f" It tells right from wrong {size}: weigh that against the spread."


def _left(after: AnswerBias) -> str:
    """Say what an adjustment that helps leaves behind, and in whose favour."""
    kind, found = style_kind(after), extremes(after)
    if kind in ("rewards", "slight"):
        size = "still measurable" if kind == "rewards" else "measurable, but small"
        whom = ""
        if found.clear and found.effect is not None:
            whom = (
                f": {shorten(found.best, _NAME)} over {shorten(found.worst, _NAME)} by "
                f"{number(found.effect, digits=2)} standard deviations"
            )
        return f" What is left is {size}{whom}."
    return " What is left cannot be told from none." if kind == "none" else ""


def auc_sentence(scorer: AnswerScorer) -> str:
    """Return what happens to the AUC, over all systems and within each."""
    after = scorer.adjusted
    if after is None or scorer.raw.auc is None or after.auc is None:
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
    text = f"Over all systems, {clause}"
    if not fallen:
        return f"{text}; within no single system does it fall."
    _, name, old, new = min(fallen)
    most = f"{shorten(name, _NAME)}, from {auc(old)} to {auc(new)}"
    which = f"for {most}" if len(fallen) == 1 else f"for {len(fallen)} of them, most for {most}"
    return f"{text}; within single systems it falls {which}."


def overshoot(verdict: AnswerVerdict) -> str:
    """Return the system that an adjustment favours which goes too far, or nothing."""
    after = verdict.scorer.adjusted
    if after is None or style_kind(after) != "rewards" or not extremes(after).clear:
        return ""
    now = extremes(after).best
    return "" if now == verdict.extremes.best else now
