"""The report of a judged evaluation: what it says, in the order in which it says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import judged_plots as plots
from rag_sourcebias.report import sections
from rag_sourcebias.report.bars import Bar
from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import (
    MISSING,
    count,
    ends_about_zero,
    interval,
    join,
    level,
    number,
    p_value,
    shorten,
)
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.intervals import JUDGE_NOTES, Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import (
    CoveragePoint,
    JudgedComparison,
    JudgedMean,
    QueryIntervals,
)

__all__ = ["document", "headline", "role", "sentence"]

Role: TypeAlias = Literal[
    "absent", "unused", "useless", "complete", "exact", "helps", "same", "costs", "unknown"
]

_METHODS = {
    "regression": "regression on the judge",
    "labels": "labels alone",
    "ppi": "PPI with fixed power",
    "ppi++": "PPI with tuned power",
    "ppi-crossfit": "cross-fitted PPI",
    "ppi-paper": "PPI of Oosterhuis et al.",
    "bootstrap": "bootstrap of the labels",
}
_TARGETS = {
    "population": "the mean over all {units} like these, of which these are a random sample",
    "pool": "the mean people would give exactly these {units}, labelled and not",
    "unlabeled": "the mean people would give the unlabelled {units} of this set",
}
#: The worth of the judge in a few words; saved and lost labels are counted.
_SHORT: dict[Role, str] = {
    "absent": "From labels alone, as asked",
    "unused": "The judge was not used",
    "useless": "This judge is useless: use labels alone",
    "complete": "People labelled every item",
    "exact": "The judge follows people on every label",
    "same": "The judge makes no clear difference",
    "unknown": "Labels alone give no interval",
}
_LOOKS: dict[Role, str] = {"helps": "good", "useless": "poor", "costs": "poor", "unused": "poor"}
_FAR = 5  # half widths between an estimate and a judge that answers on its own scale
_ALL_SAID = 2  # means of which the headline says everything; of more, a summary
_NAMED, _SHOWN = 3, 6  # means that the headline names, and pictures of one kind shown at once
_LITTLE = 0.5  # of the range: an interval so wide says little about its query


def document(report: JudgedReport) -> b.Document:
    """Return everything there is to say about a judged evaluation."""
    parts = (_findings, _means, _comparisons, _curves, _queries, _judge, _reading, _doubts, _data)
    facts = [
        f"{count(report.n_labeled)} {_units(report)} labelled by people",
        f"{count(report.n_unlabeled)} only judged",
    ]
    if report.n_judge_missing:
        facts.append(f"{count(report.n_judge_missing)} without an answer of the judge")
    return b.Document(
        kind="Judged evaluation",
        title=f"Judged evaluation: {report.name}",
        name=report.name,
        headline=headline(report),
        headline_to=b.FILES,
        facts=tuple((fact,) for fact in facts),
        created=report.created,
        cautions="Before you trust a number",
        warnings=_warnings(report),
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


def _warnings(report: JudgedReport) -> tuple[str, ...]:
    """Return what must be read before any number: warnings, and audits that found no use."""
    useless = (
        f"{name}: {note}"
        for name, audit in report.audits.items()
        if audit.useless
        for note in audit.notes[:1]
    )
    return tuple(dict.fromkeys((*report.warnings, *useless)))


# The headline: no more certain than its intervals


def headline(report: JudgedReport) -> str:
    """Return what a reader in a hurry should take away."""
    if not report.means:
        return "No mean was estimated."
    if len(report.means) <= _ALL_SAID:
        return " ".join(sentence(report, mean) for mean in report.means)
    total, each = len(report.means), [mean.interval.n_labeled for mean in report.means]
    start = (
        f"{level(report.config.confidence_level)} intervals for {total} means, each from "
        f"{_range_of_labels(report, each, human=True)}: "
        f"{'; '.join(_span(report, measure) for measure in _measures(report))}."
    )
    wrong = sum(_excludes_judge(report, mean) for mean in report.means)
    which = f"all {total}" if wrong == total else f"{wrong} of {total}"
    judge = f"The judge alone would have been outside the interval for {which}."
    if not wrong:
        judge = f"The means of the judge alone lie inside all {total} intervals."
    return " ".join((start, judge, *_worths(report)))


def _range_of_labels(report: JudgedReport, counts: list[int], *, human: bool = False) -> str:
    low, high = min(counts), max(counts)
    return f"{count(low)} to " * (low != high) + _labels(report, high, human=human)


def _span(report: JudgedReport, measure: str) -> str:
    means = [mean for mean in report.means if mean.measure == measure]
    low, high = (pick(means, key=lambda m: m.interval.estimate) for pick in (min, max))
    if low is high:
        return f"{_label(low, ' of ')} is {_shown(report, low)}"
    return (
        f"{measure} runs from {_shown(report, low)} for {shorten(low.system, 40)} to "
        f"{_shown(report, high)} for {shorten(high.system, 40)}"
    )


def _worths(report: JudgedReport) -> Iterator[str]:
    """Say for how many means the judge was of use, and for which it was not."""
    by_role: dict[Role, list[JudgedMean]] = {}
    for mean in report.means:
        by_role.setdefault(role(report, mean), []).append(mean)
    if helped := by_role.get("helps"):
        saved = _range_of_labels(report, [mean.labels_saved or 0 for mean in helped])
        yield (
            f"With its help {len(helped)} of {len(report.means)} intervals are narrower, worth "
            f"about {saved}{' each' if len(helped) > 1 else ''}."
        )
    others: tuple[tuple[Role, str], ...] = (
        ("same", "it makes no clear difference"),
        ("costs", "labels alone give a narrower interval"),
        ("useless", "this judge is useless and labels alone are the better choice"),
        ("unused", "it was not used"),
    )
    for found, words in others:
        if means := by_role.get(found):
            named = join([shorten(_label(mean, " of "), 48) for mean in means])
            yield f"For {named if len(means) <= _NAMED else f'{len(means)} means'}, {words}."


# One mean: what was found, and whether the judge was any use


def role(report: JudgedReport, mean: JudgedMean) -> Role:
    """Return what the judge did to one interval.

    ``"absent"``: labels alone were asked for. ``"unused"``: the method set the judge aside.
    ``"useless"``: its correlation with people is too small to be of use, whatever the widths say.
    ``"exact"``: it agrees with people so well that the interval has no width. ``"complete"``:
    people labelled every item of the pool, so that nothing is estimated. ``"helps"`` and
    ``"costs"``: by the labels it saves and by the width alike.
    """
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved
    if report.config.method in {"labels", "bootstrap"}:
        return "absent"
    if found.target == "pool" and not found.n_unlabeled:
        return "complete"
    if found.judge in {"few", "constant"}:
        return "unused"
    if found.judge == "weak" or _weak(found):
        return "useless"
    if found.half_width == 0:
        return "exact"
    if alone is None or saved is None:
        return "unknown"
    if saved > 0 and found.half_width < alone.half_width:
        return "helps"
    return "costs" if saved < 0 and found.half_width > alone.half_width else "same"


def _weak(found: Interval) -> bool:
    return found.correlation is not None and abs(found.correlation) <= _needed(found)


def _needed(found: Interval) -> float:
    return 1 / math.sqrt(max(found.n_labeled - 2, 1))


def sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return everything about one mean: estimate, interval, labels, the judge alone, its worth."""
    i, units = mean.interval, _units(report)
    labels = _labels(report, i.n_labeled, human=True)
    if i.n_unlabeled:
        labels += f" and {count(i.n_unlabeled)} {units} that only the judge saw"
    where = {
        "population": "",
        "pool": f" over exactly these {count(i.n_labeled + i.n_unlabeled)} {units}",
        "unlabeled": f" over the {count(i.n_unlabeled)} unlabelled {units}",
    }.get(i.target, f" over the {i.target}")
    return (
        f"Mean {_label(mean, ' of ')}{where} is {_shown(report, mean)} "
        f"({level(i.confidence_level)} interval from {labels}). "
        f"{_judge_alone(report, mean)} {_worth(report, mean)}"
    )


