"""The report on writing styles: what it says and shows, in the order in which it is read.

Its names and sentences are in :mod:`rag_sourcebias.style.words`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from rag_sourcebias.core.finding import CORRECTIONS, MISSING, Interval, number, p_value
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import text_figures, text_frame, text_key, text_notes
from rag_sourcebias.report.legacy import count, counted, delta, estimate, level, score, settings
from rag_sourcebias.style.data import StyleResults, StyleRow, StyleSystem
from rag_sourcebias.style.evidence import evidence_section
from rag_sourcebias.style.words import (
    average_ranks,
    first,
    headline,
    index_sentence,
    length_sentence,
    matching_sentence,
    original_row,
    original_text,
    quality_sentence,
    score_with,
    sides,
    significant,
    span,
    star_note,
    style_name,
    verdict_sentence,
    verdicts,
)

_REM = 6  # of the page per inch of a picture
_WIDE = 12  # document styles from which a heat map needs the whole page
_DROPPED = 10  # queries that are named


def document(report: StyleResults) -> d.Document:
    """Return everything there is to say about how styles are ranked."""
    data = report.data
    sections = (
        _findings(report),
        evidence_section(report),
        _ranks(report),
        _matrix(report),
        _unfairness(report),
        _matching(report),
        _length(report),
        _quality(report),
        _index(report),
        _texts(report),
        _reading(report),
        _caveats(report),
        _data(report),
    )
    return d.Document(
        kind="Writing style report",
        name=data.name,
        first=first(report),
        headline=(headline(report),),
        facts=(
            counted(data.n_queries, "query", "queries"),
            counted(len(data.doc_styles), "document style"),
            counted(len(data.query_styles), "query style"),
            counted(len(report.systems), "system"),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(section for section in sections if section is not None),
    )


def _findings(report: StyleResults) -> d.Section:
    rows = tuple((v.system.name, verdict_sentence(report, v)) for v in verdicts(report))
    return d.Section(id="findings", title="Findings", brief=True, blocks=(legacy.listing(rows),))


# Ranks and unfairness


def _ranks(report: StyleResults) -> d.Section | None:
    if not report.systems:
        return None
    measured = [(system, original_row(report, system)) for system in report.systems]
    cells = [_cells(report, system, row) for system, row in measured]
    names = tuple(system.name for system in report.systems)
    pictures = pic.aligned([_ranks_picture(report, system, row) for system, row in measured])
    styles = [
        f"{style_name(s)} (original)" if s == report.config.original else style_name(s)
        for s in report.data.doc_styles
    ]
    return d.Section(
        id="ranks",
        brief=True,
        nav="Document styles",
        title="Which document styles rank higher",
        lead=f"The versions of one document are ranked by their similarity to the query, under "
        f"{style_name(report.config.original_query)} queries. {star_note(report)}",
        note=f"The dashed line is {original_text(report)}; blue circles rank above it, orange "
        "triangles below, hollow ones not significantly so.",
        blocks=(
            d.Pictures(items=tuple(zip(names, pictures, strict=True))),
            d.Table(
                frame=legacy.table(
                    columns=("document style", *names),
                    rows=tuple(zip(styles, *cells, strict=True)),
                ),
                caption="Average rank of each document style",
            ),
        ),
    )


def _cells(report: StyleResults, system: StyleSystem, row: StyleRow) -> tuple[str, ...]:
    return tuple(
        f"{number(mean)}{'*' if side else ''}{span(ends)}"
        for mean, side, ends in zip(
            average_ranks(system, row), sides(report, row), row.average_ranks, strict=True
        )
    )


def _ranks_picture(report: StyleResults, system: StyleSystem, row: StyleRow) -> pic.Intervals:
    """Show the average rank of each document style ([W] Fig. 2), the original as a dashed line."""
    styles, original = report.data.doc_styles, report.config.original
    means = average_ranks(system, row)
    base = means[styles.index(original)]
    rows = []
    for style, mean, ends, side in zip(
        styles, means, row.average_ranks, sides(report, row), strict=True
    ):
        colour: pic.Colour = "even"
        if style != original and mean != base:
            colour = "other" if mean > base else "baseline"
        solid = bool(side) or style == original
        rows.append(
            pic.Row(label=style_name(style), marks=(pic.mark(ends, colour, at=mean, solid=solid),))
        )
    return pic.Intervals(
        title=f"Average rank of each document style, {system.name}",
        rows=tuple(rows),
        x=pic.Axis(label="average rank (1 is first)"),
        guides=(pic.Guide(at=base, look="dashed", colour="ink"),),
        keys=(("original", "even", True),),
        filled="significant",
    )


def _matrix(report: StyleResults) -> d.Section | None:
    styles = report.data.doc_styles
    if len(report.data.query_styles) < 2 or not report.systems:
        return None
    tables: list[d.Block] = []
    for system in report.systems:
        rows = tuple(
            (style_name(row.query_style), *_cells(report, system, row)) for row in system.rows
        )
        table = legacy.table(columns=("query style", *map(style_name, styles)), rows=rows)
        tables.append(d.Heading(text=d.Name(system.name)))
        tables.append(d.Table(frame=table, caption=f"{system.name}: average ranks"))
    items = tuple((system.name, _heat_map(report, system)) for system in report.systems)
    wide = round(_REM * pic.width(items[0][1])) if len(styles) > _WIDE else 0
    return d.Section(
        id="matrix",
        nav="Query × document styles",
        title="Query style × document style",
        note="Average rank of each document style (columns) when the query is written in each "
        "style (rows). Blue cells rank above the middle, orange below. Bold numbers differ "
        f"significantly from {original_text(report)} in the same row; frames mark a query and a "
        "document in the same style.",
        blocks=(
            d.Pictures(items=items, wide=wide),
            d.Fold(summary="The numbers with their intervals", blocks=tuple(tables)),
        ),
    )


def _heat_map(report: StyleResults, system: StyleSystem) -> pic.HeatMap:
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


def _unfairness(report: StyleResults) -> d.Section | None:
    if not report.systems:
        return None
    rows = []
    for system in report.systems:
        for row in system.rows:
            found, test = row.unfairness, row.friedman
            rows.append(
                (
                    system.name,
                    style_name(row.query_style),
                    score_with(found.score, row.unfairness_interval),
                    number(found.null_expectation, digits=2),
                    number(found.corrected, digits=2),
                    number(test.w, digits=3),
                    p_value(test.p_value),
                )
            )
        if len(system.rows) > 1:
            scores = [row.unfairness.score for row in system.rows]
            mean = score_with(fmean(scores), system.mean_unfairness)
            chance = fmean(row.unfairness.null_expectation for row in system.rows)
            rows.append((system.name, "mean", mean, number(chance, digits=2), "", "", ""))
            rows.append((system.name, "sd", number(pstdev(scores), digits=2), "", "", "", ""))
    return d.Section(
        id="unfairness",
        brief=True,
        title="Unfairness",
        lead="Unfairness is (largest − smallest) × standard deviation of the average ranks: 0 when "
        "all styles rank alike. It cannot be negative, so chance alone gives a positive score. A "
        "low mean over query styles is a fair system, a low standard deviation (sd) a robust one.",
        blocks=(
            d.Table(
                frame=legacy.table(
                    columns=(
                        "system",
                        "query style",
                        "unfairness",
                        "by chance",
                        "minus chance",
                        "Kendall's W",
                        "Friedman p",
                    ),
                    rows=tuple(rows),
                    n_heads=2,
                ),
                caption="Unfairness with intervals, chance and agreement of queries",
            ),
        ),
    )


# What style does besides: effects, each with a sentence and a table


def _said(systems: Iterable[StyleSystem], sentence: Callable[[StyleSystem], str]) -> d.Listing:
    rows = tuple((system.name, sentence(system)) for system in systems)
    return legacy.listing(rows)


def _numbers(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str) -> d.Fold:
    heads = 3 if "measure" in columns else 2
    table = legacy.table(columns=columns, rows=tuple(rows), n_heads=heads)
    return d.Fold(summary="The numbers", blocks=(d.Table(frame=table, caption=caption),))


def _matching(report: StyleResults) -> d.Section | None:
    systems = [s for s in report.systems if s.matching]
    if not systems:
        return None
    rows = (
        (
            system.name,
            style_name(gain.style) if gain.style else "all styles",
            f"{number(gain.mean, signed=True)}{span(gain.gain)}",
        )
        for system in systems
        for gain in system.matching
    )
    return d.Section(
        id="matching",
        brief=True,
        title="Matching styles",
        lead="Does a query in one style raise documents in that style? Places gained under the "
        "matching query style against the mean of all others; positive is a gain. These intervals "
        "are not adjusted for the number of styles.",
        blocks=(
            _said(systems, matching_sentence),
            _numbers(
                ("system", "style", "places gained"),
                rows,
                "Places gained under queries of the same style",
            ),
        ),
    )


def _length(report: StyleResults) -> d.Section | None:
    systems = [s for s in report.systems if original_row(report, s).adjusted_ranks]
    if not systems:
        return None
    rows = []
    for system in systems:
        row = original_row(report, system)
        means = average_ranks(system, row)
        for style, mean, raw, adjusted in zip(
            report.data.doc_styles, means, row.average_ranks, row.adjusted_ranks, strict=True
        ):
            as_it_is = score_with(mean, raw, digits=1)
            rows.append((system.name, style_name(style), as_it_is, estimate(adjusted)))
    return d.Section(
        id="length",
        brief=True,
        title="Length",
        lead="Styles may differ in length. Ranks at equal length take out what the number of words "
        "explains, as far as it varies from query to query within a style: if a style moves "
        "towards the middle, part of its bias was about length.",
        blocks=(
            _said(systems, lambda system: length_sentence(report, system)),
            _numbers(
                ("system", "document style", "as it is", "at equal length"),
                rows,
                "Average ranks as they are and at equal length",
            ),
        ),
    )


def _quality(report: StyleResults) -> d.Section | None:
    systems = [s for s in report.systems if s.quality]
    if not systems:
        return None
    base = report.config.original_query
    rows = []
    for system in systems:
        for q in system.quality:
            change = estimate(q.change, scale=100, signed=True)
            if q.change is None and q.query_style != base:
                change = "0.0, all queries alike"
            star = "*" if significant(report, q.p_adjusted) else ""
            rows.append(
                (
                    system.name,
                    style_name(q.query_style),
                    q.measure,
                    f"{score(q.mean)}{span(q.score, scale=100)}",
                    change,
                    p_value(q.p_adjusted) + star,
                )
            )
    return d.Section(
        id="quality",
        brief=True,
        nav="Quality by query style",
        title="What it costs to ask in another style",
        lead="What it costs the reader to ask in another style: retrieval from an index of the "
        "original documents, scores ×100, changes against "
        f"{style_name(base)} queries paired by query. * is significant after correction over query "
        "styles and measures.",
        blocks=(
            _said(systems, lambda system: quality_sentence(report, system)),
            _numbers(
                ("system", "query style", "measure", "score", "change", "adjusted p"),
                rows,
                "Quality by query style, ×100",
            ),
        ),
    )


def _index(report: StyleResults) -> d.Section | None:
    systems = [s for s in report.systems if s.index_scores]
    if not systems:
        return None
    base = original_text(report)
    rows = []
    for system in systems:
        for s in system.index_scores:
            relative = f"{delta(s.relative_delta)}{span(s.interval)}"
            if s.doc_style == report.config.original:
                relative = MISSING
            mean = f"{score(s.mean)}{span(s.score, scale=100)}"
            rows.append((system.name, style_name(s.doc_style), s.measure, mean, relative))
    return d.Section(
        id="index",
        brief=True,
        nav="Index of all styles",
        title="Document styles in one index",
        lead="All styles of all documents in one index. The score counts the version in one style "
        "alone. Relative Δ is the difference of two scores in percent of their average; positive: "
        f"{base} ranks higher. Intervals are not adjusted for the number of styles.",
        blocks=(
            _said(systems, lambda system: index_sentence(report, system)),
            _numbers(
                ("system", "document style", "measure", "score", "Relative Δ"),
                rows,
                "Quality by document style, ×100",
            ),
        ),
    )


def _texts(report: StyleResults) -> d.Section | None:
    statistics = report.document_statistics or report.query_statistics
    if not statistics:
        return None
    config = report.config
    pictures: list[tuple[str, pic.Picture]] = []
    tables: list[d.Block] = []
    for kind, found, original in (
        ("Documents", report.document_statistics, style_name(config.original)),
        ("Queries", report.query_statistics, style_name(config.original_query)),
    ):
        named = tuple(replace(s, group=style_name(s.group)) for s in found)
        pictures += text_figures(named, original=original, of=kind)
        tables += _text_tables(kind, named, original)
    return d.Section(
        id="texts",
        nav="The texts",
        title="What distinguishes the texts",
        lead="What distinguishes the styles before any system sees them. A style that differs in "
        "length or shares fewer words with the original may rank differently for that alone.",
        note=" ".join(map(str, text_key(statistics))),
        blocks=(d.Pictures(items=tuple(pictures), small=True), *tables),
    )


def _text_tables(kind: str, named: Sequence[TextStatistic], original: str) -> list[d.Block]:
    if not named:
        return []
    frame = text_frame(named, original=original, head="style")
    blocks: list[d.Block] = [d.Table(frame=frame, caption=f"{kind} by style: means with intervals")]
    notes = tuple(legacy.note_rows(text_notes(named)))
    if notes:
        blocks.append(d.Listing(rows=notes))
    return blocks


# How to take it


def _reading(report: StyleResults) -> d.Section:
    config, k = report.config, len(report.data.doc_styles)
    return legacy.reading(
        (
            (
                "What is an average rank?",
                f"Every document exists in {k} styles that should say the same thing. For each "
                f"query the {k} versions are ranked by similarity, 1 to {k}, ties sharing the mean "
                "of their ranks. A system that does not care about style gives every style "
                f"{number((k + 1) / 2)} on average.",
            ),
            (
                "When is a style called higher or lower?",
                "When Friedman's test says that styles differ, it ranks above or below "
                f"{original_text(report)} with a significant adjusted p-value, and not all styles "
                f"are certain to lie within {number(config.margin * (k - 1), digits=2)} places of "
                "each other: these are called alike.",
            ),
            (
                "How large is an unfairness score?",
                "It depends on the number of styles and, through chance, on the number of queries. "
                "Compare it with the score by chance beside it and with other systems on the same "
                "data.",
            ),
            (
                "What do the intervals cover?",
                f"With {level(config.confidence_level)} confidence each covers the value for all "
                "queries like these, one at a time: they are not widened for the number of "
                "comparisons, and systems are not corrected together.",
            ),
            (
                "What follows from a bias here?",
                "Texts or questions in a style that ranks lower are found less easily by this "
                "system, as far as the versions really say the same thing. Choosing another "
                "encoder is the plainest remedy; tell users which one is in use.",
            ),
        )
    )


def _caveats(report: StyleResults) -> d.Section:
    noted = [("", text) for text in report.warnings]
    made: list[tuple[str, Iterable[object]]] = []
    for system in report.systems:
        noted += [(system.name, note) for note in system.notes]
        made += [(what, i.assumptions) for what, i in _intervals(system) if i is not None]
    for statistic in (*report.document_statistics, *report.query_statistics):
        if statistic.mean is not None:
            made.append(("text statistics", statistic.mean.assumptions))
    return legacy.caveats(made, dict.fromkeys(noted))


def _intervals(system: StyleSystem) -> list[tuple[str, Interval | None]]:
    """Return an interval of each kind, for what it assumes."""
    row = system.rows[0]
    found = [("average ranks", ends) for ends in row.average_ranks]
    found.append(("unfairness", row.unfairness_interval))
    found += [("differences of ranks", pair.interval) for pair in row.against_original]
    found += [("ranks at equal length", ends) for ends in row.adjusted_ranks]
    found += [("gains of matching styles", gain.gain) for gain in system.matching]
    found += [("quality by query style", q.score) for q in system.quality]
    found += [("change of quality", q.change) for q in system.quality]
    found += [("Relative Δ", s.interval) for s in system.index_scores]
    return found


def _data(report: StyleResults) -> d.Section:
    data, c = report.data, report.config
    dropped = count(len(data.dropped))
    if data.dropped:
        more = ", such as" if len(data.dropped) > _DROPPED else ":"
        dropped = f"{dropped}{more} {', '.join(data.dropped[:_DROPPED])}"
    about = (
        ("name", data.name),
        ("queries with every version", count(data.n_queries)),
        ("queries left out", dropped),
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
        ("missing versions", c.missing),
        ("cutoffs", ", ".join(map(str, c.cutoffs))),
        ("confidence level", level(c.confidence_level)),
        ("margin of “alike”", f"{100 * c.margin:g}% of the places"),
        ("correction", CORRECTIONS[c.correction]),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    systems = tuple((s.name, settings(s.settings)) for s in report.systems)
    return legacy.data(
        (
            ("Data", legacy.table(columns=("data", ""), rows=about)),
            ("Audit", legacy.table(columns=("setting", ""), rows=audit)),
            ("Systems", legacy.table(columns=("system", "settings"), rows=systems)),
            ("Environment", legacy.environment_table(report.environment, report.created)),
        )
    )
