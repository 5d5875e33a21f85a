"""The report of a judged evaluation: what it says, in the order in which it says it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.interval import JUDGE_NOTES, Interval
from rag_sourcebias.judged.data import (
    CoveragePoint,
    GroupBias,
    JudgeAudit,
    JudgedComparison,
    JudgedMean,
    JudgedReport,
    LabelCalibration,
    QueryIntervals,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.format import (
    MISSING,
    count,
    ends_about_zero,
    estimate,
    interval,
    join,
    level,
    number,
    p_value,
    shorten,
)

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
_NAMED, _SHOWN = 3, 6  # means that the headline names, and whose curves are shown at once
_LITTLE = 0.5  # of the range: an interval so wide says little about its query
_LOWEST = 0.8  # coverage that a picture shows at least


def document(report: JudgedReport) -> b.Document:
    """Return everything there is to say about a judged evaluation."""
    simulated = [replace(p, method=_METHODS.get(p.method, p.method))
                 for p in report.curves if p.mean_width > 0 or p.coverage > 0]  # fmt: skip
    missing = report.n_judge_missing
    facts = (
        (f"{count(report.n_labeled)} {_units(report)} labelled by people",),
        (f"{count(report.n_unlabeled)} only judged",),
        *([(f"{count(missing)} without an answer of the judge",)] if missing else ()),
    )
    return b.Document(
        kind="Judged evaluation",
        title=f"Judged evaluation: {report.name}",
        name=report.name,
        headline=headline(report),
        headline_to=b.FILES,
        facts=facts,
        created=report.created,
        cautions="Before you trust a number",
        warnings=_warnings(report),
        sections=(
            _findings(report),
            _means(report),
            *([_comparisons(report)] if report.comparisons else ()),
            *([_curves(report, simulated)] if simulated else ()),
            *([_queries(report)] if report.per_query else ()),
            *([_judge(report)] if report.audits else ()),
            _reading(report),
            _doubts(report),
            _data(report),
        ),
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
    total = len(report.means)
    if total <= _ALL_SAID:
        return " ".join(sentence(report, m) for m in report.means) or "No mean was estimated."
    each = [mean.interval.n_labeled for mean in report.means]
    spans = (_span(report, measure) for measure in dict.fromkeys(m.measure for m in report.means))
    wrong = sum(_excludes_judge(report, mean) for mean in report.means)
    which = f"all {total}" if wrong == total else f"{wrong} of {total}"
    return " ".join((
        f"{level(report.config.confidence_level)} intervals for {total} means, each from "
        f"{_range_of_labels(report, each, human=True)}: {'; '.join(spans)}.",
        f"The judge alone would have been outside the interval for {which}." if wrong else
        f"The means of the judge alone lie inside all {total} intervals.",
        *_worths(report),
    ))  # fmt: skip


def _range_of_labels(report: JudgedReport, counts: list[int], *, human: bool = False) -> str:
    low, high = min(counts), max(counts)
    return f"{count(low)} to " * (low != high) + _labels(report, high, human=human)


def _span(report: JudgedReport, measure: str) -> str:
    means = [mean for mean in report.means if mean.measure == measure]
    low, high = (pick(means, key=lambda m: m.interval.estimate) for pick in (min, max))
    if low is high:
        return f"{_name(low, ' of ')} is {_shown(report, low)}"
    return (
        f"{measure} runs from {_shown(report, low)} for {shorten(low.system, 40)} to "
        f"{_shown(report, high)} for {shorten(high.system, 40)}"
    )


def _worths(report: JudgedReport) -> Iterator[str]:
    """Say for how many means the judge was of use, and for which it was not."""
    others: dict[Role, str] = {
        "same": "it makes no clear difference",
        "costs": "labels alone give a narrower interval",
        "useless": "this judge is useless and labels alone are the better choice",
        "unused": "it was not used",
    }
    roles = [(role(report, mean), mean) for mean in report.means]
    if helped := [mean for kind, mean in roles if kind == "helps"]:
        saved = _range_of_labels(report, [mean.labels_saved or 0 for mean in helped])
        yield (
            f"With its help {len(helped)} of {len(report.means)} intervals are narrower, worth "
            f"about {saved}{' each' if len(helped) > 1 else ''}."
        )
    for found, words in others.items():
        if names := [shorten(_name(mean, " of "), 48) for kind, mean in roles if kind == found]:
            named = join(names) if len(names) <= _NAMED else f"{len(names)} means"
            yield f"For {named}, {words}."


# One mean: what was found, and whether the judge was any use


def role(report: JudgedReport, mean: JudgedMean) -> Role:
    """Return what the judge did to one interval.

    ``"absent"``: labels alone were asked for. ``"unused"``: the method set the judge aside.
    ``"useless"``: its correlation with people is too small to be of use, whatever the widths say.
    ``"exact"``: it agrees with people so well that the interval has no width. ``"complete"``:
    people labelled every item of the pool, so that nothing is estimated. ``"helps"`` and
    ``"costs"``: by the labels it saves and by the width alike.
    """
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved or 0
    narrower = 0.0 if alone is None else alone.half_width - found.half_width
    rules: tuple[tuple[bool, Role], ...] = (
        (report.config.method in {"labels", "bootstrap"}, "absent"),
        (found.target == "pool" and not found.n_unlabeled, "complete"),
        (found.judge in {"few", "constant"}, "unused"),
        (found.judge == "weak" or _weak(found), "useless"),
        (found.half_width == 0, "exact"),
        (alone is None or mean.labels_saved is None, "unknown"),
        (saved > 0 and narrower > 0, "helps"),
        (saved < 0 and narrower < 0, "costs"),
    )
    return next((kind for applies, kind in rules if applies), "same")


def _weak(found: Interval) -> bool:
    return found.correlation is not None and abs(found.correlation) <= _needed(found)


def _needed(found: Interval) -> float:
    return 1 / math.sqrt(max(found.n_labeled - 2, 1))


def sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return everything about one mean: estimate, interval, labels, the judge alone, its worth."""
    i, units = mean.interval, _units(report)
    judged = f" and {count(i.n_unlabeled)} {units} that only the judge saw"
    labels = _labels(report, i.n_labeled, human=True) + judged * (i.n_unlabeled > 0)
    where = {
        "population": "",
        "pool": f" over exactly these {count(i.n_labeled + i.n_unlabeled)} {units}",
        "unlabeled": f" over the {count(i.n_unlabeled)} unlabelled {units}",
    }.get(i.target, f" over the {i.target}")
    return (
        f"Mean {_name(mean, ' of ')}{where} is {_shown(report, mean)} "
        f"({level(i.confidence_level)} interval from {labels}). {_worth(report, mean)}"
    )


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
    """Return what the judge alone says of one mean, and whether it was any use, in labels."""
    says, gap = _value(report, mean, mean.judge_alone), mean.judge_alone - mean.interval.estimate
    by = f"too {'high' if gap > 0 else 'low'} by about {_value(report, mean, abs(gap))}"
    told = by if _excludes_judge(report, mean) else "which the interval does not contradict"
    judge = f"The judge alone would have said {says}, {told}."
    if _other_scale(report, mean):
        judge = (
            f"The mean of the judge is {says}, far from people's: it seems to answer on another "
            "scale, so this is not comparable."
        )
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved or 0
    r, labels = number(found.correlation, digits=2), _labels(report, abs(saved))
    who = "The judge" if found.correlation is None else f"The judge (r = {r} with people)"
    said = "" if alone is None else f", {estimate(alone, digits=_digits(report, mean.measure))}"
    change = 0.0 if not alone or not alone.half_width else 1 - found.half_width / alone.half_width
    percent = f"{number(100 * abs(change), digits=0 if abs(change) >= 0.095 else 1)}%"
    threshold = f", and it takes more than {number(_needed(found), digits=2)}"
    worths: dict[Role, str] = {
        "absent": f"The judge was not used ({_method(report)} was asked for).",
        "unused": f"This interval comes from the labels alone: {JUDGE_NOTES.get(found.judge, '')}.",
        "useless": f"{who} is useless here{threshold * _weak(found)}: use labels alone{said}.",
        "complete": "People labelled every item of the pool: this is its mean, and nothing is "
        "estimated.",
        "exact": f"{who} follows people on every labelled item, which leaves the interval no "
        "width. That says nothing of where they would part on the others.",
        "unknown": f"{who} cannot be held against labels alone, which give no interval here.",
        "same": f"{who} makes no clear difference: by its correlation it would "
        f"{'save' if saved > 0 else 'cost'} about {labels}, yet the interval of labels alone is "
        f"{'wider' if change > 0 else 'no wider'}{said}."
        if saved
        else f"{who} makes no difference: by its correlation it is worth no label.",
        "helps": f"{who} narrows the interval by {percent}: labels alone would need about "
        f"{_labels(report, saved, more=True)} for this width.",
        "costs": f"{who} made this interval {percent} wider than labels alone{said}: it cost the "
        f"worth of about {labels}.",
    }
    return f"{judge} {worths[role(report, mean)]}"


