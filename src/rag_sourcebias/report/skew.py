"""The report of a source audit: what it says, in the order in which it says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import facts, plots, sections, tables, text_tables, twin_plots
from rag_sourcebias.report.bars import Bar
from rag_sourcebias.report.format import (
    VARIANTS,
    count,
    delta,
    interval,
    level,
    number,
    score,
    source_name,
    split_measure,
)
from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.meaning import how_to_read
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.text_plots import text_plot
from rag_sourcebias.report.texts import SECTIONS, star_note
from rag_sourcebias.report.verdicts import Verdict, leading_cells, verdicts
from rag_sourcebias.report.view import (
    assumptions,
    baseline_of,
    caveats,
    label,
    names_of,
    others_of,
    refusals,
    shown,
    significant,
)
from rag_sourcebias.types.reports import SkewCell, SkewReport, SystemSkew, TwinSkew

__all__ = ["document"]

Drawing: TypeAlias = Callable[[str], str]
_COLUMN = 8  # characters of a score in a terminal


def document(report: SkewReport) -> b.Document:
    """Return everything there is to say about a source audit."""
    data = report.data
    made = (
        _verdicts(report),
        _cutoffs(report),
        _numbers(report),
        _standing("sign", tables.sign_table(report), "Centred Relative Δ under other settings"),
        _twins(report),
        _length(report),
        _standing(
            "exact",
            tables.variant_table(report, "exact"),
            "Relative Δ as deployed and with exact search",
            nav="Exact search",
        ),
        _standing(
            "sole-corpus",
            tables.sole_table(report),
            "Quality on the corpus of each source alone, ×100",
            nav="Control",
        ),
        _exposure(report),
        _texts(report),
        sections.reading(how_to_read(report)),
        sections.caveats(assumptions(report), caveats(report)),
        sections.data(
            (
                ("Data", facts.data_table(report)),
                ("Audit", facts.config_table(report)),
                ("Systems", facts.settings_table(report)),
                ("Environment", facts.environment_table(report)),
            )
        ),
    )
    return b.Document(
        kind="Source bias report",
        title=f"Source bias report: {data.name}",
        name=data.name,
        headline=headline(report),
        facts=(
            (f"{count(data.n_queries)} queries",),
            (f"{count(data.n_judgments)} judgments",),
            (f"{count(sum(data.documents.values()))} documents",),
            (f"design: {data.design}",),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(section for section in made if section is not None),
    )


def _verdicts(report: SkewReport) -> b.Section:
    scale, found = _scale(report), verdicts(report)
    base, rival = _sides(report)
    reach = number(scale, digits=0)
    return b.Section(
        id="verdicts",
        title="Verdicts",
        blocks=(
            b.Cards(
                cards=tuple(_card(report, verdict, scale) for verdict in found),
                look="source",
                middle=True,
                to=b.PAGE,
            ),
            b.Paragraph(
                text=f"Centred Relative Δ with its {level(report.config.confidence_level)} "
                f"interval. Bars run from −{reach} ({rival} ranked higher, left) to +{reach} "
                f"({base} ranked higher, right); a filled dot and * mark what is significant after "
                "correction.",
                look="note",
                to=b.PAGE,
            ),
            b.Items(rows=tuple(("", verdict.sentence) for verdict in found), to=b.MARKDOWN),
            _scores(report),
            b.Paragraph(text=star_note(report), look="note", to=b.TERMINAL),
            b.Lines(
                rows=tuple(
                    (("• ", ""), (v.subject, "strong"), (v.sentence[len(v.subject) :], ""))
                    for v in found
                )
            ),
        ),
    )


def _sides(report: SkewReport) -> tuple[str, str]:
    """Return the baseline's name and the other's, where there is one other."""
    names, others = names_of(report), others_of(report)
    return names[baseline_of(report)], names[others[0]] if len(others) == 1 else "other"


def _scale(report: SkewReport) -> float:
    """Return where the bars of all cards end."""
    ends = [20.0]
    for cell in (c for s in report.systems for c in s.cells):
        value, found = shown(cell)
        ends += [] if value is None else [abs(value)]
        ends += [] if found is None else [abs(found.lower), abs(found.upper)]
    return min(200.0, 10 * (max(ends) // 10 + 1))


def _card(report: SkewReport, verdict: Verdict, scale: float) -> b.Card:
    return b.Card(
        name=verdict.system.name,
        tags=_tags(report, verdict.system, verdict.other),
        standing=f"prefers {verdict.direction}" if verdict.direction else "none",
        short=verdict.short,
        text=f"{verdict.text[:1].upper()}{verdict.text[1:]}.",
        rows=tuple(
            b.CardRow(
                name=cell.measure,
                value=delta(shown(cell)[0]),
                ends=interval(shown(cell)[1]),
                bar=_bar(report, cell, scale),
                star=significant(report, cell),
            )
            for cell in leading_cells(report, verdict.system, verdict.other)
        ),
    )


def _tags(report: SkewReport, system: SystemSkew, other: str) -> tuple[str, ...]:
    """Return what tells a system's runs and comparisons apart."""
    variant = VARIANTS.get(system.variant, system.variant)
    several = len(others_of(report)) > 1
    against = b.Name(f"against {names_of(report)[other]}" * several)
    return tuple(filter(None, (variant, against)))