def _judge_alone(report: JudgedReport, mean: JudgedMean) -> str:
    says = _value(report, mean, mean.judge_alone)
    if _other_scale(report, mean):
        return (
            f"The mean of the judge is {says}, far from people's: it seems to answer on another "
            "scale, so this is not comparable."
        )
    start = f"The judge alone would have said {says}"
    if not _excludes_judge(report, mean):
        return f"{start}, which the interval does not contradict."
    gap = mean.judge_alone - mean.interval.estimate
    return f"{start}, too {'high' if gap > 0 else 'low'} by about {_value(report, mean, abs(gap))}."


def _other_scale(report: JudgedReport, mean: JudgedMean) -> bool:
    """Whether the judge seems to answer on another scale than people.

    Then its mean is far from theirs and its values are no grades of theirs, and neither the one nor
    the other is an error of the judge.
    """
    audit = report.audits.get(mean.measure)
    if report.kind == "ranking" or audit is None or audit.agreement is not None:
        return False
    gap = abs(mean.judge_alone - mean.interval.estimate)
    return gap > _FAR * max(mean.interval.half_width, 1e-12)


def _excludes_judge(report: JudgedReport, mean: JudgedMean) -> bool:
    return not _other_scale(report, mean) and mean.interval.excludes(mean.judge_alone)