def _short(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind, labels = role(report, mean), _labels(report, abs(mean.labels_saved or 0))
    helps, costs = f"The judge saves about {labels}", f"The judge costs about {labels}"
    few = kind == "unused" and mean.interval.judge == "few"
    told: dict[Role, str] = {**_SHORT, "helps": helps, "costs": costs}
    return "Too few labels to use the judge" if few else told[kind]


# Sections


def _findings(report: JudgedReport) -> b.Section:
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            b.Cards(
                cards=tuple(_card(report, mean) for mean in report.means),
                look="judged",
                to=b.PAGE,
            ),
            b.Items(rows=tuple(("", sentence(report, m)) for m in report.means), to=b.MARKDOWN),
            b.Lines(rows=tuple(_line(report, mean) for mean in report.means)),
            b.Paragraph(
                text=f"{level(report.config.confidence_level)} intervals; the bars of one measure "
                "share a scale. Blue: human labels and judge together. Grey: human labels alone. "
                "Orange: the mean of the judge, which has no error bar that counts its own "
                "mistakes.",
                look="note",
                to=b.PAGE,
            ),
        ),
    )


def _line(report: JudgedReport, mean: JudgedMean) -> tuple[tuple[str, str], ...]:
    """Return one mean for a terminal: what it is, its numbers, and the worth of the judge."""
    i = mean.interval
    only = f" + {count(i.n_unlabeled)} judged" if i.n_unlabeled else ""
    own = " on its own scale" if _other_scale(report, mean) else ""
    facts = (
        level(i.confidence_level),
        f"{count(i.n_labeled)} labelled{only}",
        f"of the {i.target}" if i.target != "population" else "",
        f"judge alone {_value(report, mean, mean.judge_alone)}{own}",
        "" if i.correlation is None else f"r = {number(i.correlation, digits=2)}",
    )
    return (
        (_name(mean), "strong"),
        (f" {_shown(report, mean)} ({', '.join(filter(None, facts))}). ", ""),
        (f"{_short(report, mean)}.", _LOOKS.get(role(report, mean), "")),
    )


