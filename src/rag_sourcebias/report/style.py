"""The report on writing styles: what it says, in the order in which it says it.

Its names and sentences are in :mod:`rag_sourcebias.report.style_words`, its pictures in
:mod:`rag_sourcebias.report.style_plots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import sections
from rag_sourcebias.report import style_plots as plots
from rag_sourcebias.report.bars import Bar
from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import (
    CORRECTIONS,
    MISSING,
    count,
    delta,
    interval,
    level,
    number,
    p_value,
    score,
    share,
)
from rag_sourcebias.report.rows_plot import Picture, draw_pictures
from rag_sourcebias.report.style_words import (
    Verdict,
    alpha,
    average_ranks,
    capital,
    chance_sentence,
    counted,
    headline,
    index_sentence,
    length_sentence,
    matching_sentence,
    original_of,
    original_row,
    original_text,
    predicate,
    quality_sentence,
    score_with,
    short,
    sides,
    span,
    style_name,
    verdict_sentence,
    verdicts,
)
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.text_plots import text_plot
from rag_sourcebias.report.text_tables import renamed, text_key, text_notes, text_table
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import StyleCode
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = ["document", "headline"]

_REM = 6  # of the page per inch of a picture
_WIDE = 12  # document styles from which a heat map needs the whole page
_DROPPED = 10  # queries that are named
_COLUMN = 16  # characters of a system's column in a terminal


def document(report: StyleReport) -> b.Document:
    """Return everything there is to say about how styles are ranked."""
    data = report.data
    facts = (
        counted(data.n_queries, "query", "queries"),
        counted(len(data.doc_styles), "document style", "document styles"),
        counted(len(data.query_styles), "query style", "query styles"),
        counted(len(report.systems), "system", "systems"),
    )
    parts = (
        _findings,
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
        headline=headline(report),
        facts=tuple((fact,) for fact in facts),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


# Findings


def _findings(report: StyleReport) -> b.Section:
    found, ends = verdicts(report), [1e-9]
    for v in found:
        bounds = [v.system.mean_unfairness]
        if v.row is not None:
            ends += [v.row.unfairness.score, v.row.unfairness.null_expectation]
            bounds.append(v.row.unfairness_interval)
        ends += [interval_.upper for interval_ in bounds if interval_ is not None]
    top = 1.04 * max(ends)  # the right end of all bars
    note = (
        f"Unfairness with its {level(report.config.confidence_level)} interval, from 0 on one "
        "scale for all systems; the upright line is what chance alone would give. A hollow dot: "
        "the order of styles may be chance (Friedman)."
    )
    blocks: list[b.Block] = [
        b.Cards(cards=tuple(_card(report, v, top) for v in found), look="styled", to=b.PAGE),
        b.Paragraph(text=note, look="note", to=b.PAGE),
    ]
    if measured := _known(report):
        key = _star_note(report, intervals=False)
        blocks.append(_overview(report, measured))
        blocks.append(b.Paragraph(text=key, look="note", to=b.TERMINAL))
    sentences = tuple(("", verdict_sentence(report, v)) for v in found)
    blocks.append(b.Items(rows=sentences, to=(*b.MARKDOWN, *b.TERMINAL)))
    return b.Section(id="findings", title="Findings", blocks=tuple(blocks))


def _card(report: StyleReport, verdict: Verdict, top: float) -> b.Card:
    row, found = verdict.row, verdict.found
    text = f"{capital(predicate(report, found))}."
    if row is not None and found is not None and found.code is not StyleCode.TIED:
        text = f"{text} {chance_sentence(report, row)}"
    standing = "empty" if found is None else str(found.code)
    if found is not None and found.favoured and not found.silenced:
        standing += " better"
    return b.Card(
        name=verdict.system.name,
        standing=standing,
        short=short(report, found),
        text=text,
        rows=() if row is None else tuple(_card_rows(report, verdict.system, row, top)),
    )


def _card_rows(
    report: StyleReport, system: StyleSystem, row: StyleRow, top: float
) -> Iterator[b.CardRow]:
    def measured(
        name: str, value: float, bounds: Interval | None, chance: float, *, solid: bool
    ) -> b.CardRow:
        low, high = (value, value) if bounds is None else (bounds.lower, bounds.upper)
        left, right, dot, tick = (round(100 * v / top, 2) for v in (low, high, value, chance))
        width = round(right - left, 2)
        return b.CardRow(
            name=name,
            value=number(value, digits=2),
            ends=interval(bounds, digits=2),
            bar=Bar(left=left, width=width, dot=dot, side="baseline", solid=solid, chance=tick),
        )

    found, test, mean = row.unfairness, row.friedman, system.mean_unfairness
    yield measured(
        f"unfairness, {style_name(row.query_style)} queries",
        found.score,
        row.unfairness_interval,
        found.null_expectation,
        solid=test.p_value < alpha(report),
    )
    if mean is not None and len(system.rows) > 1:
        name = f"mean over {len(system.rows)} query styles"
        yield measured(name, mean.estimate, mean, _mean_chance(system), solid=True)
    yield from (
        b.CardRow(name=name, value=value, ends="")
        for name, value in (
            ("by chance alone", number(found.null_expectation, digits=2)),
            ("Kendall's W", MISSING if test.w is None else number(test.w, digits=2)),
            ("Friedman p", p_value(test.p_value)),
        )
    )


def _mean_chance(system: StyleSystem) -> float:
    return fmean(row.unfairness.null_expectation for row in system.rows)


def _overview(report: StyleReport, measured: Sequence[tuple[StyleSystem, StyleRow]]) -> b.Grid:
    """Return average ranks and unfairness of all systems for a terminal."""
    means = [average_ranks(system, row) for system, row in measured]
    colours = tuple(zip(*(sides(report, row) for _, row in measured), strict=True))
    # The blank keeps the decimals in line with a rank that carries a star.
    rows = [
        (
            "",
            _marked_name(report, style),
            *(
                number(mean[at]) + ("*" if side else " ")
                for mean, side in zip(means, of, strict=True)
            ),
        )
        for at, (style, of) in enumerate(zip(report.data.doc_styles, colours, strict=True))
    ]
    about = "unfairness / by chance"

    def both(value: float, chance: float) -> str:
        return f"{number(value, digits=2)} / {number(chance, digits=2)}"

    for query_style in report.data.query_styles:
        scores = []
        for system, _ in measured:
            found = [r.unfairness for r in system.rows if r.query_style == query_style]
            scores.append(both(found[0].score, found[0].null_expectation) if found else "")
        rows.append((about, style_name(query_style), *scores))
    if len(report.data.query_styles) > 1:
        shown = [
            "" if (mean := s.mean_unfairness) is None else both(mean.estimate, _mean_chance(s))
            for s, _ in measured
        ]
        rows.append((about, "mean", *shown))
    columns = ("", "average rank", *(system.name for system, _ in measured))
    return b.Grid(
        table=Table(columns=columns, rows=tuple(rows), n_heads=2),
        caption="Average ranks and unfairness",
        width=_COLUMN,
        sides=tuple(("", "", *of) for of in colours),
        to=b.TERMINAL,
    )


def _marked_name(report: StyleReport, style: str) -> str:
    return style_name(style) + (" (original)" if style == original_of(report) else "")


def _star_note(report: StyleReport, *, intervals: bool = True) -> str:
    """Return the key of tables of ranks, which show intervals or do not."""
    name = level(report.config.confidence_level)
    start = f"Average ranks{f' with {name} intervals' if intervals else ''}"
    if original_of(report) is None:
        return f"{start}; 1 is most similar to the query."
    threshold, correction = number(alpha(report), digits=2), report.config.correction
    rule = (
        f"p below {threshold}, not corrected"
        if correction == "none"
        else f"adjusted p below {threshold} ({CORRECTIONS[correction]} over the document styles of "
        "one query style)"
    )
    return (
        f"{start}; 1 is most similar to the query. * differs from {original_text(report)}: {rule}."
    )


# Ranks and unfairness


def _figures(pictures: Sequence[Picture]) -> tuple[b.Block, ...]:
    """Return pictures on one scale, nothing for none."""
    drawn = draw_pictures(pictures)
    return (b.Figures(items=drawn),) if drawn else ()


def _known(report: StyleReport) -> list[tuple[StyleSystem, StyleRow]]:
    return [(s, row) for s in report.systems if (row := original_row(report, s)) is not None]


def _several(report: StyleReport) -> list[StyleSystem]:
    """Return the systems that were asked in more than one style."""
    return [s for s in report.systems if len(s.rows) > 1]


def _cells(report: StyleReport, system: StyleSystem, row: StyleRow) -> tuple[str, ...]:
    """Return the average rank of each document style with interval; * where it is significant."""
    found = zip(average_ranks(system, row), sides(report, row), row.average_ranks, strict=True)
    return tuple(f"{number(mean)}{'*' if side else ''}{span(ends)}" for mean, side, ends in found)


def _ranks(report: StyleReport) -> b.Section | None:
    known = _known(report)
    if not known:
        return None
    compare = (
        f" The dashed line is {original_text(report)}; blue circles rank above it, orange "
        "triangles below, hollow ones not significantly so."
        if original_of(report) is not None
        else ""
    )
    names = [_marked_name(report, style) for style in report.data.doc_styles]
    cells = [_cells(report, system, row) for system, row in known]
    table = Table(
        columns=("document style", *(system.name for system, _ in known)),
        rows=tuple(zip(names, *cells, strict=True)),
    )
    blocks = [*_figures([plots.ranks_picture(report, system, row) for system, row in known])]
    if side := _figures(plots.differences_pictures(report)):
        text = (
            f"Distance from {original_text(report)} in places, paired by query: left of the "
            "dashed line a style ranks above it. Hollow marks are not significant."
        )
        blocks += [
            b.Heading(text="Systems side by side", to=b.PAGE),
            b.Paragraph(text=text, to=b.PAGE),
            *side,
        ]
    return b.Section(
        id="ranks",
        nav="Document styles",
        title="Which document styles rank higher",
        lead="The versions of one document are ranked by their similarity to the query, nothing "
        "else competes.",
        pictures=f" Lines are {level(report.config.confidence_level)} intervals under "
        f"{style_name(report.config.original_query)} queries.{compare}",
        blocks=(
            *blocks,
            b.Grid(table=table, caption=_star_note(report)),
            b.Paragraph(text=_star_note(report), to=b.MARKDOWN),
        ),
    )


def _matrix(report: StyleReport) -> b.Section | None:
    """Return average ranks by query style and document style."""
    several, styles = _several(report), report.data.doc_styles
    if not several:
        return None
    columns = ("query style", *map(style_name, styles))
    tables: list[b.Block] = []
    for system in (s for s in report.systems if s.rows):
        rows = tuple((style_name(r.query_style), *_cells(report, system, r)) for r in system.rows)
        table = Table(columns=columns, rows=rows)
        tables.append(b.Heading(text=b.Name(system.name)))
        tables.append(b.Grid(table=table, caption=_star_note(report)))
    return b.Section(
        id="matrix",
        nav="Query × document styles",
        title="Query style × document style",
        lead="Average rank of each document style (columns) when the query is written in each "
        "style (rows).",
        pictures=" Blue cells rank above the middle, orange below. Bold numbers differ "
        f"significantly from {original_text(report)} in the same row; frames mark a query and a "
        "document in the same style.",
        blocks=(
            b.Figures(
                items=tuple((s.name, partial(plots.heat_map, report, s)) for s in several),
                wide=round(_REM * plots.map_width(len(styles))) if len(styles) > _WIDE else 0,
            ),
            b.Fold(summary="The numbers with their intervals", blocks=tuple(tables)),
        ),
    )


def _unfairness(report: StyleReport) -> b.Section | None:
    rows = [
        (system.name, style_name(row.query_style), *_unfairness_cells(row))
        for system in report.systems
        for row in system.rows
    ]
    if not rows:
        return None
    name, several = level(report.config.confidence_level), _several(report)
    columns = (
        "system", "query style", "unfairness", f"{name} interval", "by chance", "minus chance",
        "of the maximum", "rank range", "Kendall's W", "Friedman χ²", "p",
    )  # fmt: skip
    everything = b.Grid(
        table=Table(columns=columns, rows=tuple(rows), n_heads=2),
        caption="Unfairness, chance, agreement and tests",
    )
    blocks: tuple[b.Block, ...] = (everything,)
    if len(report.systems) > 1 or several:
        blocks = (
            *_figures([plots.unfairness_picture(report, system) for system in several]),
            b.Grid(
                table=_comparison(report),
                caption=f"Unfairness by query style and system, with {name} intervals",
            ),
            b.Fold(summary="Everything about unfairness", blocks=(everything,)),
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


def _unfairness_cells(row: StyleRow) -> tuple[str, ...]:
    found, test = row.unfairness, row.friedman
    return (
        number(found.score, digits=2),
        interval(row.unfairness_interval, digits=2),
        number(found.null_expectation, digits=2),
        number(found.corrected, digits=2),
        share(found.normalised),
        share(found.rank_range),
        MISSING if test.w is None else number(test.w, digits=3),
        f"{number(test.statistic)} ({test.degrees} df)",
        p_value(test.p_value),
    )


def _comparison(report: StyleReport) -> Table:
    """Return unfairness with its interval: query styles × systems ([W] Table 1)."""
    rows = []
    for style in report.data.query_styles:
        found = [[r for r in s.rows if r.query_style == style] for s in report.systems]
        cells = (
            score_with(of[0].unfairness.score, of[0].unfairness_interval) if of else MISSING
            for of in found
        )
        rows.append((style_name(style), *cells))
    if len(report.data.query_styles) > 1:
        means = [s.mean_unfairness for s in report.systems]
        rows.append(("mean", *(MISSING if f is None else score_with(f.estimate, f) for f in means)))
        # Without an interval: none is known that holds often enough.
        spreads = [pstdev(r.unfairness.score for r in s.rows) for s in report.systems if s.rows]
        if len(spreads) == len(report.systems):
            rows.append(("sd over query styles", *(number(v, digits=2) for v in spreads)))
    return Table(columns=("query style", *(s.name for s in report.systems)), rows=tuple(rows))


# What style does besides: effects, each with a sentence, a picture and a table


def _said(
    report: StyleReport,
    sentence: Callable[[StyleReport, StyleSystem], str],
    to: tuple[b.Output, ...] = b.FILES,
) -> tuple[b.Block, ...]:
    rows = tuple((s.name, text) for s in report.systems if (text := sentence(report, s)))
    return (b.Items(rows=rows, to=to),) if rows else ()


def _numbers(table: Table, caption: str) -> b.Fold:
    return b.Fold(summary="The numbers", blocks=(b.Grid(table=table, caption=caption),))


def _matching(report: StyleReport) -> b.Section | None:
    systems = [s for s in report.systems if s.matching]
    if not systems:
        return None
    rows = []
    styles = dict.fromkeys(g.style for s in systems for g in s.matching)
    for style in sorted(styles, key=lambda name: name == ""):  # all styles together come last
        found = [next((g for g in s.matching if g.style == style), None) for s in systems]
        cells = (
            MISSING if g is None else f"{number(g.mean, signed=True)}{span(g.gain)}" for g in found
        )
        rows.append((style_name(style) if style else "all styles", *cells))
    table = Table(columns=("style", *(s.name for s in systems)), rows=tuple(rows))
    return b.Section(
        id="matching",
        title="Matching styles",
        lead="Does a query in one style raise documents in that style? Places gained under the "
        "matching query style against the mean of all others; positive is a gain. These intervals "
        "are not adjusted for the number of styles.",
        blocks=(
            *_said(report, lambda _, system: matching_sentence(system), b.EVERYWHERE),
            *_figures([plots.matching_picture(s) for s in systems]),
            b.Grid(table=table, caption="Places gained under queries of the same style"),
        ),
    )


def _length(report: StyleReport) -> b.Section | None:
    known = [(system, row) for system, row in _known(report) if row.adjusted_ranks]
    if not known:
        return None
    rows = []
    for system, row in known:
        for style, mean, raw, bounds in zip(
            report.data.doc_styles,
            average_ranks(system, row),
            row.average_ranks,
            row.adjusted_ranks,
            strict=True,
        ):
            adjusted = MISSING if bounds is None else score_with(bounds.estimate, bounds, digits=1)
            rows.append((system.name, style_name(style), score_with(mean, raw, digits=1), adjusted))
    columns = ("system", "document style", "as it is", "at equal length")
    query_style = style_name(report.config.original_query)
    return b.Section(
        id="length",
        title="Length",
        lead="Styles may differ in length. Ranks at equal length take out what the number of words "
        "explains, as far as it varies from query to query within a style: if a style moves "
        "towards the middle, part of its bias was about length.",
        blocks=(
            *_said(report, length_sentence),
            *_figures([plots.length_picture(report, system, row) for system, row in known]),
            _numbers(
                Table(columns=columns, rows=tuple(rows), n_heads=2),
                f"Average ranks as they are and at equal length, under {query_style} queries",
            ),
        ),
    )


def _quality(report: StyleReport) -> b.Section | None:
    rows, name = [], level(report.config.confidence_level)
    for system in report.systems:
        for q in system.quality:
            change = "0.0, all queries alike"
            if q.change is not None:
                value = number(100 * q.change.estimate, signed=True)
                change = f"{value} {interval(q.change, scale=100)}"
            elif q.query_style == report.config.original_query:
                change = MISSING
            star = q.p_adjusted is not None and q.p_adjusted < alpha(report)
            rows.append(
                (
                    system.name,
                    style_name(q.query_style),
                    q.measure,
                    score(q.mean),
                    interval(q.score, scale=100),
                    change,
                    p_value(q.p_value),
                    f"{p_value(q.p_adjusted)}{'*' * star}",
                )
            )
    if not rows:
        return None
    columns = (
        "system", "query style", "measure", "score", f"{name} interval", "change", "p",
        "adjusted p",
    )  # fmt: skip
    changed = [s for s in report.systems if any(q.change is not None for q in s.quality)]
    return b.Section(
        id="quality",
        nav="Quality by query style",
        title="What it costs to ask in another style",
        lead="What it costs the reader to ask in another style: retrieval from an index of the "
        "original documents, scores ×100, changes against "
        f"{style_name(report.config.original_query)} queries paired by query. * and filled marks "
        "are significant after correction over query styles and measures.",
        blocks=(
            *_said(report, quality_sentence, b.EVERYWHERE),
            *_figures([plots.quality_picture(report, system) for system in changed]),
            _numbers(
                Table(columns=columns, rows=tuple(rows), n_heads=3),
                "Quality by query style, ×100",
            ),
        ),
    )


def _index(report: StyleReport) -> b.Section | None:
    name, base = level(report.config.confidence_level), original_text(report)
    rows = tuple(
        (
            system.name,
            style_name(s.doc_style),
            s.measure,
            score(s.mean),
            interval(s.score, scale=100),
            MISSING if s.doc_style == report.config.original else delta(s.relative_delta),
            interval(s.interval),
        )
        for system in report.systems
        for s in system.index_scores
    )
    if not rows:
        return None
    columns = (
        "system", "document style", "measure", "score", f"{name} interval", "Relative Δ",
        f"{name} interval of Δ",
    )  # fmt: skip
    known = [s for s in report.systems if any(i.relative_delta is not None for i in s.index_scores)]
    query_style = style_name(report.config.original_query)
    return b.Section(
        id="index",
        nav="Index of all styles",
        title="Document styles in one index",
        lead="All styles of all documents in one index. The score counts the version in one style "
        "alone. Relative Δ is the difference of two scores in percent of their average; positive: "
        f"{base} ranks higher. Filled marks have an interval that excludes 0; these are not "
        "adjusted for the number of styles.",
        blocks=(
            *_said(report, index_sentence),
            *_figures([plots.index_picture(report, system) for system in known]),
            _numbers(
                Table(columns=columns, rows=rows, n_heads=3),
                f"Quality by document style, ×100, under {query_style} queries",
            ),
        ),
    )


def _texts(report: StyleReport) -> b.Section | None:
    parts = [
        (kind, statistics, style_name(original))
        for kind, statistics, original in (
            ("documents", report.document_statistics, report.config.original),
            ("queries", report.query_statistics, report.config.original_query),
        )
        if statistics
    ]
    if not parts:
        return None
    pictures, tables = [], list[b.Block]()
    for kind, statistics, original in parts:
        named = renamed(statistics, {s.group: style_name(s.group) for s in statistics})
        table, caption = text_table(named, original=original), f"{capital(kind)} by style"
        pictures.append((caption, partial(_text_picture, kind, named, original)))
        tables += [
            b.Paragraph(text=f"{caption}: means with intervals.", to=b.MARKDOWN),
            b.Grid(
                table=replace(table, columns=("style", *table.columns[1:])),
                caption=f"{caption}: means with intervals",
            ),
        ]
        if notes := text_notes(named):
            tables.append(b.Items(rows=tuple(("", note) for note in notes)))
    return b.Section(
        id="texts",
        nav="The texts",
        title="What distinguishes the texts",
        lead="What distinguishes the styles before any system sees them. A style that differs in "
        "length or shares fewer words with the original may rank differently for that alone.",
        pictures=f" {text_key(parts[0][1])}",
        blocks=(b.Figures(items=tuple(pictures), small=True), *tables),
    )


def _text_picture(kind: str, statistics: Sequence[TextStatistic], original: str, uid: str) -> str:
    title = f"Text statistics of {kind} by style"
    return text_plot(statistics, original=original, uid=uid, title=title)


def _pairs(report: StyleReport) -> b.Section | None:
    total, name = sum(len(s.pairs) for s in report.systems), level(report.config.confidence_level)
    if not total:
        return None
    rows = []
    for system in report.systems:
        strong = [p for p in system.pairs if p.p_adjusted < alpha(report)]
        for pair in sorted(strong, key=lambda p: -abs(p.difference)):
            above, below, sign = pair.first, pair.second, -1.0
            if pair.difference > 0:
                above, below, sign = below, above, 1.0
            rows.append(
                (
                    system.name,
                    style_name(above),
                    style_name(below),
                    number(abs(pair.difference)),
                    span(pair.interval, scale=sign).strip() or MISSING,
                    p_value(pair.p_value),
                    p_value(pair.p_adjusted),
                )
            )
    columns = (
        "system", "ranks above", "this style", "by places", f"{name} interval", "p", "adjusted p",
    )  # fmt: skip
    query_style = style_name(report.config.original_query)
    grid = b.Grid(
        table=Table(columns=columns, rows=tuple(rows), n_heads=3),
        caption=f"Significant pairs under {query_style} queries, the largest difference first",
    )
    fold = b.Fold(summary="Pairs that differ significantly", blocks=(grid,))
    return b.Section(
        id="pairs",
        nav="Pairs",
        title="Pairs of document styles",
        lead="Every pair of document styles is compared on the same queries by a sign-flip test, "
        "and all pairs of a system are adjusted together.",
        blocks=(
            b.Paragraph(text=f"{len(rows)} of {total} differ significantly."),
            *((fold,) if rows else ()),
        ),
    )


# How to take it


def _reading(report: StyleReport) -> b.Section:
    config, k = report.config, len(report.data.doc_styles)
    shared = "mean" if config.ties == "average" else config.ties
    limit = number(config.margin * (k - 1), digits=2)
    return sections.reading(
        (
            (
                "What is an average rank?",
                f"Every document exists in {k} styles that should say the same thing. For each "
                f"query the {k} versions are ranked by similarity, 1 to {k}, ties sharing the "
                f"{shared} of their ranks. A system that does not care about style gives every "
                f"style {number((k + 1) / 2)} on average.",
            ),
            (
                "When is a style called higher or lower?",
                "When Friedman's test says that styles differ, it ranks above or below "
                f"{original_text(report)} with an adjusted p-value below "
                f"{number(alpha(report), digits=2)}, and not all styles are certain to lie within "
                f"{limit} places of each other: these are called alike.",
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
    assumed: dict[str, dict[str, None]] = {}
    noted = [("", text) for text in report.warnings]
    for system in report.systems:
        noted += [(system.name, note) for note in system.notes]
        for what, value in _intervals(system):
            noted += [(system.name, f"{what}: {note}") for note in value.notes]
            for text in value.assumptions:
                assumed.setdefault(text, {})[f"{what}, {value.method}"] = None
    for statistic in (*report.document_statistics, *report.query_statistics):
        for text in () if statistic.mean is None else statistic.mean.assumptions:
            assumed.setdefault(text, {})["text statistics"] = None
    return sections.caveats(assumed, dict.fromkeys(noted))


def _intervals(system: StyleSystem) -> Iterator[tuple[str, Interval]]:
    found: list[tuple[str, Interval | None]] = []
    for row in system.rows:
        found += [("average ranks", value) for value in row.average_ranks]
        found.append(("unfairness", row.unfairness_interval))
        found += [("differences of ranks", pair.interval) for pair in row.against_original]
        found += [("ranks at equal length", value) for value in row.adjusted_ranks]
    found += [("differences of ranks", pair.interval) for pair in system.pairs]
    found.append(("unfairness", system.mean_unfairness))
    found += [("gains of matching styles", gain.gain) for gain in system.matching]
    for q in system.quality:
        found += [("quality by query style", q.score), ("change of quality", q.change)]
    for s in system.index_scores:
        found += [("quality by document style", s.score), ("Relative Δ", s.interval)]
    yield from ((what, value) for what, value in found if value is not None)


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
    missing = "queries that lack one are left out" if c.missing == "balanced" else "refused"
    settings = (
        ("original document style", c.original),
        ("original query style", c.original_query),
        ("standard deviation in unfairness", f"ddof = {c.ddof}"),
        ("rank of ties", c.ties),
        ("missing versions", missing),
        ("cutoffs", ", ".join(map(str, c.cutoffs))),
        ("confidence level", level(c.confidence_level)),
        ("margin of “alike”", f"{100 * c.margin:g}% of the places"),
        ("correction", CORRECTIONS[c.correction]),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    systems = tuple(
        (s.name, "; ".join(f"{k} = {v}" for k, v in s.settings.items()) or MISSING)
        for s in report.systems
    )
    return sections.data(
        (
            ("Data", Table(columns=("data", ""), rows=about)),
            ("Audit", Table(columns=("setting", ""), rows=settings)),
            ("Systems", Table(columns=("system", "settings"), rows=systems)),
            ("Environment", environment_table(report)),
        )
    )