def _worth(report: JudgedReport, mean: JudgedMean) -> str:
    """Return whether the judge was any use for one mean, in labels."""
    found, alone, kind = mean.interval, mean.labels_alone, role(report, mean)
    r, n = found.correlation, abs(mean.labels_saved or 0)
    who = "The judge" if r is None else f"The judge (r = {number(r, digits=2)} with people)"
    said = "" if alone is None else f", {_shown(report, mean, alone)}"
    change = 0.0 if not alone or not alone.half_width else 1 - found.half_width / alone.half_width
    match kind:
        case "absent":
            asked = _method(report.config.method)
            return f"The judge was not used ({asked} was asked for)."
        case "unused":
            return f"This interval comes from the labels alone: {JUDGE_NOTES[found.judge]}."
        case "useless":
            strong = f", and it takes more than {number(_needed(found), digits=2)}"
            return f"{who} is useless here{strong * _weak(found)}: use labels alone{said}."
        case "complete":
            return (
                "People labelled every item of the pool: this is its mean, and nothing is "
                "estimated."
            )
        case "exact":
            return (
                f"{who} follows people on every labelled item, which leaves the interval no width. "
                "That says nothing of where they would part on the others."
            )
        case "unknown":
            return f"{who} cannot be held against labels alone, which give no interval here."
        case "same" if not n:
            return f"{who} makes no difference: labels alone give the same width."
        case "same":
            return (
                f"{who} makes no clear difference: by its correlation it "
                f"{'saves' if (mean.labels_saved or 0) > 0 else 'costs'} about "
                f"{_labels(report, n)}, and the interval of labels alone is "
                f"{'wider' if change > 0 else 'no wider'}{said}."
            )
        case "helps":
            return (
                f"{who} narrows the interval by {_percent(change)}: labels alone would need about "
                f"{_labels(report, n, more=True)} for this width."
            )
    return (
        f"{who} made this interval {_percent(-change)} wider than labels alone{said}: it cost the "
        f"worth of about {_labels(report, n)}."
    )


def _percent(share: float) -> str:
    return f"{number(100 * share, digits=0 if share >= 0.095 else 1)}%"


def _short(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind = role(report, mean)
    if kind in {"helps", "costs"}:
        verb = "saves" if kind == "helps" else "costs"
        return f"The judge {verb} about {_labels(report, abs(mean.labels_saved or 0))}"
    if kind == "unused" and mean.interval.judge == "few":
        return "Too few labels to use the judge"
    return _SHORT[kind]


# Sections


def _findings(report: JudgedReport) -> b.Section:
    scales = {measure: _scale(report, measure) for measure in _measures(report)}
    key = (
        f"{level(report.config.confidence_level)} intervals; the bars of one measure share a "
        "scale. Blue: human labels and judge together. Grey: human labels alone. Orange: the mean "
        "of the judge, which has no error bar that counts its own mistakes."
    )
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            b.Cards(
                cards=tuple(_card(report, mean, scales[mean.measure]) for mean in report.means),
                look="judged",
                to=b.PAGE,
            ),
            b.Items(rows=tuple(("", sentence(report, m)) for m in report.means), to=b.MARKDOWN),
            b.Lines(rows=tuple(_line(report, mean) for mean in report.means)),
            b.Paragraph(text=key, look="note", to=b.PAGE),
        ),
    )


def _line(report: JudgedReport, mean: JudgedMean) -> tuple[tuple[str, str], ...]:
    """Return one mean for a terminal: what it is, its numbers, and the worth of the judge."""
    i = mean.interval
    only = f" + {count(i.n_unlabeled)} judged" if i.n_unlabeled else ""
    facts = [level(i.confidence_level), f"{count(i.n_labeled)} labelled{only}"]
    if i.target != "population":
        facts.append(f"of the {i.target}")
    own = " on its own scale" if _other_scale(report, mean) else ""
    facts.append(f"judge alone {_value(report, mean, mean.judge_alone)}{own}")
    if i.correlation is not None:
        facts.append(f"r = {number(i.correlation, digits=2)}")
    return (
        (_label(mean), "strong"),
        (f" {_shown(report, mean)} ({', '.join(facts)}). ", ""),
        (f"{_short(report, mean)}.", _LOOKS.get(role(report, mean), "")),
    )


def _scale(report: JudgedReport, measure: str) -> tuple[float, float]:
    """Return the ends of the bars of one measure."""
    means = [mean for mean in report.means if mean.measure == measure]
    found = [mean.judge_alone for mean in means if not _other_scale(report, mean)]
    for mean in means:
        for i in (mean.interval, mean.labels_alone):
            found += () if i is None else (i.lower, i.upper)
    low, high = min(found), max(found)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _card(report: JudgedReport, mean: JudgedMean, scale: tuple[float, float]) -> b.Card:
    def place(value: float) -> float:
        share = (value - scale[0]) / (scale[1] - scale[0])
        return round(100 * min(1.0, max(0.0, share)), 2)

    def row(name: str, found: Interval, side: str) -> b.CardRow:
        left, right = place(found.lower), place(found.upper)
        width, solid = round(right - left, 2), side == "baseline"
        dot = place(found.estimate)
        return b.CardRow(
            name=name,
            value=_value(report, mean, found.estimate),
            ends=interval(found, digits=_digits(report, mean.measure)),
            bar=Bar(left=left, width=width, dot=dot, side=side, solid=solid),
        )

    kind, judge = role(report, mean), place(mean.judge_alone)
    rows = []
    if with_judge := _with_judge(report, mean):
        rows.append(row("with the judge", with_judge, "baseline"))
    if alone := _alone(report, mean):
        rows.append(row("labels alone", alone, "even"))
    rows.append(
        b.CardRow(
            name="judge alone",
            value=_value(report, mean, mean.judge_alone),
            ends="no interval",
            bar=None
            if _other_scale(report, mean)
            else Bar(left=judge, width=0, dot=judge, side="other", solid=True),
        )
    )
    return b.Card(
        name=mean.system or mean.measure,
        tags=(b.Name(mean.measure),) if mean.system else (),
        standing=kind,
        short=_short(report, mean),
        text=f"{_judge_alone(report, mean)} {_worth(report, mean)}",
        rows=tuple(rows),
    )