def _card(report: JudgedReport, mean: JudgedMean) -> b.Card:
    alike = [other for other in report.means if other.measure == mean.measure]
    ends = [other.judge_alone for other in alike if not _other_scale(report, other)]
    known = (i for other in alike for i in (other.interval, other.labels_alone) if i is not None)
    ends += [end for i in known for end in (i.lower, i.upper)]
    margin = 0.04 * (max(ends) - min(ends)) or 0.5
    scale = (min(ends) - margin, max(ends) + margin)
    judged, alone, judge = *_intervals(report, mean), mean.judge_alone
    rows = [
        b.CardRow(
            name=name,
            value=_value(report, mean, found.estimate),
            ends=interval(found, digits=_digits(report, mean.measure)),
            bar=b.Bar.over(
                (found.lower, found.estimate, found.upper), scale, side=side, solid=found is judged
            ),
        )
        for name, found, side in (
            ("with the judge", judged, "baseline"), ("labels alone", alone, "even")
        )
        if found is not None
    ]  # fmt: skip
    bar = b.Bar.over((judge, judge, judge), scale, side="other", solid=True)
    rows.append(
        b.CardRow(
            name="judge alone",
            value=_value(report, mean, judge),
            ends="no interval",
            bar=None if _other_scale(report, mean) else bar,
        )
    )
    return b.Card(
        name=mean.system or mean.measure,
        tags=(b.Name(mean.measure),) if mean.system else (),
        standing=role(report, mean),
        short=_short(report, mean),
        text=_worth(report, mean),
        rows=tuple(rows),
    )


def _intervals(report: JudgedReport, mean: JudgedMean) -> tuple[Interval | None, Interval | None]:
    """Return the interval with the judge, and that of labels alone."""
    if role(report, mean) in {"absent", "unused"}:
        return None, mean.interval
    return mean.interval, mean.labels_alone


def _means(report: JudgedReport) -> b.Section:
    named = any(mean.system for mean in report.means)
    columns = (
        "estimate", f"{level(report.config.confidence_level)} interval", "labels alone",
        "judge alone", "judge r", "labels saved" if report.kind == "items" else "queries saved",
        "labelled", "judged only",
    )  # fmt: skip
    rows = tuple(
        (
            *(m.measure, m.system or MISSING)[: 1 + named],
            _value(report, m, m.interval.estimate),
            interval(m.interval, digits=_digits(report, m.measure)),
            estimate(m.labels_alone, digits=_digits(report, m.measure)),
            _value(report, m, m.judge_alone),
            number(m.interval.correlation, digits=2),
            number(
                None if _intervals(report, m)[0] is None else m.labels_saved, digits=0, signed=True
            ),
            count(m.interval.n_labeled),
            count(m.interval.n_unlabeled),
        )
        for m in report.means
    )
    table = b.Table(
        columns=(*("measure", "system")[: 1 + named], *columns), rows=rows, n_heads=1 + named
    )
    measures = dict.fromkeys(mean.measure for mean in report.means)
    return b.Section(
        id="means",
        title="All means",
        blocks=(
            b.Figures(items=tuple((f"Mean {m}", _means_picture(report, m)) for m in measures)),
            b.Grid(
                table=table,
                caption="Means with the judge, from labels alone, and from the judge alone",
            ),
        ),
    )


def _means_picture(report: JudgedReport, measure: str) -> pic.Intervals:
    """Show each system: the interval with the judge, that of labels alone, the judge alone."""
    keys: tuple[pic.Key, ...] = (
        ("people and judge", "baseline", True),
        ("labels alone", "even", False),
        ("judge alone", "other", True),
    )
    means = [mean for mean in report.means if mean.measure == measure]
    named, rows = any(mean.system for mean in means), []
    for mean in means:
        judged, alone = _intervals(report, mean)
        rows.append(
            pic.Row(
                group=mean.system or "all" * named,
                marks=(
                    *([pic.mark(judged, "baseline")] if judged else ()),
                    *([pic.mark(alone, "even", solid=False)] if alone else ()),
                    *(() if _other_scale(report, mean) else
                      [pic.mark(None, "other", at=mean.judge_alone)]),
                ),
            )
        )  # fmt: skip
    drawn = {mark.colour for row in rows for mark in row.marks}
    return pic.Intervals(
        title=f"Mean {measure}{' by system' * named}, with and without the judge",
        rows=tuple(rows),
        x=pic.Axis(label=f"mean {measure}", digits=_digits(report, measure)),
        keys=tuple(key for key in keys if key[1] in drawn),
    )


def _comparisons(report: JudgedReport) -> b.Section:
    found = report.comparisons
    more = (
        f" The {count(len(found))} intervals are not widened for their number: the more are "
        "looked at, the more exclude 0 by chance."
    )
    told = [("", _comparison(report, c)) for c in found]
    clear = tuple(row for row, c in zip(told, found, strict=True) if c.interval.excludes(0))
    left = f"{len(found) - len(clear)} of {len(found)} cannot be told apart from no difference."
    order = list(dict.fromkeys(c.measure for c in found))
    columns = (
        "measure", "first", "second", "what", "estimate",
        f"{level(report.config.confidence_level)} interval", "excludes 0", "judge r", "labelled",
    )  # fmt: skip
    rows = tuple(
        (
            c.measure,
            c.first,
            c.second,
            f"Relative Δ{_within(c)}, %" if c.kind == "relative_delta" else "difference",
            number(c.interval.estimate, digits=_decimals(report, c), signed=True),
            ends_about_zero(c.interval, digits=_decimals(report, c)),
            "yes" if c.interval.excludes(0) else "no",
            number(c.interval.correlation, digits=2),
            count(c.interval.n_labeled),
        )
        for c in sorted(found, key=lambda c: order.index(c.measure))
    )
    return b.Section(
        id="comparisons",
        title="Comparisons",
        lead="Positive: the first is higher. Each side is corrected by its own human labels: one "
        f"correction for both would hide whom the judge favours.{more * (len(found) > 1)}",
        blocks=(
            *([b.Items(rows=clear, to=b.PAGE)] if clear else ()),
            *([b.Paragraph(text=left, to=b.PAGE)] if len(clear) < len(found) else ()),
            b.Lines(rows=((),)),
            b.Items(rows=tuple(told), to=(*b.MARKDOWN, *b.TERMINAL)),
            b.Grid(
                table=b.Table(columns=columns, rows=rows, n_heads=4), caption="Every comparison"
            ),
        ),
    )


def _within(c: JudgedComparison) -> str:
    return f" in {c.system}" if c.system else ""


def _decimals(report: JudgedReport, c: JudgedComparison) -> int:
    return 1 if c.kind == "relative_delta" else _digits(report, c.measure)


def _comparison(report: JudgedReport, c: JudgedComparison) -> str:
    """Return one comparison: who is higher and by how much, or that it cannot be told."""
    i, first, second = c.interval, c.first, c.second
    clear, relative = i.excludes(0), c.kind == "relative_delta"
    # A sentence that names the higher side first states the difference in that direction.
    if clear and i.estimate < 0:
        first, second = second, first
        if not relative:
            i = replace(i, estimate=-i.estimate, lower=-i.upper, upper=-i.lower)
    digits = _decimals(report, c)
    size = number(i.estimate, digits=digits, signed=relative or not clear)
    numbers = f"{size} {ends_about_zero(i, digits=digits)}"
    what = f"Relative Δ of {c.measure}{_within(c)}" if relative else c.measure
    if not clear:
        return f"{first} against {second}: cannot be told apart ({what} {numbers}, includes 0)."
    told = f": {what} {numbers}" if relative else f" in {what} by {numbers}"
    return f"{first} is higher than {second}{told}."


def _curves(report: JudgedReport, points: Sequence[CoveragePoint]) -> b.Section:
    """Return what other numbers of labels would have done, where an interval was returned."""
    runs, aim = count(report.config.coverage_runs), level(report.config.confidence_level)
    drawn = {(p.measure, p.system) for p in points}
    figures = [
        b.Figures(items=tuple(_curve_pictures(report, mean, points)))
        for mean in report.means
        if (mean.measure, mean.system) in drawn
    ]
    shown, rest = figures[:_SHOWN], figures[_SHOWN:]
    methods = tuple(dict.fromkeys(p.method for p in points))
    digits = {p.measure: _digits(report, p.measure) for p in points}
    cells = {
        (_name(p), count(p.n), p.method):
        f"{number(p.mean_width, digits=digits[p.measure])}, {number(100 * p.coverage)}%"
        for p in points
    }  # fmt: skip
    rows = tuple(
        (*head, *(cells.get((*head, method), MISSING) for method in methods))
        for head in dict.fromkeys((_name(p), count(p.n)) for p in points)
    )
    grid = b.Grid(
        table=b.Table(columns=("mean", "labels", *methods), rows=rows, n_heads=2),
        caption="Mean width and coverage of each method",
    )
    return b.Section(
        id="curves",
        nav="More labels, fewer labels",
        title="Width and coverage against labels",
        lead="What would fewer or more labels have done? The labelled values stand in for the "
        f"whole population: {runs} evaluations of each size are drawn from them, and each method "
        f"gives its interval. Coverage is the share that holds the true mean; it should be {aim}, "
        f"and the shaded band is what {runs} runs leave to chance. A method below the band "
        "promises too much. Width is only worth comparing among methods that cover. The dotted "
        "line marks the labels there are: near it, the same few labels are drawn again and again, "
        "so read the right end with care. Labels that were not drawn at random would not show "
        "here.",
        blocks=(
            *shown,
            *([b.Fold(summary=f"{len(rest)} more", blocks=tuple(rest), to=b.PAGE)] if rest else ()),
            b.Paragraph(text="Each cell: mean width, coverage.", to=b.MARKDOWN),
            b.Fold(summary="The numbers: mean width and coverage", blocks=(grid,)),
        ),
    )