def _bar(report: SkewReport, cell: SkewCell, scale: float) -> Bar | None:
    middle, found = shown(cell)
    if found is None or middle is None:
        return None
    low, high, dot = (
        round(50 + 50 * max(-1.0, min(1.0, value / scale)), 2)
        for value in (found.lower, found.upper, middle)
    )
    return Bar(
        left=low,
        width=round(high - low, 2),
        dot=dot,
        side="even" if dot == 50 else "baseline" if dot > 50 else "other",
        solid=significant(report, cell),
    )


def _scores(report: SkewReport) -> b.Grid:
    """Return scores and Relative Δ as in Table 4 of Dai et al. (KDD 2024), for a terminal."""
    measures = tuple(dict.fromkeys(c.measure for s in report.systems for c in s.cells))
    rows: list[tuple[str, ...]] = []
    sides: list[tuple[str, ...]] = []

    def add(system: SystemSkew, name: str, texts: list[str], colours: list[str]) -> None:
        rows.append((label(system), name, *texts))
        sides.append(("", "", *colours))

    for system in report.systems:
        others = [o for o in others_of(report) if any(c.other == o for c in system.cells)]
        for place, other in enumerate(others):
            of = {c.measure: c for c in system.cells if c.other == other}
            cells = [of.get(measure) for measure in measures]
            plain = [""] * len(cells)
            # The blank keeps the decimals in line with a Δ that carries a star.
            if place == 0:
                base = ["" if c is None else f"{score(c.mean_baseline)} " for c in cells]
                add(system, source_name(baseline_of(report)), base, plain)
            theirs = ["" if c is None else f"{score(c.mean_other)} " for c in cells]
            add(system, source_name(other), theirs, plain)
            found = [_delta(report, cell) for cell in cells]
            add(system, "Relative Δ", [text for text, _ in found], [side for _, side in found])
    return b.Grid(
        table=Table(
            columns=("system", "", *(f"{measure} " for measure in measures)),
            rows=tuple(rows),
            n_heads=2,
        ),
        caption="Scores ×100 and Relative Δ",
        width=_COLUMN,
        together=len(report.config.cutoffs),
        sides=tuple(sides),
        to=b.TERMINAL,
    )


def _delta(report: SkewReport, cell: SkewCell | None) -> tuple[str, str]:
    if cell is None:
        return "", ""
    if cell.relative_delta is None:
        return "undef. ", ""
    strong, side = significant(report, cell), "baseline" if cell.relative_delta >= 0 else "other"
    return delta(cell.relative_delta) + ("*" if strong else " "), "strong " * strong + side