def _with_judge(report: JudgedReport, mean: JudgedMean) -> Interval | None:
    return None if role(report, mean) in {"absent", "unused"} else mean.interval


def _alone(report: JudgedReport, mean: JudgedMean) -> Interval | None:
    return mean.labels_alone if _with_judge(report, mean) else mean.interval


def _means(report: JudgedReport) -> b.Section:
    figures = tuple(
        (f"Mean {measure}", partial(plots.means_plot, measure, _plot_rows(report, measure)))
        for measure in _measures(report)
    )
    caption = "Means with the judge, from labels alone, and from the judge alone"
    return b.Section(
        id="means",
        title="All means",
        blocks=(b.Figures(items=figures), b.Grid(table=_means_table(report), caption=caption)),
    )


def _plot_rows(report: JudgedReport, measure: str) -> list[plots.MeanRow]:
    def told(mean: JudgedMean) -> str:
        alone = ""
        if mean.labels_alone is not None:
            digits = _digits(report, measure)
            alone = f", labels alone {interval(mean.labels_alone, digits=digits)}"
        judge = _value(report, mean, mean.judge_alone)
        return f"{_label(mean)}: {_shown(report, mean)}{alone}, judge alone {judge}."

    return [
        plots.MeanRow(
            name=mean.system,
            judged=_with_judge(report, mean),
            alone=_alone(report, mean),
            judge=None if _other_scale(report, mean) else mean.judge_alone,
            told=told(mean),
        )
        for mean in report.means
        if mean.measure == measure
    ]


def _means_table(report: JudgedReport) -> Table:
    def row(m: JudgedMean) -> tuple[str, ...]:
        alone, i = m.labels_alone, m.interval
        saved = None if _with_judge(report, m) is None else m.labels_saved
        return (
            m.measure,
            m.system or MISSING,
            _value(report, m, i.estimate),
            interval(i, digits=_digits(report, m.measure)),
            MISSING if alone is None else _shown(report, m, alone),
            _value(report, m, m.judge_alone),
            MISSING if i.correlation is None else number(i.correlation, digits=2),
            MISSING if saved is None else f"{saved:+,}".replace("-", "−") if saved else "0",
            count(i.n_labeled),
            count(i.n_unlabeled),
        )

    columns = (
        "measure", "system", "estimate", f"{level(report.config.confidence_level)} interval",
        "labels alone", "judge alone", "judge r",
        "labels saved" if report.kind == "items" else "queries saved", "labelled", "judged only",
    )  # fmt: skip
    rows = tuple(map(row, report.means))
    if any(mean.system for mean in report.means):
        return Table(columns=columns, rows=rows, n_heads=2)
    return Table(columns=columns[:1] + columns[2:], rows=tuple(r[:1] + r[2:] for r in rows))


def _comparisons(report: JudgedReport) -> b.Section | None:
    found = report.comparisons
    if not found:
        return None
    lead = (
        "Positive: the first is higher. Each side is corrected by its own human labels: one "
        "correction for both would hide whom the judge favours."
    )
    if len(found) > 1:
        lead += (
            f" The {count(len(found))} intervals are not widened for their number: the more are "
            "looked at, the more exclude 0 by chance."
        )
    clear = tuple(("", _comparison(report, c)) for c in found if c.interval.excludes(0))
    blocks: list[b.Block] = []
    if clear:
        blocks.append(b.Items(rows=clear, to=b.PAGE))
    if len(clear) < len(found):
        unclear = f"{len(found) - len(clear)} of {len(found)}"
        text = f"{unclear} cannot be told apart from no difference."
        blocks.append(b.Paragraph(text=text, to=b.PAGE))
    blocks += [
        b.Lines(rows=((),)),
        b.Items(
            rows=tuple(("", _comparison(report, c)) for c in found),
            to=(*b.MARKDOWN, *b.TERMINAL),
        ),
        b.Grid(table=_comparisons_table(report), caption="Every comparison"),
    ]
    return b.Section(id="comparisons", title="Comparisons", lead=lead, blocks=tuple(blocks))