def _curve_pictures(
    report: JudgedReport, mean: JudgedMean, points: Sequence[CoveragePoint]
) -> list[tuple[str, pic.Lines]]:
    """Show mean width and coverage of each method against the number of labels."""
    own = [p for p in points if (p.measure, p.system) == (mean.measure, mean.system)]
    own.sort(key=lambda p: p.n)
    methods = dict.fromkeys(p.method for p in own)
    by_method = {method: [p for p in own if p.method == method] for method in methods}
    colours: tuple[pic.Colour, ...] = ("baseline", "even", "other", "ink", "muted")
    name, now, aim = _name(mean), mean.interval.n_labeled, report.config.confidence_level
    error = 1.96 * math.sqrt(aim * (1 - aim) / max(report.config.coverage_runs, 1))
    labels = "labels" if report.kind == "items" else "labelled queries"
    here = pic.Guide(at=now, look="dotted", colour="ink")
    band = pic.Guide(
        at=100 * (aim - error), to=100 * min(aim + error, 1), level=True, colour="grid"
    )
    lowest = 100 * min(_LOWEST, *(p.coverage for p in points))
    widths = {m: tuple(p.mean_width for p in found) for m, found in by_method.items()}
    shares = {m: tuple(100 * p.coverage for p in found) for m, found in by_method.items()}
    shown = (
        ("width", pic.Axis(label="mean width", span=(0, None), digits=3), widths, ()),
        (
            "coverage",
            pic.Axis(label="coverage, %", span=(lowest - 1, 101)),
            shares,
            (band, pic.Guide(at=100 * aim, level=True)),
        ),
    )
    return [
        (
            f"{name}: {what}",
            pic.Lines(
                title=f"{what.capitalize()} against labels, {name}",
                curves=tuple(
                    pic.Curve(
                        x=tuple(float(p.n) for p in found), y=values[method], line="colour",
                        colour=colours[place % len(colours)], name=shorten(method, 26),
                    )
                    for place, (method, found) in enumerate(by_method.items())
                ),
                x=pic.Axis(label=f"{labels} (dotted: the {now:,} there are)", log=True, digits=0),
                y=y,
                guides=(here, *guides),
            ),
        )
        for what, y, values, guides in shown
    ]  # fmt: skip


def _queries(report: JudgedReport) -> b.Section:
    known = [~np.isnan(query.human) for query in report.per_query]
    test = (
        " The labelled queries also set how wide the intervals are, so the share of them that is "
        "covered holds by construction: it shows where the judge fails, and is no test."
    )
    shares = [number(100 * _width(query)[1], digits=0) for query in report.per_query]
    low, high = min(shares, key=float), max(shares, key=float)
    key = (
        "One bar per query, sorted by value. Dots are the corrected predictions of the judge, "
        f"dashes the values from human labels.{test * any(map(np.any, known))} On average a bar "
        f"spans {f'{low}%' if low == high else f'{low}–{high}%'} of the range of the measure."
    )
    figures = (
        b.Figures(
            items=tuple(
                (f"{_name(query)}: {what}", _query_picture(query, labelled=which))
                for what, which in (("labelled", True), ("others", False))
                if (labelled == which).any()
            )
        )
        for query, labelled in zip(report.per_query, known, strict=True)
    )
    rows = tuple(
        (
            _name(query),
            query.rule,
            count(len(query.query_ids)),
            number(_width(query)[0], digits=_digits(report, query.measure)),
            f"{share}%",
            f"{count(int(_holds(query).sum()))} of {count(int(labelled.sum()))}",
        )
        for query, labelled, share in zip(report.per_query, known, shares, strict=True)
    )
    columns = ("queries of", "rule", "queries", "mean width", "of the range", "human values held")
    return b.Section(
        id="queries",
        title="Single queries",
        blocks=(
            b.Paragraph(text=key, to=b.PAGE),
            b.Lines(rows=((),)),
            b.Items(rows=tuple(("", _query(report, q)) for q in report.per_query), to=b.EVERYWHERE),
            *figures,
            b.Grid(
                table=b.Table(columns=columns, rows=rows),
                caption="Intervals of single queries; every one of them is in report.json",
            ),
        ),
    )