def _cutoffs(report: SkewReport) -> b.Section:
    base = names_of(report)[baseline_of(report)]
    several = len(others_of(report)) > 1
    deltas, every = list[tuple[str, Drawing]](), list[tuple[str, Drawing]]()
    for other in others_of(report):
        tail = f" against {names_of(report)[other]}" if several else ""
        mixed = [s for s in report.systems if s.variant == "mixed"]
        kinds = [split_measure(c.measure)[0] for s in mixed for c in s.cells if c.other == other]
        for measure in dict.fromkeys(kinds):
            draw = partial(_draw_delta, report, other, measure)
            deltas.append((f"Relative Δ of {measure}{tail}", draw))
        for system in mixed:
            cells = leading_cells(report, system, other)
            if not cells or other not in system.scores.sources:
                continue
            if (measure := cells[-1].measure) in system.scores.measures:
                draw = partial(_draw_pairs, report, system, other, measure)
                every.append((label(system) + tail, draw))
    blocks: list[b.Block] = [b.Figures(items=tuple(deltas))]
    if every:
        blocks += [
            b.Heading(text="Every query", to=b.PAGE),
            b.Paragraph(
                text=f"Marks below the diagonal are queries that rank {base} text higher, marks "
                "above it the reverse. The area is the number of queries with these scores; 0 "
                "means that no relevant text was found.",
                to=b.PAGE,
            ),
            b.Figures(items=tuple(every)),
        ]
    return b.Section(
        id="cutoffs",
        nav="By cutoff",
        title="By cutoff and by query",
        lead=f"Each line is a {level(report.config.confidence_level)} interval; filled marks are "
        "significant after correction; hollow ones are not, or were not tested. Circles lie on the "
        f"{base} side, triangles on the other.",
        blocks=tuple(blocks),
    )


def _draw_delta(report: SkewReport, other: str, measure: str, uid: str) -> str:
    return plots.relative_delta_plot(report, other, measure=measure, uid=uid)


def _draw_pairs(report: SkewReport, system: SystemSkew, other: str, measure: str, uid: str) -> str:
    return plots.paired_scores_plot(report, system, other, measure=measure, uid=uid)


def _numbers(report: SkewReport) -> b.Section:
    scale, base_and_rival = _scale(report), _sides(report)
    reach = number(scale, digits=0)
    confidence = level(report.config.confidence_level)
    rows, bars = list[tuple[str, ...]](), list[Bar | None]()
    for system in report.systems:
        for other in others_of(report):
            who = ", ".join((system.name, *_tags(report, system, other)))
            for cell in (c for c in system.cells if c.other == other):
                rows.append((who, cell.measure, *tables.cell_row(report, cell)))
                bars.append(_bar(report, cell, scale))
    columns = (
        "system", "measure", *base_and_rival, "Relative Δ", f"{confidence} interval", "centred Δ",
        "p", "adjusted p", "queries", "needed",
    )  # fmt: skip
    blocks: list[b.Block] = [
        b.Grid(
            table=Table(columns=columns, rows=tuple(rows), n_heads=2),
            caption=star_note(report),
            bars=tuple(bars),
            bars_at=4,
            scale=f"−{reach} … +{reach}",
            to=b.PAGE,
        ),
        b.Grid(table=tables.cells_table(report), caption=star_note(report), to=b.MARKDOWN),
        b.Paragraph(text=star_note(report), to=b.MARKDOWN),
    ]
    if missing := refusals(report):
        blocks += [b.Heading(text="Why some intervals are missing"), b.Items(rows=missing)]
    return b.Section(id="numbers", title="All numbers", blocks=tuple(blocks))


