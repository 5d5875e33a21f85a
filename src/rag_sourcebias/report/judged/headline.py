"""A judged evaluation in a few sentences."""

from __future__ import annotations

from rag_sourcebias.report.format import count, join, level, shorten
from rag_sourcebias.report.judged.numbers import ends, label, value
from rag_sourcebias.report.judged.view import measures_of
from rag_sourcebias.report.judged.wording import excludes_judge, label_unit, role, sentence
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedMean

__all__ = ["headline"]

_ALL_SAID = 2  # means of which everything is said; of more, a summary
_NAMED = 3


def headline(report: JudgedReport) -> str:
    """Return what a reader in a hurry should take away, no more certain than it is."""
    if not report.means:
        return "No mean was estimated."
    if len(report.means) <= _ALL_SAID:
        return " ".join(sentence(report, m) for m in report.means)
    each = sorted({m.interval.n_labeled for m in report.means})
    labels = label_unit(report, each[-1], human=True)
    if len(each) > 1:
        labels = f"{count(each[0])} to {labels}"
    start = (
        f"{level(report.config.confidence_level)} intervals for {len(report.means)} means, each "
        f"from {labels}: {'; '.join(_span(report, m) for m in measures_of(report))}."
    )
    return " ".join([start, _judge_alone(report), *_worth(report)])


def _span(report: JudgedReport, measure: str) -> str:
    means = [m for m in report.means if m.measure == measure]
    chosen = [pick(means, key=lambda m: m.interval.estimate) for pick in (min, max)]
    low, high = (
        f"{value(report, measure, m.interval.estimate)} {ends(report, measure, m.interval)}"
        for m in chosen
    )
    if len(means) == 1:
        return f"{label(measure, means[0].system, link=' of ')} is {low}"
    names = [shorten(m.system, 40) for m in chosen]
    return f"{measure} runs from {low} for {names[0]} to {high} for {names[1]}"


def _judge_alone(report: JudgedReport) -> str:
    total, wrong = len(report.means), sum(excludes_judge(report, m) for m in report.means)
    if wrong == 0:
        return f"The means of the judge alone lie inside all {total} intervals."
    which = f"all {total}" if wrong == total else f"{wrong} of {total}"
    return f"The judge alone would have been outside the interval for {which}."


def _worth(report: JudgedReport) -> list[str]:
    """Say for how many means the judge was of use, and for which it was not."""
    by_role: dict[str, list[JudgedMean]] = {}
    for mean in report.means:
        by_role.setdefault(role(report, mean), []).append(mean)
    total, text = len(report.means), []
    if helped := by_role.get("helps"):
        saved = sorted(m.labels_saved or 0 for m in helped)
        span = label_unit(report, saved[-1])
        if saved[0] != saved[-1]:
            span = f"{count(saved[0])} to {span}"
        text.append(
            f"With its help {len(helped)} of {total} intervals are narrower, worth about {span}"
            f"{' each' if len(helped) > 1 else ''}."
        )
    for kind, words in (
        ("same", "it makes no difference"),
        ("costs", "labels alone give a narrower interval"),
        ("useless", "this judge is useless and labels alone are the better choice"),
        ("unused", "it was not used"),
    ):
        if found := by_role.get(kind):
            text.append(f"For {_few(found)}, {words}.")
    return text


def _few(means: list[JudgedMean]) -> str:
    if len(means) > _NAMED:
        return f"{len(means)} means"
    return join([shorten(label(m.measure, m.system, link=" of "), 48) for m in means])
