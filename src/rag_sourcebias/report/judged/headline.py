"""A judged evaluation in a few sentences."""

from __future__ import annotations

from rag_sourcebias.report.format import count, join, level, shorten
from rag_sourcebias.report.judged.view import ends, label, measures_of, value
from rag_sourcebias.report.judged.wording import (
    excludes_judge,
    finding,
    label_unit,
    role,
    sentence,
)
from rag_sourcebias.types.judged import JudgedMean, JudgedReport

__all__ = ["headline"]


def _measure_summary(report: JudgedReport, measure: str) -> str:
    means = [m for m in report.means if m.measure == measure]
    low, high = (pick(means, key=lambda m: m.interval.estimate) for pick in (min, max))
    each = {m.interval.n_labeled for m in means}
    labels = label_unit(report, max(each), human=True)
    if len(each) > 1:
        labels = f"{count(min(each))} to {labels}"
    parts = [
        f"{value(report, measure, m.interval.estimate)} {ends(report, measure, m.interval)} "
        f"for {shorten(m.system, 40)}"
        for m in (low, high)
    ]
    return (
        f"Mean {measure} of {len(means)} systems runs from {parts[0]} to {parts[1]}, "
        f"each from {labels} ({level(report.config.confidence_level)} intervals)."
    )


def headline(report: JudgedReport) -> str:
    """Return what a reader in a hurry should take away, no more certain than it is."""
    if not report.means:
        return "No mean was estimated."
    if len(report.means) <= 2:
        return " ".join(sentence(report, m) for m in report.means)
    text = []
    for measure in measures_of(report):
        means = [m for m in report.means if m.measure == measure]
        text.append(
            _measure_summary(report, measure) if len(means) > 1 else finding(report, means[0])
        )
    total = len(report.means)
    wrong = sum(excludes_judge(report, m) for m in report.means)
    text.append(
        f"The judge alone would have been outside the interval for {wrong} of these {total} means."
    )
    return " ".join([*text, *_worth_summary(report)])


def _worth_summary(report: JudgedReport) -> list[str]:
    by_role: dict[str, list[JudgedMean]] = {}
    for mean in report.means:
        by_role.setdefault(role(report, mean), []).append(mean)
    total, text = len(report.means), []
    if helped := by_role.get("helps"):
        saved = sorted(m.labels_saved or 0 for m in helped)
        span = label_unit(report, saved[-1])
        if saved[0] != saved[-1]:
            span = f"{count(saved[0])} to {span}"
        text.append(f"With it {len(helped)} of {total} intervals are narrower, worth {span} each.")
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
    if len(means) > 3:
        return f"{len(means)} means"
    return join([shorten(label(m.measure, m.system, link=" of "), 48) for m in means])
