"""The report of a mitigation, before and after: what it says, in the order in which it says it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from rag_sourcebias.core.skew import SkewCode
from rag_sourcebias.core.values import Interval
from rag_sourcebias.debias.data import (
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
    DebiasSearch,
    QualityChange,
    TrainingHistory,
    TrainingPoint,
)
from rag_sourcebias.debias.evidence import evidence_section
from rag_sourcebias.debias.words import (
    DebiasVerdict,
    QualityKind,
    Standing,
    alpha,
    change_ends,
    criteria,
    data_name,
    delta_ends,
    first,
    headline,
    loss,
    percent,
    percent_ends,
    quality_kind,
    quality_names,
    search_sentence,
    short,
    significant,
    standings,
    transfer_sentence,
    verdict_text,
    verdicts,
    weight_text,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    MISSING,
    count,
    delta,
    estimate,
    interval,
    join,
    level,
    number,
    p_value,
    score,
    settings,
    share,
    short_names,
    shorten,
    source_name,
)

_KINDS = {
    "projection": "projection",
    "training": "training",
    "calibration": "calibration of scores",
    "twins": "twin smoothing",
    "model": "another model",
}
_NEW = {
    "transfer": "yes",
    "held out": "pairs only",
    "fitted": "no",
    "overlap": "no",
    "own": "own copies",
}
_T = TypeVar("_T")
_Value: TypeAlias = Callable[[TrainingPoint], float | None]
_NARROWEST = 10.0  # points of Relative Δ on either side of the target
_COLOURS: tuple[pic.Colour, ...] = ("baseline", "other", "even")
_MARKS: dict[QualityKind, pic.Key] = {
    "kept": ("loss excluded", "baseline", True),
    "open": ("not excluded", "even", False),
    "unknown": ("not excluded", "even", False),
    "lost": ("loss shown", "other", True),
}
#: What is recorded in training: on the axis, its decimals, and of each curve name, value and line.
_QUANTITIES: dict[str, tuple[int, tuple[tuple[str, _Value, Literal["solid", "dashed"]], ...]]] = {
    "Relative Δ": (1, (("", lambda p: p.relative_delta, "solid"),)),
    "mean loss": (
        3,
        (
            ("", lambda p: p.rank_loss, "solid"),
            ("debias loss × weight", lambda p: p.debias_loss, "dashed"),
        ),
    ),
    "hinge > 0, %": (
        1,
        (("", lambda p: None if p.hinge_share is None else 100 * p.hinge_share, "solid"),),
    ),
}
_COLUMN, _NAME = 8, 44  # characters of a terminal


def document(report: DebiasReport) -> b.Document:
    """Return everything there is to say about a mitigation."""
    parts = (
        _findings, evidence_section, _skew, _quality, _search, _training, _methods, _reading,
        _caveats, _data,
    )  # fmt: skip
    before = dict.fromkeys(d.outcomes[0].name for d in report.datasets if d.outcomes)
    after = list(dict.fromkeys(v.system for v in verdicts(report)))
    return b.Document(
        kind="Debias report: before and after",
        title=f"Before and after: {', '.join(after) or 'no changed system'}",
        name=after[0] if len(after) == 1 else f"{len(after) or 'No'} changed systems",
        first=first(report),
        headline=headline(report),
        facts=(
            *((("compared with ", b.Name(", ".join(before))),) if before else ()),
            (f"{len(report.datasets)} data set{'s' * (len(report.datasets) != 1)}",),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=_warnings(report),
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


def _warnings(report: DebiasReport) -> tuple[str, ...]:
    """Return what to know before any number is trusted; of single data sets with their name."""
    several = len(report.datasets) > 1
    told = [
        f"{data_name(report, dataset)}: {text}" if several else text
        for dataset in report.datasets
        for text in dataset.warnings
    ]
    return tuple(dict.fromkeys([*report.warnings, *told]))


def _where(report: DebiasReport, dataset: DebiasDataset, outcome: DebiasOutcome) -> str:
    return f"{outcome.name} on {data_name(report, dataset)}"


def _shown(value: _T | None, write: Callable[[_T], str]) -> str:
    return MISSING if value is None else write(value)


# Findings


def _findings(report: DebiasReport) -> b.Section:
    c, every, best = report.config, verdicts(report), standings(report)
    all_of = criteria(report)
    blocks: list[b.Block] = [
        b.Paragraph(text="There is no changed system in this report.", to=b.PAGE)
    ]
    if best:
        blocks = [
            b.Cards(cards=_cards(report, best), look="debias", middle=True, to=b.PAGE),
            b.Paragraph(
                text=f"Relative Δ of NDCG@{c.skew_cutoff} after the change with its "
                f"{level(c.confidence_level)} interval, on one scale with the target in the "
                f"middle; the grey square is before. Filled: all criteria met. {all_of}.",
                look="note",
                to=b.PAGE,
            ),
        ]
    for dataset in report.datasets:
        name = b.Name(data_name(report, dataset))
        blocks += [b.Heading(text=name, to=b.TERMINAL), _overview(report, dataset)]
        if found := [v for v in every if v.dataset is dataset]:
            rows = tuple((v.system, short(v), verdict_text(v).removesuffix(".")) for v in found)
            blocks += [b.Heading(text=name, to=b.PAGE), b.Statements(rows=rows, to=b.PAGE)]
    if report.datasets:
        blocks.append(
            b.Paragraph(
                text=f"Δ@k: Relative Δ of NDCG@k. * adjusted p of the change below "
                f"{alpha(report):.3g}. {', '.join(_narrow_names(report).values())}: change of "
                f"NDCG@{c.quality_cutoff} on these texts; ✓ a loss of {loss(c.relative_margin)} is "
                "excluded.",
                look="note",
                to=b.TERMINAL,
            )
        )
    blocks += [
        b.Paragraph(text=f"All criteria are met where: {all_of}.", to=b.MARKDOWN),
        b.Items(
            rows=tuple((f"{v.system} on {v.on}", verdict_text(v)) for v in every),
            to=(*b.MARKDOWN, *b.TERMINAL),
        ),
        b.Items(
            rows=tuple(("", transfer_sentence(s)) for s in best), to=(*b.MARKDOWN, *b.TERMINAL)
        ),
    ]
    if every:
        blocks.append(
            b.Grid(
                table=_verdicts_table(report, every),
                caption=f"Every system on every data set: Relative Δ of NDCG@{c.skew_cutoff}, "
                f"change of NDCG@{c.quality_cutoff}",
                to=b.FILES if len(every) > 1 else b.MARKDOWN,
            )
        )
    return b.Section(id="findings", title="Findings", blocks=tuple(blocks))


def _cards(report: DebiasReport, best: tuple[Standing, ...]) -> tuple[b.Card, ...]:
    """Return a card for every changed system, the best first, all bars on one scale."""
    c = report.config
    after = (o.skew_at(c.skew_cutoff).after for d in report.datasets for o in d.outcomes)
    ends = [end for found in after if found is not None for end in (found.lower, found.upper)]
    reach = 1.04 * max(abs(end - c.target) for end in (c.target + c.tolerance, *ends))
    return tuple(_card(standing, (c.target - reach, c.target + reach)) for standing in best)


def _card(standing: Standing, span: tuple[float, float]) -> b.Card:
    n, met, first = len(standing.verdicts), len(standing.met), standing.verdicts[0]
    text = (
        short(first)[:1].upper() + short(first)[1:]
        if n == 1
        else f"Meets all criteria on {met or 'none'} of {n} data sets"
    )
    return b.Card(
        name=standing.system,
        standing="all" if met == n else "some" if met else "none",
        short=text,
        text=transfer_sentence(standing),
        rows=tuple(_card_row(v, span) for v in standing.verdicts),
        tags=() if first.method is None else (_KINDS.get(first.method.kind, first.method.kind),),
    )


def _card_row(verdict: DebiasVerdict, span: tuple[float, float]) -> b.CardRow:
    now, before, worst = verdict.skew.after, verdict.skew.before, verdict.worst
    return b.CardRow(
        name=b.Name(verdict.on),
        value=_shown(now, lambda found: delta(found.estimate)),
        ends="no interval" if now is None else interval(now),
        bar=None
        if now is None
        else b.Bar.over(
            (now.lower, now.estimate, now.upper),
            span,
            side="baseline",
            solid=verdict.met,
            was=None if before is None else before.estimate,
        ),
        tag="new data" if verdict.role == "transfer" else "",
        note=""
        if worst is None
        else f"worst quality: {quality_names(verdict.report)[worst.quality]} "
        f"{percent(worst.relative)}",
    )


def _overview(report: DebiasReport, dataset: DebiasDataset) -> b.Grid:
    """Return the skew and the cost of every system as narrow columns of a terminal."""
    c, narrow = report.config, _narrow_names(report)
    heads, rows, sides = [*(f"Δ@{k}" for k in c.cutoffs), *narrow.values()], [], []
    for outcome in dataset.outcomes:
        # A blank keeps decimals in line with those of a mark.
        found = {f"Δ@{s.cutoff}": (f"{MISSING} ", "") for s in outcome.skew}
        for s in outcome.skew:
            if s.after is not None:
                text = delta(s.after.estimate) + ("*" if significant(report, s) else " ")
                found[f"Δ@{s.cutoff}"] = text, "baseline" if s.after.estimate >= 0 else "other"
        for q in outcome.quality:
            if q.cutoff == c.quality_cutoff:
                mark = "✓" if q.test is not None and q.test.passed else " "
                found[narrow[q.quality]] = percent(q.relative) + mark, ""
        cells = [found.get(head, ("", "")) for head in heads]
        rows.append((shorten(outcome.name, _NAME), *(text for text, _ in cells)))
        sides.append(("", *(side for _, side in cells)))
    columns = ("", *(f"{shorten(head, _COLUMN - 2)} " for head in heads))
    return b.Grid(
        table=b.Table(columns=columns, rows=tuple(rows)),
        caption="",
        width=_COLUMN,
        sides=tuple(sides),
        to=b.TERMINAL,
    )


def _narrow_names(report: DebiasReport) -> dict[str, str]:
    return {q: name.removesuffix("-only") for q, name in quality_names(report).items()}


def _verdicts_table(report: DebiasReport, every: tuple[DebiasVerdict, ...]) -> b.Table:
    names, rows = quality_names(report), []
    for v in every:
        changes = {change.quality: percent(change.relative) for change, _ in v.quality}
        rows.append(
            (
                v.system,
                v.on,
                short(v),
                _NEW.get(v.role, "not known"),
                _shown(v.skew.before, lambda found: delta(found.estimate)),
                delta_ends(v.skew.after),
                *(changes.get(quality, MISSING) for quality in names),
            )
        )
    columns = ("system", "data", "verdict", "new data", "before", "after", *names.values())
    return b.Table(columns=columns, rows=tuple(rows), n_heads=4)


# Skew and quality


def _skew(report: DebiasReport) -> b.Section | None:
    c, base = report.config, source_name(report.config.baseline_source)
    rows = tuple(
        (
            _where(report, dataset, outcome),
            f"@{s.cutoff}",
            delta_ends(s.before),
            delta_ends(s.after) + " ✓" * (s.code is SkewCode.ALIKE),
            delta_ends(s.change) + "*" * significant(report, s),
            p_value(s.p_value),
            p_value(s.p_adjusted),
        )
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:] or dataset.outcomes
        for s in outcome.skew
    )
    if not rows:
        return None
    columns = ("system and data", "NDCG", "before", "after", "change", "p", "adjusted p")
    caption = (
        f"Relative Δ of NDCG with {level(c.confidence_level)} intervals. ✓ the interval lies "
        f"within {c.tolerance:g} points of {c.target:g}. * adjusted p of the change below "
        f"{alpha(report):.3g}"
    )
    return b.Section(
        id="skew",
        nav="Skew",
        title="Skew before and after",
        lead="All sources are searched together. Relative Δ is 0 where both are treated alike, "
        f"positive where {base} text ranks higher; the decision is made at NDCG@{c.skew_cutoff}.",
        pictures=" The dashed line is the target, the band its tolerance. At smaller cutoffs "
        "intervals are wide: lines that end at the edge of the picture go on.",
        blocks=(
            b.Figures(items=_skew_pictures(report), small=True),
            b.Grid(table=b.Table(columns=columns, rows=rows, n_heads=2), caption=caption),
            b.Paragraph(text=f"{caption}.", to=b.MARKDOWN),
        ),
    )


def _target(report: DebiasReport, *, level: bool = False) -> tuple[pic.Guide, ...]:
    at, off = report.config.target, report.config.tolerance
    return (
        pic.Guide(at=at, look="dashed", colour="ink", level=level, name="target"),
        pic.Guide(at=at - off, to=at + off, colour="grid", level=level),
    )


def _skew_pictures(report: DebiasReport) -> tuple[tuple[str, pic.Picture], ...]:
    c = report.config
    # Intervals at cutoffs below the one that decides may be so wide that nothing else could be
    # seen: they may leave the picture.
    values = [0.0, c.target - _NARROWEST, c.target + _NARROWEST]
    for change in (s for d in report.datasets for o in d.outcomes for s in o.skew):
        for found in (change.before, change.after):
            if found is not None:
                steady = change.cutoff >= c.skew_cutoff
                values += [found.lower, found.upper] if steady else [found.estimate]
    margin = 0.04 * (max(values) - min(values))
    span = max(-210.0, min(values) - margin), min(210.0, max(values) + margin)
    pictures = []
    for dataset in (d for d in report.datasets if d.outcomes):
        rows = tuple(
            pic.Row(
                label=f"@{s.cutoff}",
                group=outcome.name,
                marks=tuple(
                    pic.mark(found, colour, solid=solid)
                    for found, colour, solid in (
                        (s.before, _COLOURS[2], False),
                        (s.after, _COLOURS[0], significant(report, s)),
                    )
                    if found is not None
                ),
                note="" if s.after is not None else "no interval",
            )
            for outcome in dataset.outcomes[1:] or dataset.outcomes
            for s in outcome.skew
        )
        changed: tuple[pic.Key, ...] = (
            ("before", "even", False),
            ("after", "baseline", False),
            ("after, significant", "baseline", True),
        )
        names = short_names((c.baseline_source, dataset.other)).values()
        base, other = (shorten(name, 20) for name in names)
        picture = pic.Intervals(
            title=f"Relative Δ before and after on {data_name(report, dataset)}",
            rows=rows,
            x=pic.Axis(label=f"← {other} higher  |  {base} higher →", span=span),
            guides=_target(report),
            keys=changed if dataset.outcomes[1:] else (("as it is", "baseline", False),),
            joined="arrow",
        )
        pictures.append((data_name(report, dataset), picture))
    return tuple(pictures)


def _quality(report: DebiasReport) -> b.Section | None:
    c, base, names = (
        report.config,
        source_name(report.config.baseline_source),
        quality_names(report),
    )
    found = [
        (_where(report, dataset, outcome), names.get(q.quality, q.quality), q)
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:]
        for q in outcome.quality
    ]
    shown = tuple(
        (where, name, *_quality_cells(q), *_test_cells(report, q))
        for where, name, q in found
        if q.cutoff == c.quality_cutoff
    )
    if not shown:
        return None
    margin, ends = loss(c.relative_margin), level(c.confidence_level)
    heads = ("before", "after", "change", "p")
    tested = ("bound", f"loss of {margin} excluded", "needed")
    columns: tuple[str, ...] = ("system and data", "quality", *heads, *tested)
    caption = (
        f"NDCG@{c.quality_cutoff} ×100, change in percent with {ends} interval; p of no change, "
        f"not adjusted. Bound: one-sided, at {level(1 - c.level)}. Needed: queries with which no "
        "change at all would pass with probability 80%"
    )
    blocks: list[b.Block] = [
        b.Figures(items=_quality_pictures(report), small=True),
        b.Grid(table=b.Table(columns=columns, rows=shown, n_heads=2), caption=caption),
        b.Paragraph(text=f"{caption}.", to=b.MARKDOWN),
    ]
    if len({q.cutoff for *_, q in found}) > 1:
        every = tuple((where, name, f"@{q.cutoff}", *_quality_cells(q)) for where, name, q in found)
        columns = ("system and data", "quality", "NDCG", *heads)
        grid = b.Grid(
            table=b.Table(columns=columns, rows=every, n_heads=3),
            caption=f"NDCG ×100 at every cutoff, change in percent with {ends} interval",
        )
        blocks.append(b.Fold(summary="Quality at every cutoff", blocks=(grid,)))
    return b.Section(
        id="quality",
        nav="Quality",
        title="What it costs",
        lead=f"Change of NDCG@{c.quality_cutoff} where only {base} texts are searched, only the "
        "other source's, and both together with both versions relevant.",
        pictures=f" Lines are intervals; the upright tick is the one-sided bound at "
        f"{level(1 - c.level)}, which has to lie right of the dotted line: then a loss of {margin} "
        "or more is excluded.",
        blocks=tuple(blocks),
    )


def _quality_pictures(report: DebiasReport) -> tuple[tuple[str, pic.Picture], ...]:
    """Return the change of every quality in percent with the bound of its test."""
    drawn: dict[str, pic.Intervals] = {}
    c, measure = report.config, f"NDCG@{report.config.quality_cutoff}"
    for dataset in report.datasets:
        found = [
            (verdict.system, change, kind)
            for verdict in verdicts(report)
            if verdict.dataset is dataset
            for change, kind in verdict.quality
        ]
        rows = tuple(
            pic.Row(
                label=quality_names(report)[change.quality],
                group=system,
                marks=(
                    pic.Mark(
                        at=change.relative,
                        ends=change_ends(change),
                        colour=_MARKS[kind][1],
                        solid=_MARKS[kind][2],
                    ),
                ),
                ticks=() if change.test is None else (max(change.test.lower, -100.0),),
            )
            for system, change, kind in found
            if change.relative is not None
        )
        if not rows:
            continue
        name = data_name(report, dataset)
        drawn[name] = pic.Intervals(
            title=f"Change of {measure} on {name}",
            rows=rows,
            x=pic.Axis(label=f"change of {measure}, %"),
            guides=(
                pic.Guide(at=0, look="dashed", colour="ink"),
                pic.Guide(at=-100 * c.relative_margin, look="dotted", colour="other"),
            ),
            keys=tuple(dict.fromkeys(_MARKS[kind] for _, _, kind in found)),
        )
    return tuple(zip(drawn, pic.aligned(list(drawn.values())), strict=True))


def _quality_cells(found: QualityChange) -> tuple[str, ...]:
    return score(found.before), score(found.after), percent_ends(found), p_value(found.p_value)


def _test_cells(report: DebiasReport, found: QualityChange) -> tuple[str, ...]:
    if found.test is None:
        return MISSING, "not tested", MISSING
    kind = quality_kind(report.config, found)
    return (
        f"{number(found.test.lower, signed=True)}%",
        {"kept": "yes", "lost": "no: it is shown"}.get(kind, "no"),
        count(found.test.n_needed) if kind == "open" else MISSING,
    )


# How it was found: search, training, methods


def _search(report: DebiasReport) -> b.Section | None:
    search, what, names = report.search, report.searched or "weight", quality_names(report)
    if search is None:
        return None
    # The unchanged system and the choice are called so, whether or not they are admitted.
    special = {search.chosen: "chosen", 0.0: "unchanged"}
    rows = tuple(
        (
            weight_text(p.weight),
            delta_ends(p.relative_delta),
            *(estimate(q, scale=100) for q in (p.human_only, p.llm_only, p.mixed)),
            p_value(p.p_value),
            p_value(p.p_adjusted),
            special.get(p.weight, "admitted" if p.admitted else "refused"),
        )
        for p in search.points
    )
    refused = tuple(
        (weight_text(p.weight), p.refusal or "no reason given")
        for p in search.points
        if not p.admitted
    )
    columns = (what, "Relative Δ", *names.values(), "p", "adjusted p", "")
    why = b.Table(columns=(what, "refused because"), rows=refused)
    found = search_sentence(report, search)
    return b.Section(
        id="search",
        nav="Search",
        title="The search",
        lead="A value is admitted if tests exclude a loss of "
        f"{loss(search.relative_margin)} or more of every quality; of the admitted ones that "
        "nearest the target is chosen.",
        pictures=" The pictures show Relative Δ against what was searched over, and the three "
        "qualities with the least that is accepted of each (dotted). Lines are intervals over "
        "queries and seeds.",
        blocks=(
            b.Paragraph(text=found),
            b.Items(rows=(("", found),), to=b.TERMINAL),
            b.Figures(
                items=(
                    ("Relative Δ", _search_skew(report, search)),
                    ("Quality", _search_quality(report, search)),
                ),
                small=True,
            ),
            b.Grid(
                table=b.Table(columns=columns, rows=rows),
                caption="Relative Δ and qualities ×100 with intervals; p is the largest of the "
                "three loss tests",
            ),
            *((b.Facts(tables=(("Why values were refused", why),)),) if refused else ()),
        ),
    )


def _weights(report: DebiasReport, search: DebiasSearch) -> pic.Axis:
    return pic.Axis(
        label=f"{report.searched or 'weight'} (evenly spaced)",
        ticks=tuple((float(i), weight_text(p.weight)) for i, p in enumerate(search.points)),
    )


def _search_skew(report: DebiasReport, search: DebiasSearch) -> pic.Lines:
    """Return Relative Δ against the weight, with the target and the choice ([K] Fig. 8)."""
    points, guides = search.points, _target(report, level=True)
    weights, values = [p.weight for p in points], [p.relative_delta.estimate for p in points]
    if (met := search.zero_crossing) is not None:
        ends = (met.lower, met.upper, met.estimate)
        low, high, at = map(float, np.interp(ends, weights, range(len(weights))))
        guides += (
            pic.Guide(at=low, to=high, colour="other"),
            pic.Guide(at=at, look="dotted", colour="other", name="meets the target"),
        )
    refused = [place for place, p in enumerate(points) if not p.admitted]
    chosen = [place for place, p in enumerate(points) if p.weight == search.chosen]
    curves = [
        pic.Curve(
            x=tuple(map(float, range(len(points)))),
            y=tuple(values),
            ends=tuple((p.relative_delta.lower, p.relative_delta.upper) for p in points),
            hollow=tuple(refused),
            line="solid",
            name="tried",
        ),
        pic.Curve(
            x=tuple(map(float, refused)),
            y=tuple(values[place] for place in refused),
            hollow=tuple(range(len(refused))),
            name="refused",
        ),
        pic.Curve(
            x=tuple(map(float, chosen)),
            y=tuple(values[place] for place in chosen),
            mark="ring",
            colour="ink",
            name="chosen",
        ),
    ]
    return pic.Lines(
        title=f"Relative Δ against {report.searched or 'weight'}",
        curves=tuple(curve for curve in curves if curve.x),
        x=_weights(report, search),
        y=pic.Axis(label="Relative Δ"),
        guides=guides,
    )


def _search_quality(report: DebiasReport, search: DebiasSearch) -> pic.Lines:
    """Return the three qualities against the weight, with the least accepted ([K] Fig. 9)."""
    points, names, accepted = search.points, quality_names(report), 1 - search.relative_margin
    qualities = [(p.human_only, p.llm_only, p.mixed) for p in points]
    curves = []
    for place, (name, colour) in enumerate(zip(names.values(), _COLOURS, strict=True)):
        found = [of[place] for of in qualities]
        x = tuple(at + 0.12 * (place - 1) for at in range(len(points)))
        values = pic.Curve(
            x=x,
            y=tuple(100 * q.estimate for q in found),
            ends=tuple((100 * q.lower, 100 * q.upper) for q in found),
            colour=colour,
            line="solid",
            name=name,
        )
        least = pic.Curve(
            x=(x[0], x[-1]),
            y=(accepted * values.y[0],) * 2,
            colour=colour,
            mark="none",
            line="dotted",
            name=f"−{loss(search.relative_margin)}" if place == len(names) - 1 else "",
        )
        curves += [values, least]
    told = (
        join([f"{n} {estimate(q, scale=100)}" for n, q in zip(names.values(), of, strict=True)])
        for of in qualities
    )
    return pic.Lines(
        title=f"Quality against {report.searched or 'weight'}",
        description=" ".join(
            f"{weight_text(p.weight)}: {text}." for p, text in zip(points, told, strict=True)
        ),
        curves=tuple(curves),
        x=_weights(report, search),
        y=pic.Axis(label=f"NDCG@{report.config.quality_cutoff} ×100"),
        guides=tuple(
            pic.Guide(at=place - 0.3, to=place + 0.3, colour="grid", name="chosen")
            for place, p in enumerate(points)
            if p.weight == search.chosen
        ),
    )


def _training(report: DebiasReport) -> b.Section | None:
    if not report.training:
        return None
    groups: dict[tuple[str, float], list[TrainingHistory]] = {}
    for run in report.training:
        groups.setdefault((run.name, run.debias_weight), []).append(run)
    drawn = tuple(
        (f"{name}: debias weight {weight_text(weight)}", picture)
        for (name, weight), runs in groups.items()
        for picture in _training_pictures(report, sorted(runs, key=lambda run: run.seed))
    )
    columns = ("system", "weight", "triples", "steps", "time", "Relative Δ", "hinge > 0", "end")
    runs = b.Table(columns=columns, rows=tuple(map(_run, report.training)), n_heads=2)
    blocks: list[b.Block] = [
        *((b.Figures(items=drawn, small=True),) if drawn else ()),
        b.Grid(table=runs, caption="Training runs, from the first to the last evaluation"),
    ]
    steps = _steps_table(report)
    if steps.rows:
        grid = b.Grid(
            table=steps,
            caption="Every evaluation during training; "
            f"NDCG@{report.config.skew_cutoff} ×100 of both sources",
        )
        blocks.append(b.Fold(summary="Every evaluation", blocks=(grid,)))
    return b.Section(
        id="training",
        title="Training",
        lead="Relative Δ on the judged data, the two parts of the loss and the share of training "
        "pairs on which the LLM version still scored above the human one (a positive hinge), by "
        "optimiser step.",
        pictures=" One line per seed." if drawn else "",
        blocks=tuple(blocks),
    )


def _training_pictures(
    report: DebiasReport, runs: Sequence[TrainingHistory]
) -> Iterator[pic.Picture]:
    """Yield a picture per quantity that was recorded, with one line per seed."""
    of = f"training of {runs[0].name}, weight {weight_text(runs[0].debias_weight)}"
    for label, (digits, quantities) in _QUANTITIES.items():
        curves = tuple(
            pic.Curve(
                x=tuple(float(p.step) for p in run.points if value(p) is not None),
                y=tuple(y for p in run.points if (y := value(p)) is not None),
                colour=colour,
                line=line,
                name=name or f"seed {run.seed}",
            )
            for run, colour in zip(runs, cycle(_COLOURS))
            for name, value, line in quantities
            if any(value(p) is not None for p in run.points)
        )
        skew = label == "Relative Δ"
        if curves:
            yield pic.Lines(
                title=f"{label} in {of}",
                curves=curves,
                x=pic.Axis(label="step", digits=0),
                y=pic.Axis(label=label, span=(None if skew else 0.0, None), digits=digits),
                guides=_target(report, level=True) if skew else (),
            )


def _run(run: TrainingHistory) -> tuple[str, ...]:
    deltas = [delta(p.relative_delta) for p in run.points if p.relative_delta is not None]
    hinges = [share(p.hinge_share) for p in run.points if p.hinge_share is not None]
    return (
        run.name,
        f"{weight_text(run.debias_weight)}, seed {run.seed}",
        count(run.n_pairs),
        count(run.n_steps),
        f"{number(run.seconds, digits=0)} s",
        *(f"{of[0]} → {of[-1]}" if of else MISSING for of in (deltas, hinges)),
        run.stopped or "ran to its end",
    )


def _steps_table(report: DebiasReport) -> b.Table:
    rows = tuple(
        (
            f"{run.name}, weight {weight_text(run.debias_weight)}, seed {run.seed}",
            count(p.step),
            *(_shown(part, "{:.4g}".format) for part in (p.rank_loss, p.debias_loss)),
            _shown(p.hinge_share, share),
            _shown(p.relative_delta, delta),
            *(_shown(mean, score) for mean in (p.baseline, p.other)),
        )
        for run in report.training
        for p in run.points
    )
    return b.Table(
        columns=(
            "run", "step", "ranking loss", "weighted debias loss", "hinge > 0", "Relative Δ",
            report.config.baseline_source, "other",
        ),
        rows=rows,
        n_heads=2,
    )  # fmt: skip


def _methods(report: DebiasReport) -> b.Section | None:
    if not report.methods:
        return None
    return b.Section(
        id="methods",
        title="What was done",
        lead="How each changed system was made. A method fitted on pairs that are also judged may "
        "look better than it is.",
        blocks=(
            b.Facts(tables=tuple((b.Name(m.name), _method(report, m)) for m in report.methods)),
        ),
    )


def _method(report: DebiasReport, method: DebiasMethod) -> b.Table:
    seen = [
        f"{count(o.n_seen)} of {count(d.n_pairs)} on {d.data.name}"
        for d in report.datasets
        for o in d.outcomes[1:]
        if o.name == method.name
    ]
    cost = (
        "not measured"
        if method.encode_cost is None
        else f"{number(100 * (method.encode_cost - 1), signed=True)}% of the time before"
    )
    rows = (
        ("kind", _KINDS.get(method.kind, method.kind)),
        ("fitted on", method.fitted_on or "not known"),
        ("pairs", "not known" if method.n_pairs is None else count(method.n_pairs)),
        ("encode cost", cost),
        ("judged pairs seen in fitting", "; ".join(seen) or "not judged"),
        *((str(key), str(value)) for key, value in method.settings.items()),
    )
    return b.Table(columns=(method.name, ""), rows=rows)


# How to read it, what to doubt, what it was made with


def _reading(report: DebiasReport) -> b.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    rows = [
        (
            "What is Relative Δ?",
            "The ranking of the mixed corpus is scored twice: once counting only relevant "
            f"{base} texts, once only those of the other source. Relative Δ is the difference of "
            "the two means in percent of their average: positive where "
            f"{base} text ranks higher, negative where the other does.",
        ),
        (
            "When does a system meet all criteria?",
            f"{criteria(report)}. No estimate is enough for that. An interval that neither lies "
            "there nor excludes the target cannot tell; then the queries needed are named.",
        ),
        (
            "What does “a loss is excluded” mean?",
            f"A one-sided paired test at level {c.level:g} rejects that the loss is "
            f"{loss(c.relative_margin)} or more. “Not excluded” does not mean that quality fell: "
            "often there are too few queries, and the number that could settle it is given.",
        ),
        (
            f"What are {', '.join(quality_names(report).values())}?",
            "NDCG on the corpus of one source alone, twice, and on the mixed corpus where both "
            "versions count as relevant. A mitigation that only reorders the sources leaves the "
            "first two as they are.",
        ),
        (
            "What is a transfer test?",
            "Data that the method was not fitted on. The differences between sources depend on "
            "the topic and on the generating model, so that success on the data of the fit does "
            "not promise success elsewhere: believe a transfer only where it was measured.",
        ),
        (
            "What do intervals and p-values cover?",
            f"Each {level(c.confidence_level)} interval covers the value for all queries like "
            "these, one at a time. Before and after are paired by query, so the change is known "
            "better than two separate intervals suggest; where few queries changed, its interval "
            "is cautious and may hold 0 although the test is significant. p is of no change; "
            f"{count(report.n_tests)} tests are adjusted together: {report.family.rstrip('.')}. "
            f"Below {alpha(report):.3g} the adjusted value is called significant.",
        ),
    ]
    if report.search is not None:
        rows.append(
            (
                "Why not simply the value where the curve meets the target?",
                "Because it may cost quality, and because the curve itself is known only within "
                "its intervals. A choice among many values looks better than it is on the queries "
                "it was made on; tests and the interval of the choice allow for that, or other "
                "queries are used.",
            )
        )
    rows.append(
        (
            "Where are single queries?",
            "In the JSON of this report: NDCG of every system, cutoff and query, on the mixed "
            "corpus by source, on each source alone and on the mixed corpus as a whole.",
        )
    )
    return b.reading(rows)


def _caveats(report: DebiasReport) -> b.Section:
    search, intervals = report.search, tuple(_intervals(report))
    assumptions = [(f"{what}, {found.method}", found.assumptions) for _, what, found in intervals]
    noted = [*_refusals(report)]
    noted += [(where, f"{what}: {note}") for where, what, i in intervals for note in i.notes]
    if search is not None:
        assumptions.append(("search", search.assumptions))
        noted += [("search", note) for note in search.notes]
    noted += [
        (f"training of {run.name}, seed {run.seed}", run.stopped)
        for run in report.training
        if run.stopped
    ]
    return b.caveats(b.assumed(assumptions), dict.fromkeys(noted), warned=bool(_warnings(report)))


def _intervals(report: DebiasReport) -> Iterator[tuple[str, str, Interval]]:
    """Yield (where, of what, interval) of everything that has one."""
    found: list[tuple[str, str, Interval | None]] = []
    for dataset, outcome in ((d, o) for d in report.datasets for o in d.outcomes):
        where, skew = _where(report, dataset, outcome), "Relative Δ"
        found += [
            (where, what, i)
            for s in outcome.skew
            for what, i in ((skew, s.before), (skew, s.after), (f"change of {skew}", s.change))
        ]
        found += [(where, "change of quality", q.difference) for q in outcome.quality]
    if (search := report.search) is not None:
        found += [
            ("search", what, i)
            for p in search.points
            for what, i in (
                ("Relative Δ of the search", p.relative_delta),
                *(("quality in the search", q) for q in (p.human_only, p.llm_only, p.mixed)),
            )
        ]
        found += [
            ("search", "Relative Δ of the chosen weight", search.chosen_relative_delta),
            ("search", "crossing of the target", search.zero_crossing),
        ]
    yield from ((where, what, i) for where, what, i in found if i is not None)


def _refusals(report: DebiasReport) -> Iterator[tuple[str, str]]:
    """Yield (where, why) of intervals and tests that are missing, and of tests made otherwise."""
    names = quality_names(report)
    every = [(_where(report, d, o), o) for d in report.datasets for o in d.outcomes]
    for where, outcome in every:
        yield from (
            (f"{where}, Relative Δ@{s.cutoff}", s.refusal) for s in outcome.skew if s.refusal
        )
        reasons: dict[tuple[str, str], list[int]] = {}
        for q in outcome.quality:
            if q.refusal:
                reasons.setdefault((names[q.quality], q.refusal), []).append(q.cutoff)
        for (name, why), cutoffs in reasons.items():
            yield f"{where}, {name} NDCG@{', @'.join(map(str, cutoffs))}", why
    for where, outcome in every:
        for q in outcome.quality:
            if q.test is not None and q.test.note:
                yield where, f"test of {q.quality} quality: {q.test.note}"


def _data(report: DebiasReport) -> b.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    tables: list[tuple[str, b.Table]] = []
    systems: dict[str, str] = {}
    for dataset in report.datasets:
        facts = b.summary_table(dataset.data)
        rows = (
            *facts.rows,
            ("compared", f"{base} with {source_name(dataset.other)}"),
            ("pairs with a relevant version", count(dataset.n_pairs)),
        )
        tables.append((b.Name(data_name(report, dataset)), replace(facts, rows=rows)))
        for outcome in dataset.outcomes:
            systems.setdefault(outcome.name, settings(outcome.scores.settings))
    systems |= {f"training of {run.name}": settings(run.settings) for run in report.training}
    comparison = (
        ("baseline source", base),
        ("cutoffs of NDCG", ", ".join(map(str, c.cutoffs))),
        ("skew is judged at", f"NDCG@{c.skew_cutoff}"),
        ("quality is judged at", f"NDCG@{c.quality_cutoff}"),
        ("target of Relative Δ", f"{c.target:g} ± {c.tolerance:g}"),
        ("largest loss accepted", loss(c.relative_margin)),
        ("level of the loss tests", f"{c.level:g}"),
        ("confidence level", level(c.confidence_level)),
        ("family", report.family or MISSING),
        ("tests in the family", count(report.n_tests)),
        ("ties", c.ties),
        ("gain", c.gain),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    tables += [
        ("Comparison", b.Table(columns=("setting", ""), rows=comparison)),
        ("Systems", b.Table(columns=("system", "settings"), rows=tuple(systems.items()))),
        ("Environment", b.environment_table(report.environment, report.created)),
    ]
    return b.data(tables)
