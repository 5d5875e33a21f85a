"""The report of a source audit: what it says, in the order in which it says it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.blocks import (
    CORRECTIONS,
    MISSING,
    VARIANTS,
    capital,
    count,
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
    source_name,
    split_measure,
)
from rag_sourcebias.report.evidence import evidence
from rag_sourcebias.report.text_stats import (
    renamed,
    text_figures,
    text_key,
    text_means,
    text_notes,
    text_table,
)
from rag_sourcebias.source.data import SkewCell, SkewReport
from rag_sourcebias.source.words import (
    Verdict,
    first,
    headline,
    how_to_read,
    label,
    names_of,
    others_of,
    shown,
    significant,
    star_note,
    verdicts,
)

_REPEATS = {"length-matched": "at equal length", "exact": "with exact search"}


def document(report: SkewReport) -> b.Document:
    """Return everything there is to say about a source audit."""
    data = report.data
    made = (
        _verdicts(report),
        _evidence(report),
        _cutoffs(report),
        _numbers(report),
        _sign(report),
        _twins(report),
        _length(report),
        _section(
            "exact",
            "As deployed and with exact search",
            "The same encoder with exact search, because the approximate index returned something "
            "else. A gap between the columns is an effect of the index.",
            _beside(report, "exact", "Relative Δ as deployed and with exact search"),
            nav="Exact search",
        ),
        _sole(report),
        _exposure(report),
        _texts(report),
        b.reading(how_to_read(report)),
        _caveats(report),
        _data(report),
    )
    return b.Document(
        kind="Source bias report",
        title=f"Source bias report: {data.name}",
        name=data.name,
        first=first(report),
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


def _section(
    name: str, title: str, lead: str, first: b.Grid, *more: b.Block, nav: str = ""
) -> b.Section | None:
    """Return a section that starts with a table; none for a table without rows."""
    if not first.table.rows:
        return None
    return b.Section(id=name, nav=nav, title=title, lead=lead, blocks=(first, *more))


def _grid(
    report: SkewReport,
    caption: str,
    columns: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    *,
    n_heads: int = 3,
) -> b.Grid:
    """Return a table, without its second column, the other source, where there is only one."""
    content, others = (columns, *rows), others_of(report)
    if len(others) == 1:
        n_heads, content = n_heads - 1, tuple(row[:1] + row[2:] for row in content)
    return b.Grid(
        table=b.Table(columns=content[0], rows=content[1:], n_heads=n_heads), caption=caption
    )


def _sides(report: SkewReport) -> tuple[str, str]:
    """Return the baseline's name and the other's, where there is one other."""
    names, others = names_of(report), others_of(report)
    return (
        names[report.config.baseline_source],
        names[others[0]] if len(others) == 1 else "other",
    )


# Verdicts


def _verdicts(report: SkewReport) -> b.Section:
    scale = _scale(report)
    found = [v for v in verdicts(report) if v.system.variant == "mixed"]
    said = [" ".join((v.sentence, *_repeats(report, v))) for v in found]
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
            _scores(report),
            b.Items(rows=tuple(("", sentence) for sentence in said), to=(*b.MARKDOWN, *b.TERMINAL)),
        ),
    )


def _again(report: SkewReport, verdict: Verdict) -> tuple[Verdict, ...]:
    """Return the verdicts on repeats of a system: at equal length, with exact search."""
    same = (verdict.system.name, verdict.other)
    every = (v for v in verdicts(report) if v.system.variant != "mixed")
    return tuple(v for v in every if (v.system.name, v.other) == same)


def _repeats(report: SkewReport, verdict: Verdict) -> Iterator[str]:
    """Say what became of the figure in each repeat, and of the verdict where it is another."""
    for again in _again(report, verdict):
        if not again.cells:
            continue
        what = capital(_REPEATS[again.system.variant])
        changed = "" if again.code is verdict.code else f", {again.short}"
        yield f"{what}: {_valued(*shown(again.cells[-1]))}{changed}."


def _scale(report: SkewReport) -> float:
    """Return where the bars of all cards and the axes of Relative Δ end."""
    found = [shown(cell) for system in report.systems for cell in system.cells]
    ends = [abs(end) for _, i in found if i is not None for end in (i.lower, i.upper)]
    ends += [abs(value) for value, _ in found if value is not None]
    return min(200.0, 10 * (max([20.0, *ends]) // 10 + 1))


def _card(report: SkewReport, verdict: Verdict, scale: float) -> b.Card:
    several = len(others_of(report)) > 1
    return b.Card(
        name=verdict.system.name,
        tags=(b.Name(f"against {names_of(report)[verdict.other]}"),) if several else (),
        standing=f"prefers {verdict.direction}" if verdict.direction else "none",
        short=verdict.short,
        text=" ".join((f"{capital(verdict.text)}.", *_repeats(report, verdict))),
        rows=(
            *(_card_row(report, cell, scale) for cell in verdict.cells),
            *(
                _card_row(report, cell, scale, tag=_REPEATS[again.system.variant])
                for again in _again(report, verdict)
                for cell in again.cells[-1:]
            ),
        ),
    )


def _card_row(report: SkewReport, cell: SkewCell, scale: float, *, tag: str = "") -> b.CardRow:
    value, found = shown(cell)
    return b.CardRow(
        name=cell.measure,
        tag=tag,
        value=delta(value),
        ends=interval(found),
        bar=_bar(report, cell, scale),
        star=significant(report, cell),
    )


def _bar(report: SkewReport, cell: SkewCell, scale: float) -> b.Bar | None:
    middle, found = shown(cell)
    if found is None or middle is None:
        return None
    side = "even"
    if middle != 0:
        side = "baseline" if middle > 0 else "other"
    return b.Bar.over(
        (found.lower, middle, found.upper),
        (-scale, scale),
        side=side,
        solid=significant(report, cell),
    )


def _scores(report: SkewReport) -> b.Grid:
    """Return scores and Relative Δ as in Table 4 of Dai et al. (KDD 2024), for a terminal."""
    measures = tuple(dict.fromkeys(c.measure for s in report.systems for c in s.cells))
    rows: list[tuple[str, ...]] = []
    sides: list[tuple[str, ...]] = []
    for system in report.systems:
        for place, other in enumerate(dict.fromkeys(c.other for c in system.cells)):
            cells = {c.measure: c for c in system.cells if c.other == other}
            columns = [_three(report, cells.get(measure)) for measure in measures]
            names = (source_name(report.config.baseline_source), source_name(other), "Relative Δ")
            for i, name in enumerate(names):
                if i == 0 and place > 0:
                    continue  # the baseline once
                rows.append((label(report, system), name, *(column[i][0] for column in columns)))
                sides.append(("", "", *(column[i][1] for column in columns)))
    return b.Grid(
        table=b.Table(
            columns=("system", "", *(f"{measure} " for measure in measures)),
            rows=tuple(rows),
            n_heads=2,
        ),
        caption="Scores ×100 and Relative Δ",
        width=8,
        together=len(report.config.cutoffs),
        sides=tuple(sides),
        to=b.TERMINAL,
    )


def _three(report: SkewReport, cell: SkewCell | None) -> list[tuple[str, str]]:
    """Return both scores and Relative Δ as published, each with its colour."""
    if cell is None:
        return [("", "")] * 3
    scores = [(f"{score(mean)} ", "") for mean in (cell.mean_baseline, cell.mean_other)]
    value = cell.relative_delta
    if value is None:
        return [*scores, ("undef. ", "")]
    side = "baseline" if value >= 0 else "other"
    if significant(report, cell):
        return [*scores, (f"{delta(value)}*", f"strong {side}")]
    # The blank keeps the decimals in line with a Δ that carries a star.
    return [*scores, (f"{delta(value)} ", side)]


# The queries behind a verdict


def _evidence(report: SkewReport) -> b.Section | None:
    names, measure = names_of(report), report.config.primary_measure
    base = names[report.config.baseline_source]
    blocks: list[b.Block] = []
    found = [v for v in verdicts(report) if v.system.variant == "mixed"]
    for verdict in found:
        rival = names[verdict.other]
        cases = [c for c in verdict.system.evidence if c.second.label == verdict.other]
        texts = any(c.first.text for c in cases)
        told = evidence(
            cases,
            of=f"{measure} difference ×100",
            noun="query",
            columns=(base, rival, "rank"),
            write=lambda rank: "not found" if rank is None else number(rank, digits=0),
            added=lambda value: number(100 * value, signed=True),
            caption=f"Queries that matter most for {verdict.subject}, and the strongest that point "
            "the other way",
        )
        blocks += [b.Heading(text=b.Name(verdict.subject), to=b.PAGE)] * (len(found) > 1)
        blocks += told
        if cases and not texts:
            blocks.append(b.Paragraph(text="No texts were kept: ids stand for them.", look="note"))
    if not blocks:
        return None
    return b.Section(
        id="evidence",
        title="The queries behind it",
        nav="Evidence",
        lead=f"Each query adds its difference to the figure: positive where {base} text ranks "
        "higher. One relevant document of each source is shown, with its rank; words that the "
        "other text lacks are marked.",
        blocks=tuple(blocks),
    )


# Pictures of the primary measure


def _cutoffs(report: SkewReport) -> b.Section:
    base = names_of(report)[report.config.baseline_source]
    every = tuple(
        (label(report, v.system, v.other), _paired(report, v))
        for v in verdicts(report)
        if v.system.variant == "mixed"
        and v.other in v.system.scores.sources
        and v.cells
        and v.cells[-1].measure in v.system.scores.measures
    )
    queries: list[b.Block] = [
        b.Heading(text="Every query", to=b.PAGE),
        b.Paragraph(
            text=f"Marks below the diagonal are queries that rank {base} text higher, marks "
            "above it the reverse. The area is the number of queries with these scores; 0 "
            "means that no relevant text was found.",
            to=b.PAGE,
        ),
        b.Figures(items=every),
    ]
    return b.Section(
        id="cutoffs",
        nav="By cutoff",
        title="By cutoff and by query",
        lead=f"Each line is a {level(report.config.confidence_level)} interval; filled marks are "
        "significant after correction; hollow ones are not, or were not tested. Circles lie on the "
        f"{base} side, triangles on the other.",
        blocks=(b.Figures(items=_deltas(report)), *(queries if every else [])),
    )


def _deltas(report: SkewReport) -> tuple[tuple[str, pic.Picture], ...]:
    """Draw Relative Δ with its interval, a row per cutoff, by measure and other source."""
    names, reach = names_of(report), 1.05 * _scale(report)
    base = names[report.config.baseline_source]
    rows: dict[tuple[str, str], list[pic.Row]] = {}
    for system in (s for s in report.systems if s.variant == "mixed"):
        for cell in system.cells:
            (measure, cutoff), (value, found) = split_measure(cell.measure), shown(cell)
            mark = pic.Mark(
                at=value or 0.0,
                ends=(found.lower, found.upper) if found else None,
                colour="muted" if not found else "baseline" if found.estimate >= 0 else "other",
                solid=significant(report, cell),
            )
            rows.setdefault((cell.other, measure), []).append(
                pic.Row(
                    label=f"@{cutoff}",
                    group=label(report, system),
                    marks=() if value is None else (mark,),
                    note="undefined" if value is None else "" if found else "no interval",
                )
            )
    return tuple(
        (
            f"Relative Δ of {measure}" + f" against {names[other]}" * (len(others_of(report)) > 1),
            pic.Intervals(
                title=f"Relative Δ of {measure} by system and cutoff, {base} against "
                f"{names[other]}",
                rows=tuple(rows[other, measure]),
                x=pic.Axis(
                    label=f"← {shorten(names[other], 16)} ranked higher  |  "
                    f"{shorten(base, 16)} ranked higher →",
                    span=(-reach, reach),
                ),
                guides=(pic.Guide(at=0),),
                filled="significant",
            ),
        )
        for other, measure in rows
    )


def _paired(report: SkewReport, verdict: Verdict) -> pic.Points:
    """Draw each query's score for the baseline's documents against the other source's.

    Queries with the same pair of scores (to 5 of 100) share one mark whose area is their number.
    """
    names, measure = names_of(report), verdict.cells[-1].measure
    sources = (report.config.baseline_source, verdict.other)
    base, rival = (names[source] for source in sources)
    x, y = (100 * verdict.system.scores.of(measure, source) for source in sources)
    places = Counter(sorted(zip(*(np.round(np.stack((x, y)) / 5) * 5).tolist(), strict=True)))
    points, counts = np.array([*places], dtype=float).T, np.array([*places.values()])
    # Counted before rounding: marks on the diagonal may hide small differences, numbers may not.
    sides: tuple[tuple[str, pic.Colour, float], ...] = (
        (f"{shorten(base, 14)} higher", "baseline", 1),
        (f"{shorten(rival, 14)} higher", "other", -1),
        ("equal", "even", 0),
    )
    curves = [
        pic.Curve(
            x=_plain(points[0, here]),
            y=_plain(points[1, here]),
            sizes=_plain(counts[here]),
            colour=colour,
            name=f"{text}: {np.sum(np.sign(x - y) == sign)}",
        )
        for text, colour, sign in sides
        for here in (np.sign(points[0] - points[1]) == sign,)
    ]
    ticks, span = tuple((at, str(at)) for at in (0, 50, 100)), (-5, 105)
    return pic.Points(
        title=f"{measure} per query, {label(report, verdict.system)}: {base} against {rival}",
        description=f"{', '.join(curve.name for curve in curves)}, of {len(x)} queries.",
        curves=(
            pic.Curve(x=(0, 100), y=(0, 100), colour="muted", mark="none", line="solid"),
            *curves,
        ),
        x=pic.Axis(label=f"{measure} of {shorten(base, 22)} text", ticks=ticks, span=span),
        y=pic.Axis(label=f"{measure} of {shorten(rival, 22)} text", ticks=ticks, span=span),
        square=True,
    )


def _plain(values: npt.NDArray[Any]) -> tuple[float, ...]:
    return tuple(map(float, values))


# Tables


def _numbers(report: SkewReport) -> b.Section:
    scale = _scale(report)
    reach, confidence = number(scale, digits=0), level(report.config.confidence_level)
    cells = [
        (label(report, system, other), cell)
        for system in report.systems
        for other in others_of(report)
        for cell in system.cells
        if cell.other == other
    ]
    missing = tuple(
        (f"{label(report, s)}, {c.measure} against {names_of(report)[c.other]}", why)
        for s in report.systems
        for c in s.cells
        for why in dict.fromkeys((c.refusal, c.centred.refusal if c.centred else None))
        if why
    )
    blocks = (
        b.Grid(
            table=b.Table(
                columns=(
                    "system",
                    "measure",
                    *_sides(report),
                    "Relative Δ",
                    f"{confidence} interval",
                    "centred Δ",
                    "p",
                    "adjusted p",
                    "queries",
                    "needed",
                ),
                rows=tuple((who, cell.measure, *_row(report, cell)) for who, cell in cells),
                n_heads=2,
            ),
            caption="Scores ×100, Relative Δ and tests",
            bars=tuple(_bar(report, cell, scale) for _, cell in cells),
            bars_at=4,
            scale=f"−{reach} … +{reach}",
        ),
        b.Paragraph(text=star_note(report), look="note", to=b.EVERYWHERE),
        *([b.Heading(text="Why some intervals are missing")] if missing else []),
        *([b.Items(rows=missing)] if missing else []),
    )
    return b.Section(id="numbers", title="All numbers", blocks=blocks)


def _row(report: SkewReport, cell: SkewCell) -> tuple[str, ...]:
    centred = _valued(*shown(cell))
    # With one copy of each document it is the figure beside it.
    if centred == _valued(cell.relative_delta, cell.interval):
        centred = "same"
    return (
        score(cell.mean_baseline),
        score(cell.mean_other),
        delta(cell.relative_delta),
        interval(cell.interval),
        MISSING if cell.centred is None else centred,
        p_value(cell.p_value),
        p_value(cell.p_adjusted) + "*" * significant(report, cell),
        count(cell.n_queries),
        count(cell.n_needed),
    )


def _valued(value: float | None, found: Interval | None, star: str = "") -> str:
    return delta(value) + star + ("" if found is None else f" {interval(found)}")


def _sign(report: SkewReport) -> b.Section | None:
    """Return what could turn the sign of the primary measure: settings, length, exposure."""
    primary, names, rows = report.config.primary_measure, names_of(report), []
    for system in (s for s in report.systems if s.variant == "mixed"):
        for cell in (c for c in system.cells if c.measure == primary):
            told = (
                ("as deployed", _valued(*shown(cell))),
                *(
                    (one.setting, _valued(one.value, one.interval))
                    for one in system.strip
                    if one.other == cell.other
                ),
                *(
                    (VARIANTS[again.variant], _valued(*shown(again.cell(primary, cell.other))))
                    for again in report.systems
                    if again.variant != "mixed" and again.name == system.name
                ),
                *(
                    (
                        f"exposure of {source_name(e.source)} ({e.browsing})",
                        estimate(e.difference, scale=100, signed=True),
                    )
                    for e in system.exposure
                    if e.source == cell.baseline and e.difference is not None
                ),
            )
            rows += [(system.name, names[cell.other], *row) for row in told]
        if (across := system.across) is not None:
            sample = f"{across.n_sources} other sources as a sample of rewriters"
            rows.append((system.name, "all", sample, _valued(across.value, across.interval)))
    return _section(
        "sign",
        "What turns the sign",
        "The primary measure under other usual settings of the retriever and with pairs cut to "
        "equal length, and the exposure of all documents, relevant or not. Where these point in "
        "different directions, the verdict holds for the setting as deployed only.",
        _grid(
            report,
            "Centred Relative Δ under other settings",
            ("system", "against", "setting", f"centred Δ of {primary} (exposure: points)"),
            rows,
        ),
    )


def _beside(report: SkewReport, variant: str, caption: str) -> b.Grid:
    """Return Relative Δ of a variant beside that of the same system as deployed."""

    def valued(cell: SkewCell) -> str:
        return _valued(*shown(cell), "*" * significant(report, cell))

    deployed = {
        (s.name, c.other, c.measure): valued(c)
        for s in report.systems
        if s.variant == "mixed"
        for c in s.cells
    }
    rows = (
        (
            s.name,
            names_of(report)[c.other],
            c.measure,
            deployed.get((s.name, c.other, c.measure), MISSING),
            valued(c),
        )
        for s in report.systems
        if s.variant == variant
        for c in s.cells
    )
    return _grid(
        report, caption, ("system", "against", "measure", "as deployed", VARIANTS[variant]), rows
    )


def _sole(report: SkewReport) -> b.Section | None:
    return _section(
        "sole-corpus",
        "Sole-corpus control",
        "Each source searched alone. A large difference here means that the versions do not say "
        "the same thing, so the mixed result is not source bias alone. A small one does not prove "
        "that they do. These p-values are not adjusted.",
        _grid(
            report,
            "Quality on the corpus of each source alone, ×100",
            ("system", "against", "measure", *_sides(report), "difference ×100", "p"),
            (
                (
                    label(report, s),
                    names_of(report)[c.other],
                    c.measure,
                    score(c.mean_baseline),
                    score(c.mean_other),
                    estimate(c.difference, scale=100, signed=True),
                    p_value(c.p_value),
                )
                for s in report.systems
                for c in s.sole_corpus
            ),
        ),
        nav="Control",
    )


def _exposure(report: SkewReport) -> b.Section | None:
    fair = tuple(
        (label(report, s), number(s.awrf, digits=3)) for s in report.systems if s.awrf is not None
    )
    return _section(
        "exposure",
        "Exposure",
        "Which share of a reader's attention each source receives, judged or not, against its "
        "share of the corpus. AWRF is attention-weighted rank fairness: 1 means in proportion to "
        "the corpus. A source may earn more attention by being more relevant.",
        b.Grid(
            table=b.Table(
                columns=(
                    "system",
                    "attention",
                    "source",
                    "share",
                    "of the corpus",
                    "difference (points)",
                ),
                rows=tuple(
                    (
                        label(report, s),
                        e.browsing,
                        source_name(e.source),
                        share(e.share),
                        share(e.corpus_share),
                        estimate(e.difference, scale=100, signed=True),
                    )
                    for s in report.systems
                    for e in s.exposure
                ),
                n_heads=3,
            ),
            caption="Share of attention against share of the corpus",
        ),
        *[b.Facts(tables=(("AWRF", b.Table(columns=("system", "AWRF"), rows=fair)),))] * bool(fair),
    )


# Twins and length


def _twins(report: SkewReport) -> b.Section | None:
    rows = (
        (
            label(report, s),
            names_of(report)[t.other],
            count(t.n_pairs),
            count(t.n_unseen),
            *(
                estimate(value, digits=2)
                for value in (t.win_rate, t.margin, t.win_rate_equal_length)
            ),
        )
        for s in report.systems
        for t in s.twins
    )
    return _section(
        "twins",
        "Twins",
        "Two versions of one relevant document, one per source: which ranks higher? A win rate "
        "of 0.50 is even-handed; below, the baseline's version tends to win, above, the other's. "
        "The equal-length rate is what a logistic regression expects for twins of the same "
        "length and average word overlap. Pairs of which neither version was found are left out.",
        _grid(
            report,
            "Which version of one document ranks higher",
            (
                "system",
                "against",
                "pairs",
                "neither found",
                f"win rate of {_sides(report)[1]}",
                "score margin (sd)",
                "win rate at equal length",
            ),
            rows,
            n_heads=2,
        ),
    )


def _length(report: SkewReport) -> b.Section | None:
    return _section(
        "length",
        "Length",
        "The audit repeated with both versions of each pair cut to the same length. If the skew "
        "shrinks, part of it was about length.",
        _beside(report, "length-matched", "Relative Δ as deployed and at equal length"),
    )


def _texts(report: SkewReport) -> b.Section | None:
    if not report.text_statistics:
        return None
    names = names_of(report)
    found = renamed(report.text_statistics, names)
    original = names[report.config.baseline_source]
    notes = tuple(("", f"{note}.") for note in text_notes(found))
    return b.Section(
        id="texts",
        nav="Texts",
        title="What the texts look like",
        lead="How long the texts of each source are and how much of the original's wording the "
        "other versions keep, before any retriever sees them.",
        blocks=(
            b.Paragraph(text=text_key(found), look="note", to=b.PAGE),
            b.Figures(items=text_figures(found, original=original)),
            b.Grid(
                table=text_table(found, original=original),
                caption="Mean per text with its interval",
            ),
            *([b.Items(rows=notes)] if notes else []),
            *text_means(found, original=original),
        ),
    )


# What to doubt, and what it was made of


def _caveats(report: SkewReport) -> b.Section:
    made: list[tuple[str, Interval | None]] = []
    noted = [("", text) for text in report.warnings]
    for system in report.systems:
        for cell in system.cells:
            kind = split_measure(cell.measure)[0]
            made += [
                (f"Relative Δ ({kind})", cell.interval),
                (f"centred Relative Δ ({kind})", cell.centred.interval if cell.centred else None),
            ]
        for twin in system.twins:
            made += [
                ("twin win rate", twin.win_rate),
                ("twin score margin", twin.margin),
                ("equal-length win rate", twin.win_rate_equal_length),
            ]
        made += [
            *(("exposure", entry.difference) for entry in system.exposure),
            *(("sole-corpus difference", check.difference) for check in system.sole_corpus),
        ]
        counts = (
            (system.n_untagged, "retrieved entries belong to documents without a source tag"),
            (system.n_duplicates, "retrieved entries repeated a document and were dropped"),
            (system.n_empty, "judged queries returned nothing; they score 0 and count"),
        )
        notes = (
            *system.notes,
            *(note for twin in system.twins for note in twin.notes),
            *(f"{n:,} {text}" for n, text in counts if n),
        )
        noted += [(label(report, system), note) for note in notes]
    return b.caveats(
        b.assumed(
            (f"{what}, {found.method} method", found.assumptions) for what, found in made if found
        ),
        dict.fromkeys(noted),
    )


def _data(report: SkewReport) -> b.Section:
    c = report.config
    audit = (
        ("baseline source", source_name(c.baseline_source)),
        ("measures", ", ".join(c.measures)),
        ("cutoffs", ", ".join(map(str, c.cutoffs))),
        ("ties", c.ties),
        ("gain", c.gain),
        ("confidence level", level(c.confidence_level)),
        ("interval method", c.interval_method),
        ("correction", f"{CORRECTIONS[c.correction]}, {count(report.n_tests)} tests"),
        ("family", report.family),
        ("resamples", count(c.resamples)),
        ("primary measure", c.primary_measure),
        ("margin", f"±{number(c.margin)} points of centred Relative Δ"),
        ("attention models", ", ".join(c.browsing)),
        ("seed", str(c.seed)),
    )
    return b.data(
        (
            ("Data", b.summary_table(report.data)),
            ("Audit", b.Table(columns=("setting", ""), rows=audit)),
            (
                "Systems",
                b.Table(
                    columns=("system", "settings"),
                    rows=tuple((label(report, s), settings(s.settings)) for s in report.systems),
                ),
            ),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )
