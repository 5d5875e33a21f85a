"""The sentences about one mean: what was found, and whether the judge was any use."""

from __future__ import annotations

import math
from typing import Literal

from rag_sourcebias.report.format import count, level, number
from rag_sourcebias.report.judged.numbers import ends, label, method_name, unit_of, value
from rag_sourcebias.report.judged.view import other_scale
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedMean

__all__ = [
    "Role",
    "excludes_judge",
    "finding",
    "judge_sentence",
    "label_unit",
    "role",
    "saved_short",
    "sentence",
    "worth_sentence",
]

Role = Literal[
    "absent", "unused", "useless", "complete", "exact", "helps", "same", "costs", "unknown"
]


def role(report: JudgedReport, mean: JudgedMean) -> Role:
    """Return what the judge did to one interval.

    ``"absent"``: labels alone were asked for. ``"unused"``: the method set the judge aside.
    ``"useless"``: its correlation with people is too small to be of use, whatever the widths say.
    ``"exact"``: it agrees with people so well that the interval has no width. ``"complete"``:
    people labelled every item of the pool, so that nothing is estimated.
    """
    found = mean.interval
    if report.config.method in ("labels", "bootstrap"):
        return "absent"
    if found.target == "pool" and not found.n_unlabeled:
        return "complete"
    if found.method.startswith("labels alone"):
        return "unused"
    r, needed = found.correlation, _needed(mean)
    if (r is not None and abs(r) <= needed) or any("no better than none" in n for n in found.notes):
        return "useless"
    if found.half_width == 0:
        return "exact"
    if mean.labels_saved is None:
        return "unknown"
    if mean.labels_saved == 0:
        return "same"
    return "helps" if mean.labels_saved > 0 else "costs"


def _needed(mean: JudgedMean) -> float:
    return 1 / math.sqrt(max(mean.interval.n_labeled - 2, 1))


def sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return everything about one mean: estimate, interval, labels, the judge alone, its worth."""
    return " ".join(
        (finding(report, mean), judge_sentence(report, mean), worth_sentence(report, mean))
    )


def finding(report: JudgedReport, mean: JudgedMean) -> str:
    """Return estimate and interval of one mean as a sentence."""
    i = mean.interval
    labels = label_unit(report, i.n_labeled, human=True)
    if i.n_unlabeled:
        labels += f" and {count(i.n_unlabeled)} {unit_of(report)} that only the judge saw"
    where = {
        "population": "",
        "pool": f" over exactly these {count(i.n_labeled + i.n_unlabeled)} {unit_of(report)}",
        "unlabeled": f" over the {count(i.n_unlabeled)} unlabelled {unit_of(report)}",
    }.get(i.target, f" over the {i.target}")
    name = label(mean.measure, mean.system, link=" of ")
    return (
        f"Mean {name}{where} is {value(report, mean.measure, i.estimate)} "
        f"{ends(report, mean.measure, i)} ({level(i.confidence_level)} interval from {labels})."
    )


def label_unit(report: JudgedReport, n: int, *, human: bool = False, more: bool = False) -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    if report.kind == "items":
        unit = f"{'human ' if human else ''}label{'' if n == 1 else 's'}"
    else:
        unit = f"{'human-' if human else ''}labelled {'query' if n == 1 else 'queries'}"
    return f"{count(n)} {'more ' if more else ''}{unit}"


def excludes_judge(report: JudgedReport, mean: JudgedMean) -> bool:
    """Whether the interval contradicts the mean of the judge."""
    return not other_scale(report, mean) and mean.interval.excludes(mean.judge_alone)


def judge_sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return what the judge alone would have said."""
    says = value(report, mean.measure, mean.judge_alone)
    if other_scale(report, mean):
        return (
            f"The mean of the judge is {says}, far from people's: it seems to answer on another "
            "scale, so this is not comparable."
        )
    start = f"The judge alone would have said {says}"
    if not excludes_judge(report, mean):
        return f"{start}, which the interval does not contradict."
    gap = mean.judge_alone - mean.interval.estimate
    side = "high" if gap > 0 else "low"
    return f"{start}, too {side} by about {value(report, mean.measure, abs(gap))}."


def worth_sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return whether the judge was any use for one mean, in labels."""
    kind, alone = role(report, mean), mean.labels_alone
    if kind == "absent":
        return f"The judge was not used ({method_name(report.config.method)} was asked for)."
    if kind == "unused":
        why = next((n for n in mean.interval.notes if "not used" in n), "the judge was not used")
        return f"This interval comes from the labels alone: {why}."
    r = mean.interval.correlation
    who = "The judge" if r is None else f"The judge (r = {number(r, digits=2)} with people)"
    if kind == "useless":
        strong = "" if r is None else f", and it takes more than {number(_needed(mean), digits=2)}"
        text = f"{who} is useless here{strong}: use labels alone"
        return f"{text}{_alone(report, mean)}."
    if kind == "complete":
        return "People labelled every item of the pool: this is its mean, and nothing is estimated."
    if kind == "exact":
        return (
            f"{who} follows people on every labelled item, which leaves the interval no width. "
            "That says nothing of where they would part on the others."
        )
    if kind == "unknown" or alone is None or mean.labels_saved is None:
        return f"{who} cannot be held against labels alone, which give no interval here."
    change = 1 - mean.interval.half_width / alone.half_width
    if kind == "same":
        return f"{who} makes no difference: labels alone give the same width."
    n = abs(mean.labels_saved)
    if kind == "helps":
        return (
            f"{who} narrows the interval by {_percent(change)}: labels alone would need about "
            f"{label_unit(report, n, more=True)} for this width."
        )
    return (
        f"{who} made this interval {_percent(-change)} wider than labels alone"
        f"{_alone(report, mean)}: it cost the worth of about {label_unit(report, n)}."
    )


def _percent(share: float) -> str:
    return f"{number(100 * share, digits=0 if share >= 0.095 else 1)}%"


def _alone(report: JudgedReport, mean: JudgedMean) -> str:
    if mean.labels_alone is None:
        return ""
    estimate = value(report, mean.measure, mean.labels_alone.estimate)
    return f", {estimate} {ends(report, mean.measure, mean.labels_alone)}"


def saved_short(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind = role(report, mean)
    if kind in ("helps", "costs"):
        n = abs(mean.labels_saved or 0)
        verb = "saves" if kind == "helps" else "costs"
        return f"The judge {verb} about {label_unit(report, n)}"
    if kind == "unused" and any("labels: the judge was not used" in n for n in mean.interval.notes):
        return "Too few labels to use the judge"
    return {
        "absent": "From labels alone, as asked",
        "unused": "The judge was not used",
        "useless": "This judge is useless: use labels alone",
        "complete": "People labelled every item",
        "exact": "The judge follows people on every label",
        "same": "The judge makes no difference",
    }.get(kind, "Labels alone give no interval")