def _comparison(report: JudgedReport, c: JudgedComparison) -> str:
    """Return one comparison: who is higher and by how much, or that it cannot be told."""
    i, first, second = c.interval, c.first, c.second
    clear, relative = i.excludes(0), c.kind == "relative_delta"
    # A sentence that names the higher side first states the difference in that direction.
    if clear and i.estimate < 0:
        first, second = second, first
        if not relative:
            i = replace(i, estimate=-i.estimate, lower=-i.upper, upper=-i.lower)
    digits = 1 if relative else _digits(report, c.measure)
    size = number(i.estimate, digits=digits, signed=relative or not clear)
    numbers = f"{size} {ends_about_zero(i, digits=digits)}"
    where = f" in {c.system}" if c.system else ""
    what = f"Relative Δ of {c.measure}{where}" if relative else c.measure
    if not clear:
        return f"{first} against {second}: cannot be told apart ({what} {numbers}, includes 0)."
    if relative:
        return f"{first} is higher than {second}: {what} {numbers}."
    return f"{first} is higher than {second} in {what} by {numbers}."


def _comparisons_table(report: JudgedReport) -> Table:
    def row(c: JudgedComparison) -> tuple[str, ...]:
        i, relative = c.interval, c.kind == "relative_delta"
        digits = 1 if relative else _digits(report, c.measure)
        where = f" in {c.system}" if c.system else ""
        return (
            c.measure,
            c.first,
            c.second,
            f"Relative Δ{where}, %" if relative else "difference",
            number(i.estimate, digits=digits, signed=True),
            ends_about_zero(i, digits=digits),
            "yes" if i.excludes(0) else "no",
            MISSING if i.correlation is None else number(i.correlation, digits=2),
            count(i.n_labeled),
        )

    columns = (
        "measure", "first", "second", "what", "estimate",
        f"{level(report.config.confidence_level)} interval", "excludes 0", "judge r", "labelled",
    )  # fmt: skip
    order = list(dict.fromkeys(c.measure for c in report.comparisons))
    found = sorted(report.comparisons, key=lambda c: order.index(c.measure))
    return Table(columns=columns, rows=tuple(map(row, found)), n_heads=4)


def _curves(report: JudgedReport) -> b.Section | None:
    """Return what other numbers of labels would have done, where an interval was returned."""
    points = [p for p in report.curves if p.mean_width > 0 or p.coverage > 0]
    if not points:
        return None
    runs, aim = count(report.config.coverage_runs), level(report.config.confidence_level)
    lead = (
        "What would fewer or more labels have done? The labelled values stand in for the whole "
        f"population: {runs} evaluations of each size are drawn from them, and each method gives "
        f"its interval. Coverage is the share that holds the true mean; it should be {aim}, and "
        f"the shaded band is what {runs} runs leave to chance. A method below the band promises "
        "too much. Width is only worth comparing among methods that cover. The dotted line marks "
        "the labels there are: near it, the same few labels are drawn again and again, so read the "
        "right end with care. Labels that were not drawn at random would not show here."
    )
    named = [replace(point, method=_method(point.method)) for point in points]
    figures = [
        (
            _label(mean),
            partial(
                plots.curves_plot,
                _label(mean),
                of_mean,
                report.config,
                labels="labels" if report.kind == "items" else "labelled queries",
                now=mean.interval.n_labeled,
            ),
        )
        for mean in report.means
        if (of_mean := [p for p in named if (p.measure, p.system) == (mean.measure, mean.system)])
    ]
    shown, more = tuple(figures[:_SHOWN]), tuple(figures[_SHOWN:])
    blocks: list[b.Block] = [b.Figures(items=shown)]
    if more:
        folded = (b.Figures(items=more),)
        blocks.append(b.Fold(summary=f"{len(more)} more", blocks=folded, to=b.PAGE))
    caption = "Mean width and coverage of each method"
    return b.Section(
        id="curves",
        nav="More labels, fewer labels",
        title="Width and coverage against labels",
        lead=lead,
        blocks=(
            *blocks,
            b.Paragraph(text="Each cell: mean width, coverage.", to=b.MARKDOWN),
            b.Fold(
                summary="The numbers: mean width and coverage",
                blocks=(b.Grid(table=_curves_table(report, named), caption=caption),),
            ),
        ),
    )


def _curves_table(report: JudgedReport, points: list[CoveragePoint]) -> Table:
    methods = tuple(dict.fromkeys(p.method for p in points))
    cells: dict[tuple[str, str, int], dict[str, str]] = {}
    for p in points:
        width = number(p.mean_width, digits=_digits(report, p.measure))
        row = cells.setdefault((p.measure, p.system, p.n), {})
        row[p.method] = f"{width}, {number(100 * p.coverage)}%"
    return Table(
        columns=("mean", "labels", *methods),
        rows=tuple(
            (
                _name(measure, system),
                count(n),
                *(row.get(method, MISSING) for method in methods),
            )
            for (measure, system, n), row in cells.items()
        ),
        n_heads=2,
    )


def _queries(report: JudgedReport) -> b.Section | None:
    if not report.per_query:
        return None
    known = [~np.isnan(query.human) for query in report.per_query]
    key = (
        "One bar per query, sorted by value. Dots are the corrected predictions of the judge, "
        "dashes the values from human labels."
    )
    if any(labelled.any() for labelled in known):
        key += (
            " The labelled queries also set how wide the intervals are, so the share of them that "
            "is covered holds by construction: it shows where the judge fails, and is no test."
        )
    shares = [number(100 * _width(query)[1], digits=0) for query in report.per_query]
    low, high = min(shares, key=float), max(shares, key=float)
    span = f"{low}%" if low == high else f"{low}–{high}%"
    key += f" On average a bar spans {span} of the range of the measure."
    figures: list[b.Block] = []
    for query, labelled in zip(report.per_query, known, strict=True):
        name = _name(query.measure, query.system)
        drawn: list[tuple[str, Callable[[str], str]]] = []
        if labelled.any():
            drawn.append((f"{name}: labelled", partial(plots.labeled_queries_plot, name, query)))
        if not labelled.all():
            drawn.append((f"{name}: others", partial(plots.other_queries_plot, name, query)))
        figures.append(b.Figures(items=tuple(drawn)))
    caption = "Intervals of single queries; every one of them is in report.json"
    return b.Section(
        id="queries",
        title="Single queries",
        blocks=(
            b.Paragraph(text=key, to=b.PAGE),
            b.Lines(rows=((),)),
            b.Items(rows=tuple(("", _query(report, q)) for q in report.per_query), to=b.EVERYWHERE),
            *figures,
            b.Grid(table=_queries_table(report), caption=caption),
        ),
    )


def _width(query: QueryIntervals) -> tuple[float, float]:
    """Return the mean width of the intervals of single queries, and its share of the range."""
    width = float((query.upper - query.lower).mean()) if query.query_ids else 0.0
    return width, width / query.highest if query.highest > 0 else 0.0


def _query(report: JudgedReport, query: QueryIntervals) -> str:
    """Say how much an interval of one query leaves open."""
    (width, share), digits = _width(query), _digits(report, query.measure)
    text = (
        f"{_name(query.measure, query.system, ' of ')}: the {level(query.confidence_level)} "
        f"interval of a single query is {number(width, digits=digits)} wide on average, "
        f"{number(100 * share, digits=0)}% of the range from 0 to "
        f"{number(query.highest, digits=digits)}."
    )
    return text if share <= _LITTLE else f"{text} It says little about any one query."


def _queries_table(report: JudgedReport) -> Table:
    def row(query: QueryIntervals) -> tuple[str, ...]:
        width, share = _width(query)
        held = int(np.count_nonzero(plots.holds(query)))
        return (
            _name(query.measure, query.system),
            query.rule,
            count(len(query.query_ids)),
            number(width, digits=_digits(report, query.measure)),
            f"{number(100 * share, digits=0)}%",
            f"{count(held)} of {count(int(np.count_nonzero(~np.isnan(query.human))))}",
        )

    columns = ("queries of", "rule", "queries", "mean width", "of the range", "human values held")
    return Table(columns=columns, rows=tuple(map(row, report.per_query)))


def _judge(report: JudgedReport) -> b.Section | None:
    blocks = [block for found in report.audits.items() for block in _audit(report, *found)]
    title = "The judge against people"
    return (
        b.Section(id="judge", nav="The judge", title=title, blocks=tuple(blocks))
        if blocks
        else None
    )


def _audit(report: JudgedReport, name: str, audit: JudgeAudit) -> Iterator[b.Block]:
    yield b.Heading(text=b.Name(name))
    yield b.Paragraph(text=_bias_note(report, name, audit))
    figures: list[tuple[str, Callable[[str], str]]] = []
    if any(group.bias is not None for group in audit.groups):
        figures.append(("Bias by group", partial(plots.bias_plot, name, audit)))
    if audit.calibration is not None:
        draw = partial(plots.shares_plot, name, audit.calibration)
        figures.append(("How often each grade is given", draw))
        if audit.calibration.gain_bins:
            draw = partial(plots.calibration_plot, name, audit.calibration)
            figures.append(("Expected and given gain", draw))
    if figures:
        yield b.Figures(items=tuple(figures), small=True)
    for table, caption in (
        (_bias_table(audit), "Bias of the judge"),
        (
            _differences_table(audit),
            "Differences of bias between groups; p-values adjusted by Holm's method",
        ),
        (
            _shares_table(audit),
            "Grades given by people and by the judge; ECE is the expected calibration error",
        ),
    ):
        if table.rows:
            yield b.Grid(table=table, caption=caption)
    yield b.Facts(tables=(("", _audit_table(audit)),))


def _bias_note(report: JudgedReport, name: str, audit: JudgeAudit) -> str:
    """Return what the bias of a judge means for who uses it."""
    if any(_other_scale(report, mean) for mean in report.means if mean.measure == name):
        return (
            "The judge seems to answer on another scale than people, so judge − people is no error "
            "of the judge. How far the two go together is what counts."
        )
    text = (
        "The mean of judge − people: above 0 the judge is too kind, below 0 too hard. The human "
        "labels correct the estimates on this page for it."
    )
    if audit.groups:
        text += (
            " A bias that is alike in all groups does a comparison no harm; one that differs "
            "turns a comparison by the judge alone."
        )
    return text


def _bias_table(audit: JudgeAudit) -> Table:
    """Return the bias of every group and, last, of all."""
    found = [(g.group, g.n, g.human_mean, g.judge_mean, g.bias) for g in audit.groups]
    found.append(("all", audit.n, audit.human_mean, audit.judge_mean, audit.bias))
    return Table(
        columns=("group", "n", "people", "judge", "judge − people"),
        rows=tuple(
            (group, count(n), *(number(m, digits=3) for m in means), _with_ends(bias, signed=True))
            for group, n, *means, bias in found
        ),
    )


def _differences_table(audit: JudgeAudit) -> Table:
    return Table(
        columns=("groups", "difference of bias", "p", "adjusted p"),
        rows=tuple(
            (
                f"{d.group} − {d.other}",
                _with_ends(d.difference, signed=True),
                p_value(d.p_value),
                p_value(d.p_adjusted),
            )
            for d in audit.differences
        ),
    )


def _shares_table(audit: JudgeAudit) -> Table:
    grades = () if audit.calibration is None else audit.calibration.grades
    return Table(
        columns=(
            "grade", "people, %", "judge, %", "difference, points", "ECE", "ECE if calibrated"
        ),
        rows=tuple(
            (
                str(g.grade),
                number(100 * g.observed_share),
                number(100 * g.predicted_share),
                _with_ends(g.difference, digits=1, scale=100, signed=True),
                number(g.ece, digits=3),
                number(g.ece_if_calibrated, digits=3),
            )
            for g in grades
        ),
    )  # fmt: skip


def _audit_table(audit: JudgeAudit) -> Table:
    """Return how the judge and people agree; what is not known is left out."""
    agreement, calibration = audit.agreement, audit.calibration
    rows: list[tuple[str, str | None]] = [
        ("items with both values", count(audit.n)),
        ("independent units among them", count(audit.n_clusters)),
        (
            "labelled, but not judged",
            count(audit.n_judge_missing) if audit.n_judge_missing else None,
        ),
        ("Pearson's r", _known(audit.pearson)),
        ("Spearman's ρ", _known(audit.spearman)),
        ("Kendall's τ-b", None if audit.kendall is None else number(audit.kendall, digits=2)),
    ]
    if audit.n_clusters == audit.n:  # the threshold counts items as independent
        threshold = number(audit.useful_from, digits=2)
        rows.append(("r from which a judge is of use", f"above {threshold}"))
    rows += [
        ("mean of judge − people", _known(audit.bias, digits=3)),
        ("AUC", _known(audit.auc)),
    ]
    if agreement is not None:
        rounded = " (judge rounded)" if agreement.rounded else ""
        same = f"share with the same of {agreement.n_grades} grades{rounded}"
        rows += [(same, _known(agreement.exact)), ("Cohen's κ", _known(agreement.kappa))]
        if agreement.n_grades > 2:
            rows += [
                ("κ, quadratic weights", _known(agreement.kappa_quadratic)),
                ("Krippendorff's α, ordinal", _known(agreement.alpha_ordinal)),
            ]
    if calibration is not None:
        slope = calibration.gain_slope
        rows += [
            ("gain, judge − people", _known(calibration.gain_error)),
            (
                "slope of people's gain on the judge's (1 is calibrated)",
                None if slope is None else number(slope, digits=2),
            ),
            (
                "skill of the probabilities (1 is perfect, 0 no better than the shares)",
                number(calibration.rps_skill, digits=2),
            ),
            ("expected calibration error, mean of the grades", number(calibration.ece, digits=3)),
        ]
    known = tuple((name, value) for name, value in rows if value is not None)
    return Table(columns=("audit", ""), rows=known)


def _known(found: Interval | None, *, digits: int = 2) -> str | None:
    return None if found is None else _with_ends(found, digits=digits)


def _reading(report: JudgedReport) -> b.Section:
    units, target = _units(report), report.config.target
    rows = [
        (
            "What does an interval promise?",
            f"In {level(report.config.confidence_level)} of evaluations like this one the interval "
            f"holds {_TARGETS.get(target, target).format(units=units)}, as people would judge it. "
            f"It counts the chance in which {units} were labelled; it cannot count people who "
            "disagree with each other, or labels that were not drawn at random.",
        ),
        (
            "How can a judge narrow it?",
            "The judge has seen everything, people only a part. Where the two agree in what they "
            f"find better and worse, the judge's values tell how the labelled {units} differ from "
            "the rest. How far it rates too high or too low does not matter: the human labels "
            "correct that. Only the correlation r counts, and it must exceed 1/√(n − 2).",
        ),
        (
            "What does “saved” mean?",
            "How many more labels the labels alone would need for an interval as narrow. It is "
            "estimated from the same labels and as uncertain as they are few. Savings of 0–10% are "
            "common. A negative number means that the judge made this interval wider; that can "
            "happen by chance with a judge that helps on average. Do not pick whichever interval "
            "came out narrower: that spoils the promise of both.",
        ),
        (
            "Why not trust the judge alone?",
            f"Its mean has no error bar that counts its own mistakes. More judged {units} make it "
            "more precise and no more right.",
        ),
    ]
    if any(c.kind == "relative_delta" for c in report.comparisons):
        rows.append(
            (
                "What is Relative Δ?",
                "The difference of two mean scores in percent of their average, from −200 to "
                "+200. Positive: the first, the baseline, is higher. Each source is corrected by "
                "its own human labels, since judges treat sources differently.",
            )
        )
    if report.per_query:
        rows.append(
            (
                "What does the interval of one query promise?",
                "That of all queries, the stated share has its human value inside. It is no "
                "promise for a particular kind of query, and it is wide, because a judge that is "
                "right on average is often wrong about one query.",
            )
        )
    return sections.reading(rows)


