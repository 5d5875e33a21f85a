"""The report on writing styles: what it says and shows, in the order in which it is read."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import fmean, pstdev

from rag_sourcebias.core.finding import (
    CORRECTIONS,
    MISSING,
    Frame,
    Interval,
    number,
    p_value,
    shorten,
    split_measure,
)
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import (
    Bar,
    CaseWords,
    Document,
    First,
    FirstRow,
    Standing,
    case_blocks,
    case_section,
    text_figures,
    text_frame,
    text_key,
    text_notes,
)
from rag_sourcebias.report.legacy import (
    alpha_of,
    count,
    counted,
    delta,
    estimate,
    interval,
    join,
    level,
    next_step,
    p_clause,
    roughly,
    score,
    settings,
)
from rag_sourcebias.report.render import Outcome, Report
from rag_sourcebias.style.data import (
    StyleCode,
    StyleFinding,
    StyleResults,
    StyleRow,
    StyleSystem,
    telling_styles,
)

_LONGEST = 60  # characters of a style's name
_NAME = 48  # of a system's name in the headline
_LISTED = 6  # styles that are named
_NAMED = 5  # styles of which the difference is written out


# Names and numbers


def style_name(style: str) -> str:
    """Return ``style 3`` for a number (the styles of [W] are numbered), other names as they are."""
    return f"style {style}" if style.isdigit() else shorten(style or "unnamed", _LONGEST)


def style_list(styles: Sequence[str]) -> str:
    """Return ``styles 3, 6 and 7`` or ``formal and style 3`` for one style or more."""
    if len(styles) > 1 and all(s.isdigit() for s in styles):
        return f"styles {join(styles)}"
    return join([style_name(s) for s in styles])


def original_text(report: StyleResults) -> str:
    """Return what the other styles are compared with, such as ``human text``."""
    return f"{style_name(report.config.original)} text"


def span(bounds: Interval | None, *, scale: float = 1.0, digits: int = 1) -> str:
    """Return the ends of an interval with a blank before, or nothing where there is none."""
    return "" if bounds is None else f" {interval(bounds, scale=scale, digits=digits)}"


def score_with(value: float, bounds: Interval | None, *, digits: int = 2) -> str:
    """Return a number with its interval, or alone where there is none."""
    return f"{number(value, digits=digits)}{span(bounds, digits=digits)}"


def leading_measure(measures: Sequence[str]) -> str:
    """Return NDCG at its largest cutoff."""
    cutoffs = {m: split_measure(m)[1] or 0 for m in measures if m.startswith("NDCG")}
    return max(cutoffs, key=cutoffs.__getitem__)


def significant(report: StyleResults, p_value: float | None) -> bool:
    """Return whether an adjusted p-value lies below the level; a test not made shows nothing."""
    return p_value is not None and p_value < alpha_of(report.config.confidence_level)


def original_row(report: StyleResults, system: StyleSystem) -> StyleRow:
    """Return the row of the original query style."""
    return next(r for r in system.rows if r.query_style == report.config.original_query)


def average_ranks(system: StyleSystem, row: StyleRow) -> tuple[float, ...]:
    """Return the average rank of each document style under one query style."""
    return tuple(map(float, system.average_ranks[system.rows.index(row)]))


def star_note(report: StyleResults) -> str:
    """Return what stars and intervals in tables of average ranks mean."""
    config, threshold = report.config, number(alpha_of(report.config.confidence_level), digits=2)
    if config.correction == "none":
        rule = f"p below {threshold}, not corrected"
    else:
        name = CORRECTIONS[config.correction]
        rule = f"adjusted p below {threshold} ({name} over the document styles of one query style)"
    return (
        f"Average ranks with {level(config.confidence_level)} intervals; 1 is most similar to the "
        f"query. * differs from {original_text(report)}: {rule}."
    )


def sides(report: StyleResults, row: StyleRow) -> tuple[str, ...]:
    """Return "baseline" for styles significantly above the original, "other" below, else ""."""
    found = {
        pair.first: "baseline" if pair.difference < 0 else "other"
        for pair in row.against_original
        if significant(report, pair.p_adjusted)
    }
    return tuple(found.get(style, "") for style in report.data.doc_styles)


# Findings: whether a system favours styles


def _listed(report: StyleResults, found: Sequence[str]) -> str:
    """Return the styles in the order of the data, so that equal findings read alike."""
    styles = [s for s in report.data.doc_styles if s in found]
    if len(styles) <= _LISTED:
        return style_list(styles)
    others = [s for s in report.data.doc_styles if s not in (*found, report.config.original)]
    return f"all styles but {style_list(others)}" if others else "every other style"


def predicate(report: StyleResults, found: StyleFinding) -> str:
    """Return the finding as the predicate of a sentence about one system."""
    apart, margin = f"{number(found.apart)} places", number(found.margin)
    match found.code:
        case StyleCode.TIED:
            return "gives all styles the same similarity for every query"
        case StyleCode.TOO_FEW:
            return (
                f"may rank styles apart or alike: with {_queries(found.n_queries)} nobody can "
                f"tell, at least {found.n_needed} are needed"
            )
        case StyleCode.ALIKE:
            return (
                f"ranks all styles alike within ±{margin} places (average ranks lie {apart} "
                f"apart, at most {number(found.apart_at_most)})"
            )
        case StyleCode.CANNOT_TELL:
            return (
                f"may rank styles apart or alike within ±{margin} places: average ranks lie "
                f"{apart} apart ({p_clause(found.p_value)}), and about "
                f"{count(found.n_needed or 0)} queries are needed to tell"
            )
    base = original_text(report)
    higher, lower = _listed(report, found.favoured), _listed(report, found.silenced)
    if higher and lower:
        return f"ranks {higher} above {base} and {lower} below it"
    if higher:
        return f"ranks {higher} above {base}"
    if lower:
        return f"ranks {lower} below {base}"
    return (
        f"ranks styles apart ({p_clause(found.p_value)}): {style_name(found.best)} is highest, "
        f"{style_name(found.worst)} lowest, {apart} below"
    )


def verdict_sentence(report: StyleResults, system: StyleSystem) -> str:
    """Return the whole finding of a system and what chance alone would give."""
    found, row = system.finding, original_row(report, system)
    text = predicate(report, found)
    if found.code is StyleCode.TIED:
        return f"{text}."
    return f"{text}{_distances(report, row, found)}. {chance_sentence(report, row)}"


def _distances(report: StyleResults, row: StyleRow, found: StyleFinding) -> str:
    """Return by how many places the named styles differ, the largest difference first."""
    styles = (*found.favoured, *found.silenced)
    parts = [
        f"{style_name(pair.first)} by {number(abs(pair.difference))}"
        f"{span(pair.interval, scale=math.copysign(1, pair.difference))}"
        for pair in sorted(row.against_original, key=lambda pair: -abs(pair.difference))
        if pair.first in styles
    ]
    if not parts:
        return ""
    how = f"correction over {len(row.against_original)} comparisons"
    return f", in places: {join(parts[:_NAMED])} ({CORRECTIONS[report.config.correction]} {how})"


def _queries(n: int) -> str:
    return counted(n, "query", "queries")


def chance_sentence(report: StyleResults, row: StyleRow) -> str:
    """Return the unfairness of a row beside what chance alone would give."""
    found = row.unfairness
    start = f"Unfairness {score_with(found.score, row.unfairness_interval)}"
    null = number(found.null_expectation, digits=2)
    queries = _queries(found.n_queries)
    if found.score <= found.null_expectation:
        return f"{start}: no more than the {null} that chance alone gives over {queries}."
    text = f"{start}; chance alone would give {null} over {queries}"
    if significant(report, row.friedman.p_value):
        return f"{text}."
    return f"{text}, and the rest may be chance too (Friedman {p_clause(row.friedman.p_value)})."


# The headline: no more certain than the findings


def headline(report: StyleResults) -> str:
    """Return what a reader in a hurry should take away."""
    if not report.systems:
        return "No system was measured."
    said = "; ".join(
        f"{shorten(s.name, _NAME)} {predicate(report, s.finding)}" for s in report.systems
    )
    return f"Over {_queries(report.data.n_queries)}, {said}."


# The first screen


def first(report: StyleResults) -> First:
    """Return the first screen: counts of queries, the verdict, and what to do next."""
    found = report.systems
    if not found:
        return First(answer="No system was measured.")
    favours = any(system.finding.code is StyleCode.FAVOURS for system in found)
    one = found[0] if len(found) == 1 else None
    rows = _rank_rows(report, one) if one else ()
    return First(
        answer=" ".join(_answer(report, system) for system in found),
        verdict=_plain_verdict(report, one) if one else "",
        standing=_STANDINGS.get(one.finding.code, "") if one else "",
        caption="Average place" if rows else "",
        rows=rows,
        next=next_step("Keep watching:", "rag-sourcebias monitor serve --help" * favours),
    )


_STANDINGS: dict[StyleCode, Standing] = {StyleCode.FAVOURS: "other", StyleCode.ALIKE: "even"}


def _answer(report: StyleResults, system: StyleSystem) -> str:
    """Say in how many queries one of the two styles of a verdict ranks above the other."""
    row, found = original_row(report, system), system.finding
    who = shorten(system.name, _NAME)
    if found.code is StyleCode.TIED:
        return f"{who} gives all styles the same place in every query."
    high, low = telling_styles(found, row, report.config.original)
    ranks = system.ranks[:, system.rows.index(row)]
    styles = report.data.doc_styles
    apart = ranks[:, styles.index(high)] - ranks[:, styles.index(low)]
    above, below = int((apart < 0).sum()), int((apart > 0).sum())
    if below > above:
        high, low, above = low, high, below
    names = [
        original_text(report) if style == report.config.original else style_name(style)
        for style in (high, low)
    ]
    return (
        f"In {count(above)} of {_queries(found.n_queries)}, {who} ranks {names[0]} above "
        f"{names[1]}."
    )


def _plain_verdict(report: StyleResults, system: StyleSystem) -> str:
    """Return the verdict of one system without a test or an interval."""
    found, who = system.finding, shorten(system.name, _NAME)
    match found.code:
        case StyleCode.TIED:
            return ""
        case StyleCode.ALIKE:
            return f"Verdict: {who} ranks all styles alike, within the margin of this audit."
        case StyleCode.FAVOURS:
            return f"Verdict: {who} {predicate(report, found)}, beyond chance."
    more = f"; about {roughly(found.n_needed)} are needed" if found.n_needed else ""
    queries = _queries(found.n_queries)
    return f"Cannot tell whether {who} ranks styles apart: {queries} are too few{more}."


def _rank_rows(report: StyleResults, system: StyleSystem) -> tuple[FirstRow, ...]:
    """Return the average place of the first and last styles and of the original."""
    row, found = original_row(report, system), system.finding
    if found.code is StyleCode.TIED:
        return ()
    styles = report.data.doc_styles
    means = average_ranks(system, row)
    ordered = sorted(zip(means, styles, row.average_ranks, strict=True), key=itemgetter(0))
    colours = dict.fromkeys(found.silenced, "baseline")
    colours |= dict.fromkeys(found.favoured, "other")
    rows = []
    for mean, style, ends in ordered:
        if style not in (ordered[0][1], report.config.original, ordered[-1][1]):
            continue
        bar = Bar.over(
            (ends.lower, mean, ends.upper) if ends else (mean, mean, mean),
            (1.0, float(len(styles))),
            side=colours.get(style, "even"),
            solid=style in colours,
        )
        rows.append(FirstRow(name=style_name(style), bar=bar, text=number(mean)))
    return tuple(rows)


# One sentence per system for each effect, so that no number must be found in a table


def matching_sentence(system: StyleSystem) -> str:
    """Say whether queries raise documents of their own style."""
    overall = system.matching[-1]
    word, sign = ("raises", 1) if overall.mean >= 0 else ("lowers", -1)
    text = (
        f"a query in the style of a document {word} it by {number(abs(overall.mean))} places"
        f"{span(overall.gain, scale=sign)} on average"
    )
    if overall.gain is not None and not overall.gain.excludes(0):
        return f"{text}, which may be chance."
    return f"{text}."


def length_sentence(report: StyleResults, system: StyleSystem) -> str:
    """Say what twice the length does to the rank."""
    slope = original_row(report, system).length_slope or 0.0
    shift = math.log(2) * slope
    told = f"(slope {number(slope, digits=2, signed=True)} per unit of ln words)"
    if round(shift, 2) == 0:
        return f"in these data length makes no difference to the rank {told}."
    return (
        f"in these data a version twice as long ranks {number(abs(shift), digits=2)} places "
        f"{'higher' if shift < 0 else 'lower'} on average {told}."
    )


def quality_sentence(report: StyleResults, system: StyleSystem) -> str:
    """Say which styles of a question cost quality."""
    base = report.config.original_query
    measure = leading_measure([q.measure for q in system.quality])
    rows = [q for q in system.quality if q.measure == measure]
    mean = next(q.mean for q in rows if q.query_style == base)
    start = (
        f"{measure} is {score(mean)} for {base} queries; asking in another style changes {measure}"
    )
    found = sorted(
        (
            q.change.estimate,
            f"{estimate(q.change, scale=100, signed=True)} in {style_name(q.query_style)}",
        )
        for q in rows
        if q.change is not None and significant(report, q.p_adjusted)
    )
    if not found:
        return f"{start} nowhere significantly."
    return f"{start} significantly by {_some([text for _, text in found], 'in ')}."


def index_sentence(report: StyleResults, system: StyleSystem) -> str:
    """Say which styles rank apart in one index."""
    measure = leading_measure([s.measure for s in system.index_scores])
    base = original_text(report)
    found = sorted(
        (
            -abs(s.relative_delta),
            f"{style_name(s.doc_style)} {delta(s.relative_delta)} {interval(s.interval)}",
        )
        for s in system.index_scores
        if s.measure == measure
        and s.relative_delta is not None
        and s.interval is not None
        and s.interval.excludes(0)
    )
    if not found:
        return f"by {measure} no style can be told apart from {base}."
    return (
        f"Relative Δ of {measure} against {base}, positive where {base} ranks higher: "
        f"{_some([text for _, text in found])}."
    )


def _some(texts: Sequence[str], more: str = "") -> str:
    rest = len(texts) - _NAMED
    if rest <= 0:
        return join(texts)
    return join([*texts[:_NAMED], f"{more}{rest} more"])


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
            _queries(data.n_queries),
            counted(len(data.doc_styles), "document style"),
            counted(len(data.query_styles), "query style"),
            counted(len(report.systems), "system"),
        ),
        created=report.created,
        warnings=report.warnings,
        sections=tuple(filter(None, sections)),
    )


def _findings(report: StyleResults) -> d.Section:
    rows = tuple((s.name, verdict_sentence(report, s)) for s in report.systems)
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
            legacy.grid(
                ("document style", *names),
                zip(styles, *cells, strict=True),
                "Average rank of each document style",
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
        rows = ((style_name(row.query_style), *_cells(report, system, row)) for row in system.rows)
        columns = ("query style", *map(style_name, styles))
        tables.append(d.Heading(text=d.Name(system.name)))
        tables.append(legacy.grid(columns, rows, f"{system.name}: average ranks"))
    return d.Section(
        id="matrix",
        nav="Query × document styles",
        title="Query style × document style",
        note="Average rank of each document style (columns) when the query is written in each "
        f"style (rows). * differs significantly from {original_text(report)} in the same row.",
        blocks=tuple(tables),
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
            legacy.grid(
                (
                    "system",
                    "query style",
                    "unfairness",
                    "by chance",
                    "minus chance",
                    "Kendall's W",
                    "Friedman p",
                ),
                rows,
                "Unfairness with intervals, chance and agreement of queries",
                n_heads=2,
            ),
        ),
    )


# What style does besides: effects, each with a sentence and a table


def _said(systems: Iterable[StyleSystem], sentence: Callable[[StyleSystem], str]) -> d.Listing:
    rows = tuple((system.name, sentence(system)) for system in systems)
    return legacy.listing(rows)


def _numbers(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str) -> d.Fold:
    heads = 3 if "measure" in columns else 2
    return d.Fold(
        summary="The numbers", blocks=(legacy.grid(columns, rows, caption, n_heads=heads),)
    )


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


def _text_tables(kind: str, named: Sequence[TextStatistic], original: str) -> Iterator[d.Block]:
    if named:
        frame = text_frame(named, original=original, head="style")
        yield d.Table(frame=frame, caption=f"{kind} by style: means with intervals")
    if notes := tuple(legacy.note_rows(text_notes(named))):
        yield d.Listing(rows=notes)


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
    systems = [(s.name, settings(s.settings)) for s in report.systems]
    tables = (
        ("Data", "data", about),
        ("Audit", "setting", audit),
        ("Systems", "system", systems),
    )
    return legacy.data(tables, report.environment, report.created)


def evidence_section(report: StyleResults) -> d.Section | None:
    """Return the queries behind each verdict."""
    return case_section(
        ((system.name, _cases(system)) for system in report.systems if system.evidence),
        title="The queries behind it",
        lead="The two styles of the verdict in the queries in which they lie furthest apart, and "
        "in some that point the other way. Words that the other version lacks are marked.",
    )


def _cases(system: StyleSystem) -> Iterator[d.Block]:
    first, second = system.evidence[0].first, system.evidence[0].second
    high, low = style_name(first.label), style_name(second.label)
    words = CaseWords(
        noun="query",
        adds="places apart",
        sides=(high, low),
        got="place",
        write=number,
        add=lambda value: number(value, signed=True),
    )
    caption = f"Queries in which {system.name} ranks {high} and {low} furthest apart"
    return case_blocks(system.evidence, words, caption=caption)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StyleReport(Report, StyleResults):
    """The result of a style audit, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        styles = {"query_style": self.data.query_styles, "doc_style": self.data.doc_styles}
        return legacy.frames(
            self,
            self.page(),
            queries=(
                row
                for system in self.systems
                for row in legacy.values(
                    system.ranks, {"query_id": system.query_ids, **styles}, system=system.name
                )
            ),
            cases=(
                row
                for system in self.systems
                for row in legacy.cases(system.evidence, system=system.name)
            ),
        )

    def _outcomes(self) -> Iterator[Outcome]:
        for system in self.systems:
            found = system.finding
            row = original_row(self, system)
            favours = found.code is StyleCode.FAVOURS
            yield Outcome(
                system.name,
                found.code.value,
                "unfairness",
                row.unfairness_interval,
                row.unfairness.score,
                digits=2,
                words=f"favours style {found.best}" if favours else "",
            )
