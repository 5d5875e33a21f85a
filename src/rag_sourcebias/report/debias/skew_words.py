"""Sentences about Relative Δ before and after."""

from __future__ import annotations

import math

from rag_sourcebias.report.debias.names import delta_ends
from rag_sourcebias.report.debias.verdicts import WIDE, DebiasVerdict, significant
from rag_sourcebias.report.format import (
    count,
    delta,
    interval,
    number,
    p_clause,
    source_name,
)
from rag_sourcebias.types.debias_report import DebiasConfig, DebiasReport
from rag_sourcebias.types.intervals import Interval

__all__ = ["goal", "moved_away", "skew_clause", "skew_sentence", "target", "worse"]


def goal(config: DebiasConfig) -> str:
    """Return the aim, such as ``0 ± 3``."""
    return f"{target(config)} ± {config.tolerance:g}"


def target(config: DebiasConfig) -> str:
    """Return the target, such as ``0`` or ``−5``."""
    return number(config.target, digits=0 if config.target % 1 == 0 else 1, signed=True)


def moved_away(config: DebiasConfig, verdict: DebiasVerdict) -> bool:
    """Whether Relative Δ lies further from the target than before."""
    before, after = verdict.skew.before, verdict.skew.after
    if before is None or after is None:
        return False
    return abs(after.estimate - config.target) > abs(before.estimate - config.target)


def worse(report: DebiasReport, verdict: DebiasVerdict) -> bool:
    """Whether Relative Δ has moved away from the target significantly."""
    return moved_away(report.config, verdict) and significant(report, verdict.skew)


def _settled(config: DebiasConfig, verdict: DebiasVerdict) -> bool:
    """Whether Relative Δ was within the tolerance before."""
    before = verdict.skew.before
    return before is not None and abs(before.estimate - config.target) < config.tolerance


def skew_clause(verdict: DebiasVerdict) -> str:
    """Return from where to where Relative Δ goes."""
    skew = verdict.skew
    name = f"Relative Δ of NDCG@{skew.cutoff}"
    if skew.after is None:
        return f"{name} has no interval after the change ({skew.refusal or 'not measured'})"
    if skew.before is None:
        return f"{name} is {delta_ends(skew.after)}; what it was before is not known"
    return (
        f"{name} goes from {delta(skew.before.estimate)} {interval(skew.before)} to "
        f"{delta_ends(skew.after)}"
    )


def skew_sentence(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Return what happened to Relative Δ and whether that reaches the target."""
    text, now = f"{skew_clause(verdict)}{_change(report, verdict)}", verdict.skew.after
    if now is None:
        return f"{text}."
    say = {"reached": _reached, "uncertain": _uncertain, "close": _close, "overcorrected": _over}
    return f"{text}: {say.get(verdict.kind, _missed)(report.config, verdict, now)}."


def _change(report: DebiasReport, verdict: DebiasVerdict) -> str:
    change = verdict.skew.change
    if change is None:
        return ""
    p, name = verdict.skew.p_adjusted, "adjusted p"
    if p is None:
        p, name = verdict.skew.p_value, "p"
    # With few changed queries the interval is wide although p is small: it allows for rare ones.
    few = f", {', '.join(change.notes)}" if change.method == "rare changes" else ""
    text = f"{delta(change.estimate)} {interval(change)}{few}"
    if p is None:
        return f" (change {text})"
    sign = "" if significant(report, verdict.skew) else ", not significant"
    return f" (change {text}, {p_clause(p, name=name)}{sign})"


def _reached(config: DebiasConfig, verdict: DebiasVerdict, _: Interval) -> str:
    kept = "it was and stays within" if _settled(config, verdict) else "it reaches"
    return f"{kept} {goal(config)}, and the interval covers {target(config)}"


def _uncertain(config: DebiasConfig, verdict: DebiasVerdict, now: Interval) -> str:
    needed = math.ceil(now.n_labeled * (now.half_width / (WIDE * config.tolerance)) ** 2)
    kept = "was and stays" if _settled(config, verdict) else "is"
    return (
        f"the estimate {kept} within {goal(config)}, but an interval of ±"
        f"{number(now.half_width)} points leaves room for much else; about {count(needed)} "
        f"queries instead of {count(now.n_labeled)} would narrow it to ±"
        f"{WIDE * config.tolerance:g}"
    )


def _close(config: DebiasConfig, _: DebiasVerdict, __: Interval) -> str:
    return f"within {goal(config)}, though the interval excludes {target(config)}: a rest is left"


def _missed(config: DebiasConfig, verdict: DebiasVerdict, now: Interval) -> str:
    text = f"it misses {goal(config)}"
    if _settled(config, verdict):
        text = f"it leaves {goal(config)}, where it was before"
    elif moved_away(config, verdict):
        text = f"further from {target(config)} than before"
    if not now.excludes(config.target):
        text += f", though {target(config)} is within the interval"
    return text


def _over(config: DebiasConfig, verdict: DebiasVerdict, now: Interval) -> str:
    text = f"it goes past {goal(config)} to the other side"
    if config.target == 0:
        winner = config.baseline_source if now.estimate > 0 else verdict.dataset.other
        text += f", where {source_name(winner)} text ranks higher"
    if not now.excludes(config.target):
        text += f"; {target(config)} is still within the interval"
    elif moved_away(config, verdict):
        text += ", further off than before"
    return text