def _doubts(report: JudgedReport) -> b.Section:
    """Return what the intervals assume, and for which numbers; and what to know of each."""
    made = [
        ("means", i) for m in report.means for i in (m.interval, m.labels_alone) if i is not None
    ]
    made += [
        ("Relative Δ" if c.kind == "relative_delta" else "differences", c.interval)
        for c in report.comparisons
    ]
    where = [(f"{what}, {i.method}", i.assumptions) for what, i in made]
    where += [(f"single queries, rule “{q.rule}”", q.assumptions) for q in report.per_query]
    assumed: dict[str, dict[str, None]] = {}
    for place, texts in where:
        for text in texts:
            assumed.setdefault(text, {})[place] = None
    noted = [(_label(mean), note) for mean in report.means for note in mean.interval.notes]
    noted += [
        (_name(c.measure, f"{c.first} against {c.second}"), note)
        for c in report.comparisons
        for note in c.interval.notes
    ]
    noted += [
        (f"audit of {name}", note)
        for name, audit in report.audits.items()
        for note in audit.notes[audit.useless :]  # the first stands among the warnings
        if note not in report.warnings
    ]
    return sections.caveats(assumed, dict.fromkeys(noted), warned=bool(_warnings(report)))


def _data(report: JudgedReport) -> b.Section:
    c, items = report.config, report.kind == "items"
    what = "items" if items else "queries"
    data = [
        ("name", report.name),
        ("kind", "items, one value each" if items else "rankings"),
        (f"{what} with human labels", count(report.n_labeled)),
        (f"{what} that only the judge saw", count(report.n_unlabeled)),
        (f"{'items' if items else 'pairs'} the judge gave no value", count(report.n_judge_missing)),
    ]
    settings = [
        ("method", f"{_method(c.method)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
    ]
    if not items:
        settings += [
            ("gain of a grade", "2^r − 1" if c.gain == "exponential" else "r"),
            ("lowest relevant grade", str(c.min_grade)),
            ("intervals of single queries", "yes" if c.per_query else "no"),
        ]
    settings += [("simulated evaluations per size", count(c.coverage_runs)), ("seed", str(c.seed))]
    return sections.data(
        (
            ("Data", Table(columns=("data", ""), rows=tuple(data))),
            ("Evaluation", Table(columns=("setting", ""), rows=tuple(settings))),
            ("Environment", environment_table(report)),
        )
    )


# Words and numbers


def _method(method: str) -> str:
    return _METHODS.get(method, method)


def _name(measure: str, system: str, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{measure}{link}{system}" if system else measure


def _label(mean: JudgedMean, link: str = ", ") -> str:
    return _name(mean.measure, mean.system, link)


def _units(report: JudgedReport) -> str:
    return "items" if report.kind == "items" else "queries"


def _labels(report: JudgedReport, n: int, *, human: bool = False, more: bool = False) -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    if report.kind == "items":
        unit = f"{'human ' * human}label{'s' * (n != 1)}"
    else:
        unit = f"{'human-' * human}labelled {'query' if n == 1 else 'queries'}"
    return f"{count(n)} {'more ' * more}{unit}"


def _measures(report: JudgedReport) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mean.measure for mean in report.means))


def _digits(report: JudgedReport, measure: str) -> int:
    """Return the decimals of a measure: two significant digits of its narrowest half width."""
    half = [
        i.half_width
        for mean in report.means
        if mean.measure == measure
        for i in (mean.interval, mean.labels_alone)
        if i is not None and i.half_width > 0
    ]
    if not half or not math.isfinite(min(half)):
        return 3
    return min(4, max(1, 1 - math.floor(math.log10(min(half)))))


def _value(report: JudgedReport, mean: JudgedMean, value: float) -> str:
    return number(value, digits=_digits(report, mean.measure))


def _shown(report: JudgedReport, mean: JudgedMean, found: Interval | None = None) -> str:
    """Return the mean, or another interval of its measure, such as ``0.829 [0.795, 0.862]``."""
    return _with_ends(found or mean.interval, digits=_digits(report, mean.measure))


def _with_ends(
    found: Interval | None, *, digits: int = 3, scale: float = 1.0, signed: bool = False
) -> str:
    if found is None:
        return MISSING
    estimate = number(scale * found.estimate, digits=digits, signed=signed)
    return f"{estimate} {interval(found, scale=scale, digits=digits)}"