def _width(query: QueryIntervals) -> tuple[float, float]:
    """Return the mean width of the intervals of single queries, and its share of the range."""
    width = float((query.upper - query.lower).mean()) if query.query_ids else 0.0
    return width, width / query.highest if query.highest > 0 else 0.0


def _holds(query: QueryIntervals) -> npt.NDArray[np.bool_]:
    """Return which intervals hold the human value; False where there is none."""
    above, below = query.lower - 1e-9 <= query.human, query.human <= query.upper + 1e-9
    return np.asarray(above & below)


def _query(report: JudgedReport, query: QueryIntervals) -> str:
    """Say how much an interval of one query leaves open."""
    (width, share), digits = _width(query), _digits(report, query.measure)
    text = (
        f"{_name(query, ' of ')}: the {level(query.confidence_level)} interval of a single query "
        f"is {number(width, digits=digits)} wide on average, {number(100 * share, digits=0)}% of "
        f"the range from 0 to {number(query.highest, digits=digits)}."
    )
    return text if share <= _LITTLE else f"{text} It says little about any one query."


def _query_picture(query: QueryIntervals, *, labelled: bool) -> pic.Lines:
    """Show queries sorted by human value (Fig. 4 of Oosterhuis et al., KDD 2024), or without one.

    Bars in the baseline's colour hold the human value; the others carry a cross where it is.
    """
    rows = np.flatnonzero(~np.isnan(query.human) == labelled)
    by = query.human if labelled else query.estimate
    order = rows[np.lexsort((query.estimate[rows], by[rows]))]
    n, held, every = len(order), _holds(query)[order], np.full(len(order), fill_value=True)

    def curve(
        values: FloatArray,
        which: npt.NDArray[np.bool_],
        colour: pic.Colour,
        name: str,
        mark: Literal["dot", "dash", "cross", "none"],
    ) -> pic.Curve:
        at = np.flatnonzero(which)
        ends = zip(query.lower[order[at]].tolist(), query.upper[order[at]].tolist(), strict=True)
        return pic.Curve(
            x=tuple((at + 1.0).tolist()),
            y=tuple(values[order[at]].tolist()),
            ends=tuple(ends) if mark == "none" else (),
            mark=mark,
            colour=colour,
            name=name,
        )

    width = float((query.upper[order] - query.lower[order]).mean())
    spread = f"Mean width {number(width, digits=2)}."
    if query.highest > 0:
        share = f"{number(100 * width / query.highest, digits=0)}% of the range up to"
        spread = f"{spread[:-1]}, {share} {number(query.highest, digits=2)}."
    dots = curve(query.estimate, every, "ink", "prediction", "dot")
    curves: tuple[pic.Curve, ...] = (curve(query.estimate, every, "even", "interval", "none"), dots)
    if labelled:
        spread = f"{count(int(held.sum()))} of {count(n)} hold the human value. {spread}"
        holds, misses = f"holds the human value: {held.sum()}", f"does not: {n - held.sum()}"
        curves = (
            curve(query.estimate, held, "baseline", holds, "none"),
            curve(query.estimate, ~held, "other", misses, "none"),
            dots,
            curve(query.human, every, "ink", "human value (×: outside)", "dash"),
            curve(query.human, ~held, "ink", "", "cross"),
        )
    top = max(query.highest, float(query.upper.max()))
    kind = "labelled queries" if labelled else "queries without labels"
    sort = "human value" if labelled else "prediction"
    return pic.Lines(
        title=f"Intervals of {count(n)} {kind}, {_name(query)}",
        description=spread,
        curves=curves,
        x=pic.Axis(label=f"{count(n)} queries, sorted by {sort}", span=(0, n + 1)),
        y=pic.Axis(label=shorten(query.measure, 24), span=(-0.02 * top, 1.02 * top)),
    )


def _judge(report: JudgedReport) -> b.Section:
    return b.Section(
        id="judge",
        nav="The judge",
        title="The judge against people",
        blocks=tuple(
            block for name, audit in report.audits.items() for block in _audit(report, name, audit)
        ),
    )


def _audit(report: JudgedReport, name: str, audit: JudgeAudit) -> Iterator[b.Block]:
    harm = (
        " A bias that is alike in all groups does a comparison no harm; one that differs "
        "turns a comparison by the judge alone."
    )
    own = any(_other_scale(report, mean) for mean in report.means if mean.measure == name)
    yield b.Heading(text=b.Name(name))
    yield b.Paragraph(
        text="The judge seems to answer on another scale than people, so judge − people is no "
        "error of the judge. How far the two go together is what counts."
        if own
        else "The mean of judge − people: above 0 the judge is too kind, below 0 too hard. The "
        f"human labels correct the estimates on this page for it.{harm * bool(audit.groups)}"
    )
    if figures := tuple(_audit_pictures(name, audit)):
        yield b.Figures(items=figures, small=True)
    every: list[tuple[str, GroupBias | JudgeAudit]] = [
        *((g.group, g) for g in audit.groups),
        ("all", audit),
    ]
    bias = tuple(
        (group, count(g.n), number(g.human_mean, digits=3), number(g.judge_mean, digits=3),
         _signed(g.bias))
        for group, g in every
    )  # fmt: skip
    differences = tuple(
        (f"{d.group} − {d.other}", _signed(d.difference), p_value(d.p_value), p_value(d.p_adjusted))
        for d in audit.differences
    )
    grades = tuple(
        (
            str(g.grade),
            number(100 * g.observed_share),
            number(100 * g.predicted_share),
            estimate(g.difference, scale=100, signed=True),
            number(g.ece, digits=3),
            number(g.ece_if_calibrated, digits=3),
        )
        for g in (audit.calibration.grades if audit.calibration else ())
    )
    tables = (
        (bias, "Bias of the judge", ("group", "n", "people", "judge", "judge − people")),
        (
            differences,
            "Differences of bias between groups; p-values adjusted by Holm's method",
            ("groups", "difference of bias", "p", "adjusted p"),
        ),
        (
            grades,
            "Grades given by people and by the judge; ECE is the expected calibration error",
            ("grade", "people, %", "judge, %", "difference, points", "ECE", "ECE if calibrated"),
        ),
    )
    yield from (
        b.Grid(table=b.Table(columns=columns, rows=rows), caption=caption)
        for rows, caption, columns in tables
        if rows
    )
    yield b.Facts(tables=(("", _audit_table(audit)),))


def _signed(found: Interval | None) -> str:
    return estimate(found, digits=3, signed=True)


def _audit_pictures(name: str, audit: JudgeAudit) -> Iterator[tuple[str, pic.Picture]]:
    """Show bias by group, the kindest first; then shares of grades, and gains in bins."""
    groups = [(f"{g.group} ({g.n:,})", g.bias) for g in audit.groups if g.bias is not None]
    if groups:
        yield (
            "Bias by group",
            pic.Intervals(
                title=f"Bias of the judge by group, {name}",
                rows=tuple(
                    pic.Row(
                        group=group,
                        marks=(
                            pic.mark(
                                bias,
                                "other" if bias.estimate > 0 else "baseline",
                                solid=bias.excludes(0),
                            ),
                        ),
                    )
                    for group, bias in sorted(groups, key=lambda row: -row[1].estimate)
                ),
                x=pic.Axis(label="← too hard  |  judge − people  |  too kind →", digits=3),
                guides=(pic.Guide(at=0),),
                filled="excludes 0",
            ),
        )
    if audit.calibration:
        yield from _calibration_pictures(name, audit.calibration)


def _calibration_pictures(name: str, fit: LabelCalibration) -> Iterator[tuple[str, pic.Picture]]:
    people = tuple(100 * g.observed_share for g in fit.grades)
    judge = tuple(100 * g.predicted_share for g in fit.grades)
    yield (
        "How often each grade is given",
        pic.Histogram(
            title=f"Grades given by people and by the judge, {name}",
            description=" ".join(
                f"Grade {g.grade}: people {number(100 * g.observed_share)}%, judge "
                f"{number(100 * g.predicted_share)}%."
                for g in fit.grades
            ),
            bars=(
                pic.Bars(heights=people, colour="baseline", name="people"),
                pic.Bars(heights=judge, colour="other", name="judge"),
            ),
            categories=tuple(str(g.grade) for g in fit.grades),
            x=pic.Axis(label="grade"),
            y=pic.Axis(label="share, %"),
        ),
    )
    if bins := fit.gain_bins:
        expected, given = tuple(x.predicted for x in bins), tuple(x.observed for x in bins)
        top = max(*expected, *given, 1e-9)
        yield (
            "Expected and given gain",
            pic.Points(
                title=f"Calibration of the judge's gains, {name}",
                description=" ".join(
                    f"Expected {number(one.predicted, digits=2)}, given "
                    f"{number(one.observed, digits=2)} ({one.n:,} pairs)."
                    for one in bins
                ),
                curves=(
                    pic.Curve(x=(0, top), y=(0, top), colour="muted", mark="none", line="solid"),
                    pic.Curve(
                        x=expected, y=given, sizes=tuple(one.n for one in bins), line="solid"
                    ),
                ),
                x=pic.Axis(label="gain the judge expects", span=(0, 1.04 * top)),
                y=pic.Axis(label="mean gain people give", span=(0, 1.04 * top)),
                square=True,
            ),
        )


def _audit_table(audit: JudgeAudit) -> b.Table:
    """Return how the judge and people agree; what is not known is left out."""
    agreement, fit, missing = audit.agreement, audit.calibration, audit.n_judge_missing
    # The threshold counts items as independent.
    useful = f"above {number(audit.useful_from, digits=2)}"
    rounded = " (judge rounded)" if agreement and agreement.rounded else ""
    rows: list[tuple[str, str | float | Interval | None, int]] = [
        ("items with both values", count(audit.n), 0),
        ("independent units among them", count(audit.n_clusters), 0),
        ("labelled, but not judged", count(missing) if missing else None, 0),
        ("Pearson's r", audit.pearson, 2),
        ("Spearman's ρ", audit.spearman, 2),
        ("Kendall's τ-b", audit.kendall, 2),
        ("r from which a judge is of use", useful if audit.n_clusters == audit.n else None, 0),
        ("mean of judge − people", audit.bias, 3),
        ("AUC", audit.auc, 2),
        *([
            (f"share with the same of {agreement.n_grades} grades{rounded}", agreement.exact, 2),
            ("Cohen's κ", agreement.kappa, 2),
            ("κ, quadratic weights", agreement.kappa_quadratic, 2),
            ("Krippendorff's α, ordinal", agreement.alpha_ordinal, 2),
        ][: 4 if agreement.n_grades > 2 else 2] if agreement else ()),
        *([
            ("gain, judge − people", fit.gain_error, 2),
            ("slope of people's gain on the judge's (1 is calibrated)", fit.gain_slope, 2),
            ("skill of the probabilities (1 is perfect, 0 no better than the shares)",
             fit.rps_skill, 2),
            ("expected calibration error, mean of the grades", fit.ece, 3),
        ] if fit else ()),
    ]  # fmt: skip
    known = tuple((name, _told(value, digits)) for name, value, digits in rows if value is not None)
    return b.Table(columns=("audit", ""), rows=known)


def _told(value: str | float | Interval, digits: int) -> str:
    if isinstance(value, Interval):
        return estimate(value, digits=digits)
    return value if isinstance(value, str) else number(value, digits=digits)


def _reading(report: JudgedReport) -> b.Section:
    units, target = _units(report), report.config.target
    relative = (
        "What is Relative Δ?",
        "The difference of two mean scores in percent of their average, from −200 to "
        "+200. Positive: the first, the baseline, is higher. Each source is corrected by "
        "its own human labels, since judges treat sources differently.",
    )
    single = (
        "What does the interval of one query promise?",
        "That of all queries, the stated share has its human value inside. It is no "
        "promise for a particular kind of query, and it is wide, because a judge that is "
        "right on average is often wrong about one query.",
    )
    rows = (
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
        *([relative] if any(c.kind == "relative_delta" for c in report.comparisons) else ()),
        *([single] if report.per_query else ()),
    )
    return b.reading(rows)


def _doubts(report: JudgedReport) -> b.Section:
    """Return what the intervals assume, and for which numbers; and what to know of each."""
    made = [
        *(("means", i) for m in report.means for i in (m.interval, m.labels_alone) if i),
        *(
            ("Relative Δ" if c.kind == "relative_delta" else "differences", c.interval)
            for c in report.comparisons
        ),
    ]
    where = (
        *((f"{what}, {i.method}", i.assumptions) for what, i in made),
        *((f"single queries, rule “{q.rule}”", q.assumptions) for q in report.per_query),
    )
    noted = (
        *((_name(mean), note) for mean in report.means for note in mean.interval.notes),
        *(
            (f"{c.measure}, {c.first} against {c.second}", note)
            for c in report.comparisons
            for note in c.interval.notes
        ),
        *(
            (f"audit of {name}", note)
            for name, audit in report.audits.items()
            for note in audit.notes[audit.useless :]  # the first stands among the warnings
            if note not in report.warnings
        ),
    )
    warned = bool(_warnings(report))
    return b.caveats(b.assumed(where), dict.fromkeys(noted), warned=warned)


def _data(report: JudgedReport) -> b.Section:
    c, items = report.config, report.kind == "items"
    what, judged = ("items", "items") if items else ("queries", "pairs")
    data = (
        ("name", report.name),
        ("kind", "items, one value each" if items else "rankings"),
        (f"{what} with human labels", count(report.n_labeled)),
        (f"{what} that only the judge saw", count(report.n_unlabeled)),
        (f"{judged} the judge gave no value", count(report.n_judge_missing)),
    )
    ranked = (
        ("gain of a grade", "2^r − 1" if c.gain == "exponential" else "r"),
        ("lowest relevant grade", str(c.min_grade)),
        ("intervals of single queries", "yes" if c.per_query else "no"),
    )
    settings = (
        ("method", f"{_method(report)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
        *(() if items else ranked),
        ("simulated evaluations per size", count(c.coverage_runs)),
        ("seed", str(c.seed)),
    )
    return b.data(
        (
            ("Data", b.Table(columns=("data", ""), rows=data)),
            ("Evaluation", b.Table(columns=("setting", ""), rows=settings)),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )


# Words and numbers


def _method(report: JudgedReport) -> str:
    return _METHODS.get(report.config.method, report.config.method)


def _name(of: JudgedMean | QueryIntervals | CoveragePoint, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{of.measure}{link}{of.system}" if of.system else of.measure


def _units(report: JudgedReport) -> str:
    return "items" if report.kind == "items" else "queries"


def _labels(report: JudgedReport, n: int, *, human: bool = False, more: bool = False) -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    unit = f"{'human ' * human}label{'s' * (n != 1)}"
    if report.kind == "ranking":
        unit = f"{'human-' * human}labelled {'query' if n == 1 else 'queries'}"
    return f"{count(n)} {'more ' * more}{unit}"


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


def _shown(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the mean with its interval, such as ``0.829 [0.795, 0.862]``."""
    return estimate(mean.interval, digits=_digits(report, mean.measure))