def _standing(
    name: str, table: Table, caption: str, *more: b.Block, nav: str = ""
) -> b.Section | None:
    """Return a section of a table, and what follows it, under its standing text."""
    if not table.rows:
        return None
    title, lead = SECTIONS[name]
    blocks = (b.Grid(table=table, caption=caption), *more)
    return b.Section(id=name, nav=nav, title=title, lead=lead, blocks=blocks)


def _twins(report: SkewReport) -> b.Section | None:
    drawn = tuple(
        (caption, partial(_draw_twins, twin_plots.twin_ranks_plot, report, system, twin))
        for caption, system, twin in _pairs(report)
    )
    pictures = [b.Figures(items=drawn)] if drawn else []
    caption = "Which version of one document ranks higher"
    return _standing("twins", tables.twins_table(report), caption, *pictures)


def _pairs(report: SkewReport) -> Iterator[tuple[str, SystemSkew, TwinSkew]]:
    """Return the twins of systems as deployed, with a caption each."""
    for other in others_of(report):
        tail = f" against {names_of(report)[other]}" * (len(others_of(report)) > 1)
        for system in (s for s in report.systems if s.variant == "mixed"):
            for twin in system.twins:
                if twin.other == other and twin.n_pairs:
                    yield label(system) + tail, system, twin


def _draw_twins(
    draw: Callable[..., str], report: SkewReport, system: SystemSkew, twin: TwinSkew, uid: str
) -> str:
    return draw(report, system, twin, uid=uid)


def _length(report: SkewReport) -> b.Section | None:
    drawn = tuple(
        (caption, partial(_draw_twins, twin_plots.length_plot, report, system, twin))
        for caption, system, twin in _pairs(report)
        if len(twin.log_length_ratio)
    )
    matched = tables.variant_table(report, "length-matched")
    if not drawn and not matched.rows:
        return None
    blocks: list[b.Block] = []
    if drawn:
        blocks += [
            b.Paragraph(
                text="Does the longer version win? Each diamond is an equal share of the pairs, "
                f"its line a {level(report.config.confidence_level)} Wilson interval that takes "
                "pairs as independent, although pairs of one query are not quite. Ticks at the "
                "top and bottom are single pairs.",
                to=b.PAGE,
            ),
            b.Figures(items=drawn),
        ]
    if matched.rows:
        title, text = SECTIONS["length-matched"]
        blocks += [
            b.Heading(text=title),
            b.Paragraph(text=text),
            b.Grid(table=matched, caption="Relative Δ as deployed and at equal length"),
        ]
    return b.Section(id="length", title="Length", blocks=tuple(blocks))


def _exposure(report: SkewReport) -> b.Section | None:
    rows = tuple((label(s), number(s.awrf, digits=3)) for s in report.systems if s.awrf is not None)
    fairness = [b.Facts(tables=(("AWRF", Table(columns=("system", "AWRF"), rows=rows)),))]
    caption = "Share of attention against share of the corpus"
    return _standing(
        "exposure", tables.exposure_table(report), caption, *(fairness if rows else ())
    )


def _texts(report: SkewReport) -> b.Section | None:
    if not report.text_statistics:
        return None
    names = names_of(report)
    found = text_tables.renamed(report.text_statistics, names)
    original = names[baseline_of(report)]
    title, lead = text_tables.SOURCE_SECTION
    notes = tuple(("", f"{note}.") for note in text_tables.text_notes(found))

    def drawn(uid: str) -> str:
        return text_plot(found, original=original, uid=uid, title=title)

    return b.Section(
        id="texts",
        nav="Texts",
        title=title,
        lead=lead,
        blocks=(
            b.Paragraph(text=text_tables.text_key(found), look="note", to=b.PAGE),
            b.Figures(items=(("Texts by source", drawn),)),
            b.Grid(
                table=text_tables.text_table(found, original=original),
                caption="Mean per text with its interval",
            ),
            *([b.Items(rows=notes)] if notes else []),
        ),
    )
