"""The report of a judged evaluation: what it says, in the order in which it says it."""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.values import FloatArray, Interval
from rag_sourcebias.judged.data import (
    GroupBias,
    JudgeAudit,
    JudgedMean,
    JudgedRanks,
    JudgedReport,
    LabelCalibration,
    LabelledClusters,
    QueryIntervals,
)
from rag_sourcebias.judged.evidence import evidence_section
from rag_sourcebias.judged.words import (
    Role,
    comparison,
    decimals,
    digits_of,
    first,
    headline,
    how_to_read,
    method_name,
    name_of,
    other_scale,
    ranking,
    role,
    sentence,
    units_of,
    value_of,
    with_interval,
    within,
    worth_in_short,
    worth_of,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    MISSING,
    count,
    ends_about_zero,
    estimate,
    interval,
    level,
    number,
    p_value,
    shorten,
)

_LOOKS: dict[Role, str] = {"helps": "good", "useless": "poor", "costs": "poor", "unused": "poor"}
_LISTED = 10  # comparisons that a terminal lists whether or not they say anything
_FINITE = 0.1  # share of labelled items from which a finite population is worth a word
_TICKS = 15  # places that all have a tick
_LITTLE = 0.5  # of the range: an interval so wide says little about its query


def document(report: JudgedReport) -> b.Document:
    """Return everything there is to say about a judged evaluation."""
    missing = report.n_judge_missing
    return b.Document(
        kind="Judged evaluation",
        title=f"Judged evaluation: {report.name}",
        name=report.name,
        first=first(report),
        headline=headline(report),
        headline_to=b.FILES,
        facts=(
            (f"{count(report.n_labeled)} {units_of(report)} labelled by people",),
            (f"{count(report.n_unlabeled)} only judged",),
            *([(f"{count(missing)} without an answer of the judge",)] if missing else ()),
            *([(_in_clusters(report.clusters),)] if report.clusters else ()),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=_warnings(report),
        sections=(
            *([_ranking(report)] if report.ranks else ()),
            _findings(report),
            *filter(None, (evidence_section(report),)),
            _means(report),
            *([_ledger(report)] if any(m.ledger for m in report.means) else ()),
            *([_comparisons(report)] if report.comparisons else ()),
            *([_queries(report)] if report.per_query else ()),
            *([_judge(report)] if report.audits else ()),
            b.reading(how_to_read(report)),
            _doubts(report),
            _data(report),
        ),
    )


def _in_clusters(found: LabelledClusters) -> str:
    how = {
        "clusters": "each labelled whole",
        "items": "single items labelled",
        "both": "labelled in two steps: clusters, then items",
    }
    return f"labels in {count(found.n_labeled)} of {count(found.n)} clusters, {how[found.drawn]}"


def _warnings(report: JudgedReport) -> tuple[str, ...]:
    """Return what must be read before any number: warnings, and audits that found no use."""
    useless = (
        f"{name}: {note}"
        for name, audit in report.audits.items()
        if audit.useless
        for note in audit.notes[:1]
    )
    return tuple(dict.fromkeys((*report.warnings, *useless)))


# Sections


def _ranking(report: JudgedReport) -> b.Section:
    """Return what a reader of several systems wants first: who is best, and who is tied."""
    columns = (
        "system", "place", "possible places", "estimate", "judge alone", "place by the judge",
    )  # fmt: skip
    blocks: list[b.Block] = []
    for ranks in report.ranks:
        digits = digits_of(report, ranks.measure)
        # 1 is the largest; equal values share a place
        by_judge = [1 + sum(other > value for other in ranks.judge) for value in ranks.judge]
        rows = tuple(
            (
                name,
                count(place),
                count(best) if best == worst else f"{count(best)} to {count(worst)}",
                number(score, digits=digits),
                number(judge, digits=digits),
                count(other),
            )
            for place, (name, best, worst, score, judge, other) in enumerate(
                zip(
                    ranks.systems, ranks.best, ranks.worst, ranks.score, ranks.judge, by_judge,
                    strict=True,
                ),
                start=1,
            )
        )  # fmt: skip
        blocks += [
            b.Items(rows=(("", ranking(report, ranks)),), to=(*b.FILES, *b.TERMINAL)),
            b.Figures(items=((f"Places, {ranks.measure}", _places_picture(ranks, by_judge)),)),
            b.Grid(
                table=b.Table(columns=columns, rows=rows),
                caption=f"Systems in order of {ranks.measure}",
            ),
        ]
    return b.Section(
        id="ranking",
        title="Which system is best",
        lead="The places each system may have, as far as the labels tell. They rest on all pairs "
        "of systems on the same items and hold all at once. Systems whose places overlap may be "
        "tied. An estimate is drawn towards what the judge predicts, as far as chance explains "
        "the difference.",
        blocks=tuple(blocks),
    )


def _places_picture(ranks: JudgedRanks, by_judge: Sequence[int]) -> pic.Intervals:
    total = len(ranks.systems)
    return pic.Intervals(
        title=f"Possible places of each system by {ranks.measure}",
        rows=tuple(
            pic.Row(
                group=shorten(name, 40),
                marks=(
                    pic.Mark(at=place, ends=(best, worst), colour="baseline"),
                    pic.Mark(at=other, colour="other"),
                ),
            )
            for place, (name, best, worst, other) in enumerate(
                zip(ranks.systems, ranks.best, ranks.worst, by_judge, strict=True), start=1
            )
        ),
        x=pic.Axis(
            label="place (1: best)",
            span=(0.5, total + 0.5),
            digits=0,
            ticks=tuple((float(k), str(k)) for k in range(1, total + 1)) * (total <= _TICKS),
        ),
        keys=(("people and judge", "baseline", True), ("judge alone", "other", True)),
    )


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
    own = " on its own scale" if other_scale(report, mean) else ""
    facts = (
        level(i.confidence_level),
        f"{count(i.n_labeled)} labelled{only}",
        f"of the {i.target}" if i.target != "population" else "",
        f"judge alone {value_of(report, mean, mean.judge_alone)}{own}",
        "" if i.correlation is None else f"r = {number(i.correlation, digits=2)}",
    )
    return (
        (name_of(mean), "strong"),
        (f" {with_interval(report, mean)} ({', '.join(filter(None, facts))}). ", ""),
        (f"{worth_in_short(report, mean)}.", _LOOKS.get(role(report, mean), "")),
    )


def _card(report: JudgedReport, mean: JudgedMean) -> b.Card:
    alike = [other for other in report.means if other.measure == mean.measure]
    known = (i for other in alike for i in (other.interval, other.labels_alone) if i is not None)
    ends = [
        *(other.judge_alone for other in alike if not other_scale(report, other)),
        *(end for i in known for end in (i.lower, i.upper)),
    ]
    margin = 0.04 * (max(ends) - min(ends)) or 0.5
    scale = (min(ends) - margin, max(ends) + margin)
    judged, alone, judge = *_intervals(report, mean), mean.judge_alone
    rows = [
        b.CardRow(
            name=name,
            value=value_of(report, mean, found.estimate),
            ends=interval(found, digits=digits_of(report, mean.measure)),
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
    alone_row = b.CardRow(
        name="judge alone",
        value=value_of(report, mean, judge),
        ends="no interval",
        bar=None if other_scale(report, mean) else bar,
    )
    return b.Card(
        name=mean.system or mean.measure,
        tags=(b.Name(mean.measure),) if mean.system else (),
        standing=role(report, mean),
        short=worth_in_short(report, mean),
        text=worth_of(report, mean),
        rows=(*rows, alone_row),
    )


def _intervals(report: JudgedReport, mean: JudgedMean) -> tuple[Interval | None, Interval | None]:
    """Return the interval with the judge, and that of labels alone."""
    unused = role(report, mean) in {"absent", "unused"}
    return (None, mean.interval) if unused else (mean.interval, mean.labels_alone)


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
            value_of(report, m, m.interval.estimate),
            interval(m.interval, digits=digits_of(report, m.measure)),
            estimate(m.labels_alone, digits=digits_of(report, m.measure)),
            value_of(report, m, m.judge_alone),
            number(m.interval.correlation, digits=2),
            number(
                None if _intervals(report, m)[0] is None else m.labels_saved, digits=0, signed=True
            ),
            count(m.interval.n_labeled),
            count(m.interval.n_unlabeled),
        )
        for m in report.means
    )
    heads = ("measure", "system")[: 1 + named]
    measures = dict.fromkeys(mean.measure for mean in report.means)
    return b.Section(
        id="means",
        title="All means",
        blocks=(
            b.Figures(items=tuple((f"Mean {m}", _means_picture(report, m)) for m in measures)),
            b.Grid(
                table=b.Table(columns=(*heads, *columns), rows=rows, n_heads=len(heads)),
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
                    *(() if other_scale(report, mean) else
                      [pic.mark(None, "other", at=mean.judge_alone)]),
                ),
            )
        )  # fmt: skip
    drawn = {mark.colour for row in rows for mark in row.marks}
    return pic.Intervals(
        title=f"Mean {measure}{' by system' * named}, with and without the judge",
        rows=tuple(rows),
        x=pic.Axis(label=f"mean {measure}", digits=digits_of(report, measure)),
        keys=tuple(key for key in keys if key[1] in drawn),
    )


def _ledger(report: JudgedReport) -> b.Section:
    """Return where the width of each interval comes from, and what would narrow it."""
    known = [(mean, mean.ledger) for mean in report.means if mean.ledger is not None]
    units = units_of(report)
    parts = {
        "labels": f"few labelled {units}",
        "items": f"few {units}",
        "within_clusters": f"{units} of a cluster",
        "judges": "judges differing",
    }
    shown = [part for part in parts if any(getattr(ledger, part) for _, ledger in known)]
    nouns = {
        "labels": "labels",
        "items": f"judged {units}",
        "judges": "judges (or runs) like these",
    }
    steps = {(s.what, s.n): f"{count(s.n)} more {nouns[s.what]}" for _, x in known for s in x.next}
    rows = []
    for mean, ledger in known:
        half = {(s.what, s.n): s.half_width for s in ledger.next}
        rows.append(
            (
                name_of(mean),
                *(_share(getattr(ledger, part)) for part in shown),
                f"±{value_of(report, mean, mean.interval.half_width)}",
                *(f"±{value_of(report, mean, half[s])}" if s in half else MISSING for s in steps),
            )
        )
    return b.Section(
        id="ledger",
        title="What would narrow it",
        lead="Shares of the variance behind each interval, and its half-width after more of one "
        "thing, if all else stays as these labels show it: a forecast about as sure as the "
        f"labels are many. More judged {units} shrink the part from few {units} only.",
        blocks=(
            b.Grid(
                table=b.Table(
                    columns=(
                        "mean",
                        *(f"from {parts[part]}" for part in shown),
                        "half-width",
                        *steps.values(),
                    ),
                    rows=tuple(rows),
                ),
                caption="Where the width comes from, and what more would make of it",
            ),
        ),
    )


def _share(part: float | None) -> str:
    return MISSING if part is None else f"{number(100 * part, digits=0)}%"


def _comparisons(report: JudgedReport) -> b.Section:
    found = report.comparisons
    alone = [c for c in found if c.family == 1]
    more = (
        f" The {count(len(alone))} intervals are not widened for their number: the more are "
        "looked at, the more exclude 0 by chance."
    ) * (len(alone) > 1)
    if len(alone) < len(found):
        which = f" of one measure ({count(max(c.family for c in found))})" * (len(report.ranks) > 1)
        more += f" All differences between systems{which} hold at once."
    told = [("", comparison(report, c)) for c in found]
    clear = tuple(row for row, c in zip(told, found, strict=True) if c.interval.excludes(0))
    left = f"{len(found) - len(clear)} of {len(found)} cannot be told apart from no difference."
    many = len(found) > _LISTED
    short = (*b.PAGE, *(b.TERMINAL if many else ()))
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
            f"Relative Δ{within(c)}, %" if c.kind == "relative_delta" else "difference",
            number(c.interval.estimate, digits=decimals(report, c), signed=True),
            ends_about_zero(c.interval, digits=decimals(report, c)),
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
        f"correction for both would hide whom the judge favours.{more}",
        blocks=(
            b.Lines(rows=((),)),
            *([b.Items(rows=clear, to=short)] if clear else ()),
            *([b.Paragraph(text=left, to=short)] if len(clear) < len(found) else ()),
            b.Items(rows=tuple(told), to=(*b.MARKDOWN, *(() if many else b.TERMINAL))),
            b.Grid(
                table=b.Table(columns=columns, rows=rows, n_heads=4), caption="Every comparison"
            ),
        ),
    )


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
    rows = tuple(
        (
            name_of(query),
            query.rule,
            count(len(query.query_ids)),
            number(_width(query)[0], digits=digits_of(report, query.measure)),
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
            *(
                b.Figures(
                    items=tuple(
                        (f"{name_of(query)}: {what}", _query_picture(query, labelled=which))
                        for what, which in (("labelled", True), ("others", False))
                        if (labelled == which).any()
                    )
                )
                for query, labelled in zip(report.per_query, known, strict=True)
            ),
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
    return (query.lower - 1e-9 <= query.human) & (query.human <= query.upper + 1e-9)


def _query(report: JudgedReport, query: QueryIntervals) -> str:
    """Say how much an interval of one query leaves open."""
    (width, share), digits = _width(query), digits_of(report, query.measure)
    text = (
        f"{name_of(query, ' of ')}: the {level(query.confidence_level)} interval of a single query "
        f"is {number(width, digits=digits)} wide on average, {number(100 * share, digits=0)}% of "
        f"the range from 0 to {number(query.highest, digits=digits)}."
    )
    return text if share <= _LITTLE else f"{text} It says little about any one query."


def _query_picture(query: QueryIntervals, *, labelled: bool) -> pic.Lines:
    """Show queries sorted by human value (Fig. 4 of Oosterhuis et al., KDD 2024), or without one.

    Bars in the baseline's colour hold the human value; the others carry a cross where it is.
    """
    rows = np.flatnonzero(~np.isnan(query.human) == labelled)
    order = rows[
        np.lexsort((query.estimate[rows], (query.human if labelled else query.estimate)[rows]))
    ]
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
    kind, sort = (
        ("labelled queries", "human value")
        if labelled
        else ("queries without labels", "prediction")
    )
    return pic.Lines(
        title=f"Intervals of {count(n)} {kind}, {name_of(query)}",
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
        blocks=(
            *(_several(report) if report.judges else ()),
            *(
                block
                for name, audit in report.audits.items()
                for block in _audit(report, name, audit)
            ),
        ),
    )


def _several(report: JudgedReport) -> Iterator[b.Block]:
    spare = ", ".join(judge.name for judge in report.judges if judge.redundant)
    yield b.Paragraph(
        text=f"{len(report.judges)} judges are combined: the mean of their standardised values "
        "and, where labels are enough, what they say beyond it. A judge adds what r without it is "
        "below Pearson's r of the mean of all; with few labels both are rough."
        + f" {spare}: almost the same values as another judge; one of them would do."
        * bool(spare)
    )
    yield b.Grid(
        table=b.Table(
            columns=(
                "judge",
                "no value",
                "r with people",
                "r without it",
                "most like",
                "r with it",
            ),
            rows=tuple(
                (
                    judge.name,
                    count(judge.n_missing),
                    number(judge.correlation, digits=2),
                    number(judge.without, digits=2),
                    judge.closest,
                    number(judge.with_closest, digits=2),
                )
                for judge in report.judges
            ),
        ),
        caption="What each judge adds: its correlation with people, that of the mean of the "
        "others with people, and the judge it is most like",
    )


def _audit(report: JudgedReport, name: str, audit: JudgeAudit) -> Iterator[b.Block]:
    harm = (
        " A bias that is alike in all groups does a comparison no harm; one that differs "
        "turns a comparison by the judge alone."
    )
    own = any(other_scale(report, mean) for mean in report.means if mean.measure == name)
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
    tables = (
        (
            "Bias of the judge",
            ("group", "n", "people", "judge", "judge − people"),
            tuple(
                (group, count(g.n), number(g.human_mean, digits=3),
                 number(g.judge_mean, digits=3), _signed(g.bias))
                for group, g in every
            ),
        ),
        (
            "Differences of bias between groups; p-values adjusted by Holm's method",
            ("groups", "difference of bias", "p", "adjusted p"),
            tuple(
                (f"{d.group} − {d.other}", _signed(d.difference), p_value(d.p_value),
                 p_value(d.p_adjusted))
                for d in audit.differences
            ),
        ),
        (
            "Grades given by people and by the judge; ECE is the expected calibration error",
            ("grade", "people, %", "judge, %", "difference, points", "ECE", "ECE if calibrated"),
            tuple(
                (str(g.grade), number(100 * g.observed_share), number(100 * g.predicted_share),
                 estimate(g.difference, scale=100, signed=True), number(g.ece, digits=3),
                 number(g.ece_if_calibrated, digits=3))
                for g in (audit.calibration.grades if audit.calibration else ())
            ),
        ),
    )  # fmt: skip
    yield from (
        b.Grid(table=b.Table(columns=columns, rows=rows), caption=caption)
        for caption, columns, rows in tables
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
    people, judge = zip(
        *((100 * g.observed_share, 100 * g.predicted_share) for g in fit.grades), strict=True
    )
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
    return b.Table(
        columns=("audit", ""),
        rows=tuple(
            (name, _told(value, digits)) for name, value, digits in rows if value is not None
        ),
    )


def _told(value: str | float | Interval, digits: int) -> str:
    if isinstance(value, Interval):
        return estimate(value, digits=digits)
    return value if isinstance(value, str) else number(value, digits=digits)


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
        *((name_of(mean), note) for mean in report.means for note in mean.interval.notes),
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
    share = report.n_labeled / max(report.n_labeled + report.n_unlabeled, 1)
    if report.config.target == "population" and _FINITE <= share < 1:
        known = (
            f"people labelled {number(100 * share, digits=0)}%; they are taken for a sample of "
            "more like them. If they are all there are, target 'pool' gives the mean of exactly "
            "these, with an interval no wider"
        )
        noted = (*noted, (f"these {units_of(report)}", known))
    return b.caveats(b.assumed(where), dict.fromkeys(noted), warned=bool(_warnings(report)))


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
    settings = (
        ("method", f"{method_name(c.method)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
        *(() if items else (
            ("gain of a grade", "2^r − 1" if c.gain == "exponential" else "r"),
            ("lowest relevant grade", str(c.min_grade)),
            ("intervals of single queries", "yes" if c.per_query else "no"),
        )),
        ("seed", str(c.seed)),
    )  # fmt: skip
    return b.data(
        (
            ("Data", b.Table(columns=("data", ""), rows=data)),
            ("Evaluation", b.Table(columns=("setting", ""), rows=settings)),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )
