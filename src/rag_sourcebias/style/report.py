"""The report on writing styles: what it says and shows, in the order in which it is read.

Its names and sentences are in :mod:`rag_sourcebias.style.words`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from rag_sourcebias.core.values import Interval
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    CORRECTIONS,
    MISSING,
    capital,
    count,
    counted,
    delta,
    estimate,
    interval,
    level,
    number,
    p_value,
    score,
    settings,
    share,
    shorten,
)
from rag_sourcebias.report.text_stats import text_figures, text_key, text_notes, text_table
from rag_sourcebias.style.data import StyleCode, StyleReport, StyleRow, StyleSystem
from rag_sourcebias.style.evidence import evidence_section
from rag_sourcebias.style.words import (
    Verdict,
    alpha,
    average_ranks,
    chance_sentence,
    first,
    headline,
    index_sentence,
    leading_measure,
    length_sentence,
    marked_names,
    matching_sentence,
    original_row,
    original_text,
    predicate,
    quality_sentence,
    score_with,
    short,
    sides,
    significant,
    span,
    star_note,
    style_list,
    style_name,
    verdict_sentence,
    verdicts,
)

_REM = 6  # of the page per inch of a picture
_WIDE = 12  # document styles from which a heat map needs the whole page
_ROWS = 12  # in one picture of several systems
_CAPTION = 60  # characters
_DROPPED = 10  # queries that are named
_COLUMN = 16  # characters of a system's column in a terminal


def document(report: StyleReport) -> b.Document:
    """Return everything there is to say about how styles are ranked."""
    data = report.data
    parts = (
        _findings,
        evidence_section,
        _ranks,
        _matrix,
        _unfairness,
        _matching,
        _length,
        _quality,
        _index,
        _texts,
        _pairs,
        _reading,
        _caveats,
        _data,
    )
    return b.Document(
        kind="Writing style report",
        title=f"Writing style report: {data.name}",
        name=data.name,
        first=first(report),
        headline=headline(report),
        facts=(
            (counted(data.n_queries, "query", "queries"),),
            (counted(len(data.doc_styles), "document style"),),
            (counted(len(data.query_styles), "query style"),),
            (counted(len(report.systems), "system"),),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


# Findings


def _findings(report: StyleReport) -> b.Section:
    found = verdicts(report)
    bounds = [i for v in found for i in (v.row.unfairness_interval, v.system.mean_unfairness)]
    ends = [end for v in found for end in (v.row.unfairness.score, _chance(v.row))]
    top = 1.04 * max([1e-9, *ends, *(i.upper for i in bounds if i is not None)])
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            b.Cards(cards=tuple(_card(report, v, top) for v in found), look="styled", to=b.PAGE),
            b.Paragraph(
                text=f"Unfairness with its {level(report.config.confidence_level)} interval, from "
                "0 on one scale for all systems; the upright line is what chance alone would give. "
                "A hollow dot: the order of styles may be chance (Friedman).",
                look="note",
                to=b.PAGE,
            ),
            *([_overview(report)] if found else []),
            b.Paragraph(text=star_note(report, intervals=False), look="note", to=b.TERMINAL),
            b.Items(
                rows=tuple(("", verdict_sentence(report, v)) for v in found),
                to=(*b.MARKDOWN, *b.TERMINAL),
            ),
        ),
    )


def _card(report: StyleReport, verdict: Verdict, top: float) -> b.Card:
    system, row, found = verdict
    text = f"{capital(predicate(report, found))}."
    if found.code is not StyleCode.TIED:
        text += f" {chance_sentence(report, row)}"
    return b.Card(
        name=system.name,
        standing=f"{found.code}{' better' if found.favoured and not found.silenced else ''}",
        short=short(report, found),
        text=text,
        rows=tuple(_card_rows(report, system, row, top)),
    )


def _card_rows(
    report: StyleReport, system: StyleSystem, row: StyleRow, top: float
) -> Iterator[b.CardRow]:
    found, test, mean = row.unfairness, row.friedman, system.mean_unfairness
    name, solid = f"{style_name(row.query_style)} queries", significant(report, test.p_value)
    measured = [(f"unfairness, {name}", found.score, row.unfairness_interval, _chance(row), solid)]
    if mean is not None and len(system.rows) > 1:
        name = f"mean over {len(system.rows)} query styles"
        measured.append((name, mean.estimate, mean, _chance(*system.rows), True))
    for name, value, bounds, chance, solid in measured:
        low, high = (value, value) if bounds is None else (bounds.lower, bounds.upper)
        yield b.CardRow(
            name=name,
            value=number(value, digits=2),
            ends=interval(bounds, digits=2),
            bar=b.Bar.over(
                (low, value, high), (0, top), side="baseline", solid=solid, chance=chance
            ),
        )
    for name, text in (
        ("by chance alone", number(_chance(row), digits=2)),
        ("Kendall's W", number(test.w, digits=2)),
        ("Friedman p", p_value(test.p_value)),
    ):
        yield b.CardRow(name=name, value=text, ends="")


def _chance(*rows: StyleRow) -> float:
    """Return the unfairness that chance alone would give, on average under these query styles."""
    return fmean(row.unfairness.null_expectation for row in rows)


def _overview(report: StyleReport) -> b.Grid:
    """Return average ranks and unfairness of all systems for a terminal."""
    systems, styles = report.systems, report.data.query_styles
    measured = [(system, original_row(report, system)) for system in systems]
    ranks = zip(*(average_ranks(system, row) for system, row in measured), strict=True)
    colours = tuple(zip(*(sides(report, row) for _, row in measured), strict=True))
    rows = [
        # The blank keeps the decimals in line with a rank that carries a star.
        ("", name, *(f"{number(v)}{'*' if side else ' '}" for v, side in zip(*of, strict=True)))
        for name, *of in zip(marked_names(report), ranks, colours, strict=True)
    ]
    scored = [
        *(
            (style_name(style), [s.rows[at : at + 1] for s in systems])
            for at, style in enumerate(styles)
        ),
        *[("mean", [s.rows for s in systems])] * (len(styles) > 1),
    ]
    rows += [
        (
            "unfairness / by chance",
            name,
            *(
                f"{number(fmean(row.unfairness.score for row in each), digits=2)} / "
                f"{number(_chance(*each), digits=2)}"
                for each in of
            ),
        )
        for name, of in scored
    ]
    return b.Grid(
        table=b.Table(
            columns=("", "average rank", *(system.name for system in systems)),
            rows=tuple(rows),
            n_heads=2,
        ),
        caption="Average ranks and unfairness",
        width=_COLUMN,
        sides=tuple(("", "", *of) for of in colours),
        to=b.TERMINAL,
    )


# Pictures: blue circles rank above the original or gain, orange triangles rank below or lose


def _figures(captions: Iterable[str], pictures: Sequence[pic.Intervals]) -> tuple[b.Block, ...]:
    """Return pictures on one scale, nothing for none."""
    found = tuple(zip(captions, pic.aligned(pictures), strict=True))
    return (b.Figures(items=found),) * bool(found)


def _row(
    name: str,
    value: float,
    bounds: Interval | None,
    *,
    worse: float,
    solid: bool,
    scale: float = 1.0,
    group: str = "",
) -> pic.Row:
    colour: pic.Colour = "even" if abs(worse) < 5e-7 else "other" if worse > 0 else "baseline"
    return pic.Row(
        label=name,
        group=group,
        marks=(pic.mark(bounds, colour, at=value, scale=scale, solid=solid),),
    )


def _compared(
    title: str,
    label: str,
    rows: Iterable[pic.Row],
    *,
    at: float = 0.0,
    filled: str = "significant",
    keys: tuple[pic.Key, ...] = (),
) -> pic.Intervals:
    return pic.Intervals(
        title=title,
        rows=tuple(rows),
        x=pic.Axis(label=label, signed=at == 0),
        guides=(pic.Guide(at=at, look="dashed", colour="ink"),),
        keys=keys,
        filled=filled,
    )


# Ranks and unfairness


def _ranks(report: StyleReport) -> b.Section | None:
    if not report.systems:
        return None
    config, base = report.config, original_text(report)
    measured = [(system, original_row(report, system)) for system in report.systems]
    cells = [_cells(report, system, row) for system, row in measured]
    names = tuple(system.name for system in report.systems)
    blocks = _figures(names, [_ranks_picture(report, *of) for of in measured])
    if len(names) > 1:
        blocks += (
            b.Heading(text="Systems side by side", to=b.PAGE),
            b.Paragraph(
                text=f"Distance from {base} in places, paired by query: left of the dashed line a "
                "style ranks above it. Hollow marks are not significant.",
                to=b.PAGE,
            ),
            *_side_by_side(report, measured),
        )
    return b.Section(
        id="ranks",
        nav="Document styles",
        title="Which document styles rank higher",
        pictures="The versions of one document are ranked by their similarity to the query, "
        f"nothing else competes. Lines are {level(config.confidence_level)} intervals under "
        f"{style_name(config.original_query)} queries. The dashed line is {base}; blue circles "
        "rank above it, orange triangles below, hollow ones not significantly so.",
        blocks=(
            *blocks,
            b.Grid(
                table=b.Table(
                    columns=("document style", *names),
                    rows=tuple(zip(marked_names(report), *cells, strict=True)),
                ),
                caption=star_note(report),
            ),
            b.Paragraph(text=star_note(report), to=b.MARKDOWN),
        ),
    )


def _cells(report: StyleReport, system: StyleSystem, row: StyleRow) -> tuple[str, ...]:
    return tuple(
        f"{number(mean)}{'*' if side else ''}{span(ends)}"
        for mean, side, ends in zip(
            average_ranks(system, row), sides(report, row), row.average_ranks, strict=True
        )
    )


def _ranks_picture(report: StyleReport, system: StyleSystem, row: StyleRow) -> pic.Intervals:
    """Show the average rank of each document style ([W] Fig. 2), the original as a dashed line."""
    styles, original = report.data.doc_styles, report.config.original
    means = average_ranks(system, row)
    base = means[styles.index(original)]
    return _compared(
        f"Average rank of each document style, {system.name}",
        "average rank (1 is first)",
        (
            _row(style_name(s), mean, ends, worse=mean - base, solid=bool(side) or s == original)
            for s, mean, ends, side in zip(
                styles, means, row.average_ranks, sides(report, row), strict=True
            )
        ),
        at=base,
        keys=(("original", "even", True),),
    )


def _side_by_side(
    report: StyleReport, measured: Sequence[tuple[StyleSystem, StyleRow]]
) -> tuple[b.Block, ...]:
    """Show the distance of each document style from the original, all systems under its name."""
    styles = [s for s in report.data.doc_styles if s != report.config.original]
    size = math.ceil(len(styles) / math.ceil(len(styles) * len(measured) / _ROWS))
    parts = [styles[start : start + size] for start in range(0, len(styles), size)]
    base = original_text(report)
    pictures = [
        _compared(
            f"Average rank minus that of {base}, by style and system",
            f"← above  |  below {shorten(base, 12)} →",
            (
                _row(
                    system.name,
                    pair.difference,
                    pair.interval,
                    worse=pair.difference,
                    solid=significant(report, pair.p_adjusted),
                    group=style_name(style),
                )
                for style in part
                for system, row in measured
                for pair in row.against_original
                if pair.first == style
            ),
        )
        for part in parts
    ]
    return _figures((shorten(capital(style_list(part)), _CAPTION) for part in parts), pictures)


def _matrix(report: StyleReport) -> b.Section | None:
    styles, tables = report.data.doc_styles, list[b.Block]()
    if len(report.data.query_styles) < 2 or not report.systems:
        return None
    for system in report.systems:
        table = b.Table(
            columns=("query style", *map(style_name, styles)),
            rows=tuple(
                (style_name(row.query_style), *_cells(report, system, row)) for row in system.rows
            ),
        )
        tables += [
            b.Heading(text=b.Name(system.name)),
            b.Grid(table=table, caption=star_note(report)),
        ]
    items = tuple((system.name, _heat_map(report, system)) for system in report.systems)
    return b.Section(
        id="matrix",
        nav="Query × document styles",
        title="Query style × document style",
        pictures="Average rank of each document style (columns) when the query is written in each "
        "style (rows). Blue cells rank above the middle, orange below. Bold numbers differ "
        f"significantly from {original_text(report)} in the same row; frames mark a query and a "
        "document in the same style.",
        blocks=(
            b.Figures(
                items=items,
                wide=round(_REM * pic.width(items[0][1])) if len(styles) > _WIDE else 0,
            ),
            b.Fold(summary="The numbers with their intervals", blocks=tuple(tables)),
        ),
    )


def _heat_map(report: StyleReport, system: StyleSystem) -> pic.HeatMap:
    styles, queries = report.data.doc_styles, report.data.query_styles
    return pic.HeatMap(
        title=f"Average rank by query style and document style, {system.name}",
        rows=queries,
        columns=styles,
        values=tuple(average_ranks(system, row) for row in system.rows),
        middle=(len(styles) + 1) / 2,
        reach=(len(styles) - 1) / 2,
        x=pic.Axis(label="document style"),
        y=pic.Axis(label="query style"),
        strong=tuple(
            (y, x)
            for y, row in enumerate(system.rows)
            for x, side in enumerate(sides(report, row))
            if side
        ),
        framed=tuple((queries.index(s), x) for x, s in enumerate(styles) if s in queries),
    )


def _unfairness(report: StyleReport) -> b.Section | None:
    if not report.systems:
        return None
    name, several = level(report.config.confidence_level), len(report.data.query_styles) > 1
    columns = (
        "system", "query style", "unfairness", f"{name} interval", "by chance", "minus chance",
        "of the maximum", "rank range", "Kendall's W", "Friedman χ²", "p",
    )  # fmt: skip
    rows = tuple(
        (
            system.name,
            style_name(row.query_style),
            number(found.score, digits=2),
            interval(row.unfairness_interval, digits=2),
            number(found.null_expectation, digits=2),
            number(found.corrected, digits=2),
            share(found.normalised),
            share(found.rank_range),
            number(test.w, digits=3),
            f"{number(test.statistic)} ({test.degrees} df)",
            p_value(test.p_value),
        )
        for system in report.systems
        for row in system.rows
        for found, test in ((row.unfairness, row.friedman),)
    )
    blocks: tuple[b.Block, ...] = (
        b.Grid(
            table=b.Table(columns=columns, rows=rows, n_heads=2),
            caption="Unfairness, chance, agreement and tests",
        ),
    )
    if len(report.systems) > 1 or several:
        drawn = report.systems if several else ()
        blocks = (
            *_figures((s.name for s in drawn), [_unfairness_picture(report, s) for s in drawn]),
            b.Grid(
                table=_comparison(report),
                caption=f"Unfairness by query style and system, with {name} intervals",
            ),
            b.Fold(summary="Everything about unfairness", blocks=blocks),
        )
    return b.Section(
        id="unfairness",
        title="Unfairness",
        lead="Unfairness is (largest − smallest) × standard deviation of the average ranks: 0 when "
        "all styles rank alike. It cannot be negative, so chance alone gives a positive score: the "
        "short upright lines show how much. A low mean over query styles is a fair system, a low "
        "standard deviation (sd) a robust one.",
        blocks=blocks,
    )


def _unfairness_picture(report: StyleReport, system: StyleSystem) -> pic.Intervals:
    """Show unfairness under each query style; a short line is what chance alone would give."""
    return pic.Intervals(
        title=f"Unfairness by query style, {system.name}",
        rows=tuple(
            pic.Row(
                label=style_name(row.query_style),
                marks=(
                    pic.mark(
                        row.unfairness_interval,
                        "baseline",
                        at=row.unfairness.score,
                        solid=significant(report, row.friedman.p_value),
                    ),
                ),
                ticks=(_chance(row),),
            )
            for row in system.rows
        ),
        x=pic.Axis(label="unfairness", span=(0.0, None), digits=2),
        ticked="by chance",
        filled="significant",
    )


def _comparison(report: StyleReport) -> b.Table:
    systems, styles = report.systems, report.data.query_styles
    rows = [
        (style_name(name), *(score_with(r.unfairness.score, r.unfairness_interval) for r in of))
        for name, *of in zip(styles, *(s.rows for s in systems), strict=True)
    ]
    if len(styles) > 1:
        scores = [[row.unfairness.score for row in s.rows] for s in systems]
        means = (
            score_with(fmean(of), system.mean_unfairness)
            for of, system in zip(scores, systems, strict=True)
        )
        rows += [
            ("mean", *means),
            # Without an interval: none is known that holds often enough.
            ("sd over query styles", *(number(pstdev(of), digits=2) for of in scores)),
        ]
    return b.Table(columns=("query style", *(s.name for s in systems)), rows=tuple(rows))


# What style does besides: effects, each with a sentence, a picture and a table


def _said(
    systems: Iterable[StyleSystem],
    sentence: Callable[[StyleSystem], str],
    to: tuple[b.Output, ...] = b.FILES,
) -> tuple[b.Block, ...]:
    rows = tuple((system.name, sentence(system)) for system in systems)
    return (b.Items(rows=rows, to=to),) * bool(rows)


def _numbers(
    columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str, *, n_heads: int
) -> b.Fold:
    grid = b.Grid(
        table=b.Table(columns=columns, rows=tuple(rows), n_heads=n_heads), caption=caption
    )
    return b.Fold(summary="The numbers", blocks=(grid,))


def _matching(report: StyleReport) -> b.Section | None:
    systems, names = report.systems, [s.name for s in report.systems]
    if not any(s.matching for s in systems):
        return None
    pictures = [
        _compared(
            f"Ranks gained under queries of the same style, {system.name}",
            "places gained",
            (
                _row(
                    style_name(g.style) if g.style else "all styles",
                    g.mean,
                    g.gain,
                    worse=-g.mean,
                    solid=g.gain is not None and g.gain.excludes(0),
                )
                for g in system.matching
            ),
            filled="excludes 0",
        )
        for system in systems
    ]
    return b.Section(
        id="matching",
        title="Matching styles",
        lead="Does a query in one style raise documents in that style? Places gained under the "
        "matching query style against the mean of all others; positive is a gain. These intervals "
        "are not adjusted for the number of styles.",
        blocks=(
            *_said(systems, matching_sentence, b.EVERYWHERE),
            *_figures(names, pictures),
            b.Grid(
                table=b.Table(
                    columns=("style", *names),
                    rows=tuple(
                        (
                            style_name(gains[0].style) if gains[0].style else "all styles",
                            *(f"{number(g.mean, signed=True)}{span(g.gain)}" for g in gains),
                        )
                        for gains in zip(*(s.matching for s in systems), strict=True)
                    ),
                ),
                caption="Places gained under queries of the same style",
            ),
        ),
    )


def _length(report: StyleReport) -> b.Section | None:
    known = [(s, row) for s in report.systems if (row := original_row(report, s)).adjusted_ranks]
    if not known:
        return None
    found = [
        (
            system,
            tuple(
                zip(
                    map(style_name, report.data.doc_styles),
                    average_ranks(system, row),
                    row.average_ranks,
                    row.adjusted_ranks,
                    strict=True,
                )
            ),
        )
        for system, row in known
    ]
    pictures = [
        pic.Intervals(
            title=f"Average ranks as they are and at equal length, {system.name}",
            rows=tuple(
                pic.Row(
                    label=name,
                    marks=(
                        pic.mark(raw, "even", at=mean, solid=False),
                        *([pic.mark(adjusted, "baseline")] if adjusted else []),
                    ),
                )
                for name, mean, raw, adjusted in rows
            ),
            x=pic.Axis(label="average rank (1 is first)"),
            keys=(("as they are", "even", False), ("at equal length", "baseline", True)),
        )
        for system, rows in found
    ]
    return b.Section(
        id="length",
        title="Length",
        lead="Styles may differ in length. Ranks at equal length take out what the number of words "
        "explains, as far as it varies from query to query within a style: if a style moves "
        "towards the middle, part of its bias was about length.",
        blocks=(
            *_said((s for s, _ in found), partial(length_sentence, report)),
            *_figures((s.name for s, _ in found), pictures),
            _numbers(
                ("system", "document style", "as it is", "at equal length"),
                (
                    (system.name, name, score_with(mean, raw, digits=1), estimate(adjusted))
                    for system, rows in found
                    for name, mean, raw, adjusted in rows
                ),
                "Average ranks as they are and at equal length, under "
                f"{style_name(report.config.original_query)} queries",
                n_heads=2,
            ),
        ),
    )


def _quality(report: StyleReport) -> b.Section | None:
    measured = [(system, q) for system in report.systems for q in system.quality]
    if not measured:
        return None
    base, measure = report.config.original_query, leading_measure([q.measure for _, q in measured])
    changed = [s for s in report.systems if any(q.change is not None for q in s.quality)]
    rows = (
        (
            system.name,
            style_name(q.query_style),
            q.measure,
            score(q.mean),
            interval(q.score, scale=100),
            "0.0, all queries alike"
            if q.change is None and q.query_style != base
            else estimate(q.change, scale=100, signed=True),
            p_value(q.p_value),
            p_value(q.p_adjusted) + "*" * significant(report, q.p_adjusted),
        )
        for system, q in measured
    )
    columns = (
        "system", "query style", "measure", "score",
        f"{level(report.config.confidence_level)} interval", "change", "p", "adjusted p",
    )  # fmt: skip
    return b.Section(
        id="quality",
        nav="Quality by query style",
        title="What it costs to ask in another style",
        lead="What it costs the reader to ask in another style: retrieval from an index of the "
        "original documents, scores ×100, changes against "
        f"{style_name(base)} queries paired by query. * and filled marks are significant after "
        "correction over query styles and measures.",
        blocks=(
            *_said(changed, partial(quality_sentence, report), b.EVERYWHERE),
            *_figures(
                (f"{s.name}: {measure}" for s in changed),
                [_quality_picture(report, measure, s) for s in changed],
            ),
            _numbers(columns, rows, "Quality by query style, ×100", n_heads=3),
        ),
    )


def _quality_picture(report: StyleReport, measure: str, system: StyleSystem) -> pic.Intervals:
    base = report.config.original_query
    return _compared(
        f"Change of {measure} by query style against {style_name(base)}, {system.name}",
        f"change of {measure} ×100",
        (
            _row(
                style_name(q.query_style),
                100 * change,
                q.change,
                worse=-change,
                solid=significant(report, q.p_adjusted),
                scale=100,
            )
            for q in system.quality
            if q.measure == measure and q.query_style != base
            for change in (0.0 if q.change is None else q.change.estimate,)
        ),
    )


def _index(report: StyleReport) -> b.Section | None:
    measured = [(system, s) for system in report.systems for s in system.index_scores]
    if not measured:
        return None
    name, base = level(report.config.confidence_level), original_text(report)
    measure = leading_measure([s.measure for _, s in measured])
    known = [s for s in report.systems if any(i.relative_delta is not None for i in s.index_scores)]
    rows = (
        (
            system.name,
            style_name(s.doc_style),
            s.measure,
            score(s.mean),
            interval(s.score, scale=100),
            MISSING if s.doc_style == report.config.original else delta(s.relative_delta),
            interval(s.interval),
        )
        for system, s in measured
    )
    columns = (
        "system", "document style", "measure", "score", f"{name} interval", "Relative Δ",
        f"{name} interval of Δ",
    )  # fmt: skip
    return b.Section(
        id="index",
        nav="Index of all styles",
        title="Document styles in one index",
        lead="All styles of all documents in one index. The score counts the version in one style "
        "alone. Relative Δ is the difference of two scores in percent of their average; positive: "
        f"{base} ranks higher. Filled marks have an interval that excludes 0; these are not "
        "adjusted for the number of styles.",
        blocks=(
            *_said(known, partial(index_sentence, report)),
            *_figures(
                (f"{s.name}: {measure}" for s in known),
                [_index_picture(report, measure, s) for s in known],
            ),
            _numbers(
                columns,
                rows,
                "Quality by document style, ×100, under "
                f"{style_name(report.config.original_query)} queries",
                n_heads=3,
            ),
        ),
    )


def _index_picture(report: StyleReport, measure: str, system: StyleSystem) -> pic.Intervals:
    return _compared(
        f"Relative Δ of {measure}, {original_text(report)} against each style, {system.name}",
        "← style ranked higher  |  original higher →",
        (
            _row(
                style_name(s.doc_style),
                s.relative_delta,
                s.interval,
                worse=s.relative_delta,
                solid=s.interval is not None and s.interval.excludes(0),
            )
            for s in system.index_scores
            if s.measure == measure and s.relative_delta is not None
        ),
        filled="excludes 0",
    )


def _texts(report: StyleReport) -> b.Section | None:
    pictures, tables = list[tuple[str, pic.Picture]](), list[b.Block]()
    for kind, statistics, original in (
        ("documents", report.document_statistics, style_name(report.config.original)),
        ("queries", report.query_statistics, style_name(report.config.original_query)),
    ):
        if not statistics:
            continue
        named = tuple(replace(s, group=style_name(s.group)) for s in statistics)
        table, caption = text_table(named, original=original), f"{capital(kind)} by style"
        pictures += text_figures(named, original=original, of=capital(kind))
        tables += [
            b.Paragraph(text=f"{caption}: means with intervals.", to=b.MARKDOWN),
            b.Grid(
                table=replace(table, columns=("style", *table.columns[1:])),
                caption=f"{caption}: means with intervals",
            ),
        ]
        if notes := text_notes(named):
            tables.append(b.Items(rows=tuple(("", note) for note in notes)))
    if not tables:
        return None
    return b.Section(
        id="texts",
        nav="The texts",
        title="What distinguishes the texts",
        lead="What distinguishes the styles before any system sees them. A style that differs in "
        "length or shares fewer words with the original may rank differently for that alone.",
        pictures=f" {text_key(report.document_statistics or report.query_statistics)}",
        blocks=(b.Figures(items=tuple(pictures), small=True), *tables),
    )


def _pairs(report: StyleReport) -> b.Section | None:
    total, name = sum(len(s.pairs) for s in report.systems), level(report.config.confidence_level)
    if not total:
        return None
    rows = tuple(
        (
            system.name,
            style_name(pair.second if turned else pair.first),
            style_name(pair.first if turned else pair.second),
            number(abs(pair.difference)),
            interval(pair.interval, scale=1 if turned else -1),
            p_value(pair.p_value),
            p_value(pair.p_adjusted),
        )
        for system in report.systems
        for pair in sorted(system.pairs, key=lambda pair: -abs(pair.difference))
        for turned in (pair.difference > 0,)
        if significant(report, pair.p_adjusted)
    )
    columns = (
        "system", "ranks above", "this style", "by places", f"{name} interval", "p", "adjusted p",
    )  # fmt: skip
    grid = b.Grid(
        table=b.Table(columns=columns, rows=rows, n_heads=3),
        caption=f"Significant pairs under {style_name(report.config.original_query)} queries, the "
        "largest difference first",
    )
    return b.Section(
        id="pairs",
        nav="Pairs",
        title="Pairs of document styles",
        lead="Every pair of document styles is compared on the same queries by a sign-flip test, "
        "and all pairs of a system are adjusted together.",
        blocks=(
            b.Paragraph(text=f"{len(rows)} of {total} differ significantly."),
            *[b.Fold(summary="Pairs that differ significantly", blocks=(grid,))] * bool(rows),
        ),
    )


# How to take it


def _reading(report: StyleReport) -> b.Section:
    config, k = report.config, len(report.data.doc_styles)
    return b.reading(
        (
            (
                "What is an average rank?",
                f"Every document exists in {k} styles that should say the same thing. For each "
                f"query the {k} versions are ranked by similarity, 1 to {k}, ties sharing the "
                f"{'mean' if config.ties == 'average' else config.ties} of their ranks. A system "
                f"that does not care about style gives every style {number((k + 1) / 2)} on "
                "average.",
            ),
            (
                "When is a style called higher or lower?",
                "When Friedman's test says that styles differ, it ranks above or below "
                f"{original_text(report)} with an adjusted p-value below "
                f"{number(alpha(report), digits=2)}, and not all styles are certain to lie within "
                f"{number(config.margin * (k - 1), digits=2)} places of each other: these are "
                "called alike.",
            ),
            (
                "How large is an unfairness score?",
                "It depends on the number of styles and, through chance, on the number of queries. "
                "Compare it with the score by chance beside it and with other systems on the same "
                "data. Minus chance is right on average where there is no preference; where styles "
                "really differ it is too low, by at most the score by chance.",
            ),
            (
                "What do Kendall's W and Friedman's p say?",
                "W is how far queries agree on one order of the styles: 0 not at all, 1 "
                "completely. p is the chance of as much agreement without any preference. A small "
                "p with a small W is a weak tendency that many queries share.",
            ),
            (
                "What do the intervals cover?",
                f"With {level(config.confidence_level)} confidence each covers the value for all "
                "queries like these, one at a time: they are not widened for the number of "
                "comparisons, and systems are not corrected together.",
            ),
            (
                "What follows from a bias here?",
                "Texts or questions in a silenced style are found less easily by this system, as "
                "far as the versions really say the same thing: a rewrite that loses facts "
                "deserves a lower rank. It holds for these texts and the model that wrote the "
                "styles. Choosing another encoder is the plainest remedy; tell users which one is "
                "in use.",
            ),
        )
    )


def _caveats(report: StyleReport) -> b.Section:
    noted, made = [("", text) for text in report.warnings], list[tuple[str, Iterable[str]]]()
    for system in report.systems:
        found = _intervals(system)
        notes = (*system.notes, *(f"{what}: {note}" for what, i in found for note in i.notes))
        noted += [(system.name, note) for note in notes]
        made += [(f"{what}, {i.method}", i.assumptions) for what, i in found]
    made += [
        ("text statistics", statistic.mean.assumptions)
        for statistic in (*report.document_statistics, *report.query_statistics)
        if statistic.mean is not None
    ]
    return b.caveats(b.assumed(made), dict.fromkeys(noted))


def _intervals(system: StyleSystem) -> list[tuple[str, Interval]]:
    found = (
        *(
            of
            for row in system.rows
            for of in (
                ("average ranks", row.average_ranks),
                ("unfairness", (row.unfairness_interval,)),
                ("differences of ranks", [pair.interval for pair in row.against_original]),
                ("ranks at equal length", row.adjusted_ranks),
            )
        ),
        ("differences of ranks", [pair.interval for pair in system.pairs]),
        ("unfairness", (system.mean_unfairness,)),
        ("gains of matching styles", [gain.gain for gain in system.matching]),
        ("quality by query style", [q.score for q in system.quality]),
        ("change of quality", [q.change for q in system.quality]),
        ("quality by document style", [s.score for s in system.index_scores]),
        ("Relative Δ", [s.interval for s in system.index_scores]),
    )
    return [(what, value) for what, values in found for value in values if value is not None]


def _data(report: StyleReport) -> b.Section:
    data, c = report.data, report.config
    dropped = ", ".join(data.dropped[:_DROPPED])
    left_out = f"{':' if len(data.dropped) <= _DROPPED else ', such as'} {dropped}"
    about = (
        ("name", data.name),
        ("queries with every version", count(data.n_queries)),
        ("queries left out", f"{count(len(data.dropped))}{left_out if dropped else ''}"),
        ("document styles", ", ".join(data.doc_styles)),
        ("query styles", ", ".join(data.query_styles)),
        ("distractors in the index", count(data.n_distractors)),
        ("licence", data.license or "not stated"),
        ("attribution", data.attribution or "not stated"),
    )
    audit = (
        ("original document style", c.original),
        ("original query style", c.original_query),
        ("standard deviation in unfairness", f"ddof = {c.ddof}"),
        ("rank of ties", c.ties),
        (
            "missing versions",
            "queries that lack one are left out" if c.missing == "balanced" else "refused",
        ),
        ("cutoffs", ", ".join(map(str, c.cutoffs))),
        ("confidence level", level(c.confidence_level)),
        ("margin of “alike”", f"{100 * c.margin:g}% of the places"),
        ("correction", CORRECTIONS[c.correction]),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return b.data(
        (
            ("Data", b.Table(columns=("data", ""), rows=about)),
            ("Audit", b.Table(columns=("setting", ""), rows=audit)),
            (
                "Systems",
                b.Table(
                    columns=("system", "settings"),
                    rows=tuple((s.name, settings(s.settings)) for s in report.systems),
                ),
            ),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )
