"""Names, findings and sentences of the report on writing styles.

What is shown more than once is computed here once, so that outputs cannot disagree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.inference.friedman import friedman_test
from rag_sourcebias.inference.style_finding import style_finding
from rag_sourcebias.report.format import (
    CORRECTIONS,
    count,
    delta,
    interval,
    join,
    number,
    p_clause,
    score,
    shorten,
    split_measure,
)
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import StyleCode, StyleFinding
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = [
    "Compared",
    "Verdict",
    "alpha",
    "average_ranks",
    "capital",
    "chance_sentence",
    "compared",
    "counted",
    "headline",
    "index_sentence",
    "leading_measure",
    "length_sentence",
    "matching_sentence",
    "original_of",
    "original_row",
    "original_text",
    "predicate",
    "quality_sentence",
    "score_with",
    "short",
    "sides",
    "span",
    "style_list",
    "style_name",
    "verdict_sentence",
    "verdicts",
]

_LONGEST = 60  # characters of a style's name
_NAME = 48  # of a system's name in the headline
_SYSTEMS = 3  # that the headline names one by one
_LISTED = 6  # styles that are named
_EXCEPTED = 2  # styles that are named as the only exceptions
_NAMED = 5  # styles of which the difference is written out


# Names and numbers


def style_name(style: str) -> str:
    """Return ``style 3`` for a number (the styles of [W] are numbered), other names as they are."""
    return f"style {style}" if style.isdigit() else shorten(style or "unnamed", _LONGEST)


def style_list(styles: Sequence[str]) -> str:
    """Return ``styles 3, 6 and 7`` or ``formal and style 3`` for one style or more."""
    if len(styles) > 1 and all(s.isdigit() for s in styles):
        return f"styles {join(list(styles))}"
    return join([style_name(s) for s in styles])


def original_text(report: StyleReport) -> str:
    """Return what the other styles are compared with, such as ``human text``."""
    return f"{style_name(report.config.original)} text"


def counted(n: int, one: str, many: str) -> str:
    """Return ``1 query`` or ``60 queries``."""
    return f"{count(n)} {one if n == 1 else many}"


def capital(text: str) -> str:
    """Return a text with its first letter as a sentence begins."""
    return text[:1].upper() + text[1:]


def span(bounds: Interval | None, *, scale: float = 1.0, digits: int = 1) -> str:
    """Return the ends of an interval with a blank before, or nothing where there is none."""
    if bounds is None:
        return ""
    low, high = sorted((scale * bounds.lower, scale * bounds.upper))
    return f" [{number(low, digits=digits)}, {number(high, digits=digits)}]"


def score_with(value: float, bounds: Interval | None, *, digits: int = 2) -> str:
    """Return a number with its interval, or alone where there is none."""
    return f"{number(value, digits=digits)}{span(bounds, digits=digits)}"


def leading_measure(measures: Sequence[str]) -> str:
    """Return NDCG at its largest cutoff, or the first measure at its largest."""
    names = [split_measure(m)[0] for m in measures]
    name = "NDCG" if "NDCG" in names else names[0]
    chosen = [m for m in measures if split_measure(m)[0] == name]
    return max(chosen, key=lambda m: split_measure(m)[1] or 0)


def alpha(report: StyleReport) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def original_of(report: StyleReport) -> str | None:
    """Return the document style that others are compared with, None where it is not in the data."""
    original = report.config.original
    return original if original in report.data.doc_styles else None


def original_row(report: StyleReport, system: StyleSystem) -> StyleRow | None:
    """Return the row of the original query style; the first where there is none of that name."""
    for row in system.rows:
        if row.query_style == report.config.original_query:
            return row
    return system.rows[0] if system.rows else None


def average_ranks(system: StyleSystem, row: StyleRow) -> tuple[float, ...]:
    """Return the average rank of each document style under one query style."""
    return tuple(map(float, system.average_ranks[system.rows.index(row)]))


@dataclass(frozen=True, slots=True)
class Compared:
    """One document style against the original under one query style.

    Parameters
    ----------
    difference : float
        Average rank minus that of the original: negative when the style ranks above it.
    ends : tuple of float or None
        None where there is no interval.
    """

    style: str
    difference: float
    ends: tuple[float, float] | None
    significant: bool


def compared(report: StyleReport, row: StyleRow) -> dict[str, Compared]:
    """Return each document style against the original, whichever of the two is named first."""
    found = {}
    for pair in row.against_original:
        ends = None if pair.interval is None else (pair.interval.lower, pair.interval.upper)
        style, difference = pair.first, pair.difference
        if style == report.config.original:
            style, difference = pair.second, -difference
            ends = ends and (-ends[1], -ends[0])
        found[style] = Compared(style, difference, ends, pair.p_adjusted < alpha(report))
    return found


def sides(report: StyleReport, row: StyleRow) -> tuple[str, ...]:
    """Return "baseline" for styles significantly above the original, "other" below, else ""."""
    against = compared(report, row)
    found = (against.get(style) for style in report.data.doc_styles)
    return tuple(
        "" if c is None or not c.significant else "baseline" if c.difference < 0 else "other"
        for c in found
    )


# Findings: whether a system favours styles


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said about one system; ``row`` and ``found`` are None where it has no row."""

    system: StyleSystem
    row: StyleRow | None
    found: StyleFinding | None


def verdicts(report: StyleReport) -> tuple[Verdict, ...]:
    """Return one verdict per system, in the order of the report."""
    made = []
    for system in report.systems:
        row = original_row(report, system)
        # A report of version 0.1 has ranks but no finding.
        found = None if row is None else system.finding or _decided(report, system, row)
        made.append(Verdict(system, row, found))
    return tuple(made)


def _decided(report: StyleReport, system: StyleSystem, row: StyleRow) -> StyleFinding:
    ranks, config = system.ranks[:, system.rows.index(row)], report.config
    return style_finding(
        ranks,
        report.data.doc_styles,
        test=friedman_test(ranks) if config.ties == "average" else row.friedman,
        against_original=row.against_original,
        margin=config.margin,
        confidence_level=config.confidence_level,
        rng=config.seed,
    )


def short(report: StyleReport, found: StyleFinding | None) -> str:
    """Return the verdict in a few words."""
    if found is None:
        return "nothing was measured"
    if found.code is StyleCode.FAVOURS:
        parts = [
            f"ranks {_listed(report, styles)} {where}"
            for styles, where in ((found.favoured, "higher"), (found.silenced, "lower"))
            if styles
        ]
        return ", ".join(parts) or "ranks styles apart"
    return {
        StyleCode.ALIKE: f"alike within ±{number(found.margin)} places",
        StyleCode.CANNOT_TELL: "cannot tell",
        StyleCode.TOO_FEW: "too few queries to tell",
        StyleCode.TIED: "ties all styles",
    }[found.code]


def _listed(report: StyleReport, found: Sequence[str]) -> str:
    """Return the styles in the order of the data, so that equal findings read alike."""
    styles = [s for s in report.data.doc_styles if s in found]
    others = [s for s in report.data.doc_styles if s not in found and s != report.config.original]
    if len(styles) <= _LISTED:
        return style_list(styles)
    if not others:
        return "every other style"
    if len(others) <= _EXCEPTED:
        return f"all styles but {style_list(others)}"
    return f"{len(styles)} styles"


def predicate(report: StyleReport, found: StyleFinding | None) -> str:
    """Return the finding as the predicate of a sentence about one system."""
    if found is None:
        return "has no measured query style"
    apart = f"{number(found.apart)} places"
    if found.code is StyleCode.TIED:
        return "gives all styles the same similarity for every query"
    if found.code is StyleCode.TOO_FEW:
        are = "is" if found.n_queries == 1 else "are"
        return (
            f"may rank styles apart or alike: {_queries(found.n_queries)} {are} too few to tell, "
            f"at least {found.n_needed} are needed"
        )
    if found.code is StyleCode.ALIKE:
        return (
            f"ranks all styles alike within ±{number(found.margin)} places (average ranks lie "
            f"{apart} apart, at most {number(found.apart_at_most)})"
        )
    if found.code is StyleCode.CANNOT_TELL:
        return (
            f"may rank styles apart or alike within ±{number(found.margin)} places: average ranks "
            f"lie {apart} apart ({p_clause(found.p_value)}), and about "
            f"{count(found.n_needed or 0)} queries are needed to tell"
        )
    base = original_text(report)
    parts: list[str] = []
    for styles, where in ((found.favoured, "above"), (found.silenced, "below")):
        if styles:
            parts.append(f"{_listed(report, styles)} {where} {'it' if parts else base}")
    if parts:
        return f"ranks {' and '.join(parts)}"
    return (
        f"ranks styles apart ({p_clause(found.p_value)}): {style_name(found.best)} is highest, "
        f"{style_name(found.worst)} lowest, {apart} below"
    )


def verdict_sentence(report: StyleReport, verdict: Verdict) -> str:
    """Return the whole finding of a system, with its name and what chance alone would give."""
    found, row = verdict.found, verdict.row
    text = f"{verdict.system.name} {predicate(report, found)}"
    if found is None or row is None or found.code is StyleCode.TIED:
        return f"{text}."
    return f"{text}{_distances(report, row, found)}. {chance_sentence(report, row)}"


def _distances(report: StyleReport, row: StyleRow, found: StyleFinding) -> str:
    """Return by how many places the named styles differ, the largest difference first."""
    against = compared(report, row)
    named = [against[s] for s in (*found.favoured, *found.silenced) if s in against]
    if not named:
        return ""
    parts = []
    for c in sorted(named, key=lambda c: -abs(c.difference))[:_NAMED]:
        low, high = sorted(math.copysign(1, c.difference) * end for end in c.ends or (0.0, 0.0))
        ends = f" [{number(low)}, {number(high)}]" if c.ends else ""
        parts.append(f"{style_name(c.style)} by {number(abs(c.difference))}{ends}")
    correction, tests = report.config.correction, f"{len(row.against_original)} comparisons"
    how = (
        f"not corrected for {tests}"
        if correction == "none"
        else f"{CORRECTIONS[correction]} correction over {tests}"
    )
    return f", in places: {join(parts)} ({how})"


def _queries(n: int) -> str:
    return counted(n, "query", "queries")


def chance_sentence(report: StyleReport, row: StyleRow) -> str:
    """Return the unfairness of a row beside what chance alone would give."""
    found = row.unfairness
    null, queries = number(found.null_expectation, digits=2), _queries(found.n_queries)
    start = f"Unfairness {score_with(found.score, row.unfairness_interval)}"
    if found.score <= found.null_expectation:
        return f"{start}: no more than the {null} that chance alone gives over {queries}."
    part = number(100 * found.null_expectation / found.score, digits=0)
    text = f"{start}; chance alone would give {null} over {queries} ({part}% of that)"
    if row.friedman.p_value >= alpha(report):
        text += f", and the rest may be chance too (Friedman {p_clause(row.friedman.p_value)})"
    return f"{text}."


# The headline: no more certain than the findings


def headline(report: StyleReport) -> str:
    """Return what a reader in a hurry should take away."""
    found, style = verdicts(report), report.config.original_query
    if not any(v.row for v in found):
        return "No system was measured."
    start = f"Over {_queries(report.data.n_queries)}"
    if len(report.data.query_styles) > 1 and style in report.data.query_styles:
        start += " in their original wording" if style == "original" else f" in {style_name(style)}"
    if len(found) > _SYSTEMS:
        return f"{start}, {_tally(report, found)}. {_range(found)}"
    clauses = "; ".join(
        f"{shorten(v.system.name, _NAME)} {predicate(report, v.found)}" for v in found
    )
    if len(found) > 1:
        return f"{start}, {clauses}. {_range(found)}"
    (only,) = found
    if only.row is None or only.found is None or only.found.code is StyleCode.TIED:
        return f"{start}, {clauses}."
    return f"{start}, {clauses}. {chance_sentence(report, only.row)}"


def _tally(report: StyleReport, found: Sequence[Verdict]) -> str:
    """Say of each style how many systems rank it above or below the original."""
    total, base, parts = len(found), original_text(report), []
    findings = [v.found for v in found if v.found is not None]
    above = Counter(style for f in findings for style in f.favoured)
    below = Counter(style for f in findings for style in f.silenced)
    for counts, where in ((above, "above"), (below, "below")):
        by_number: dict[int, list[str]] = {}
        for style in report.data.doc_styles:
            if counts[style]:
                by_number.setdefault(counts[style], []).append(style)
        named = [
            f"{style_list(styles)} by {'all' if n == total else n}"
            for n, styles in sorted(by_number.items(), reverse=True)[:_SYSTEMS]
        ]
        if named:
            parts.append(f"{where} {base}: {', '.join(named)}")
    if not parts:
        return f"none of {total} systems ranks a style significantly above or below {base}"
    return f"{total} systems rank styles significantly {'; '.join(parts)}"


def _range(found: Sequence[Verdict]) -> str:
    """Compare unfairness under the original query style, with what chance alone gives."""
    known = sorted(
        ((v.row, v.system.name) for v in found if v.row is not None),
        key=lambda pair: pair[0].unfairness.score,
    )
    texts = [
        f"{score_with(row.unfairness.score, row.unfairness_interval)} for {shorten(name, _NAME)}"
        for row, name in (known if len(known) <= _SYSTEMS else (known[0], known[-1]))
    ]
    said = join(texts) if len(known) <= _SYSTEMS else f"from {texts[0]} to {texts[-1]}"
    nulls = [row.unfairness.null_expectation for row, _ in known]
    chance = " to ".join(dict.fromkeys(number(n, digits=2) for n in (min(nulls), max(nulls))))
    return f"Unfairness is {said}; chance alone would give {chance}."


# One sentence per system for each effect, so that no number must be found in a picture


def matching_sentence(system: StyleSystem) -> str:
    """Say whether queries raise documents of their own style; nothing where it is not known."""
    overall = next((g for g in system.matching if not g.style), None)
    if overall is None:
        return ""
    way, sign = ("raises", 1) if overall.mean >= 0 else ("lowers", -1)
    text = (
        f"a query in the style of a document {way} it by {number(abs(overall.mean))} places"
        f"{span(overall.gain, scale=sign)} on average"
    )
    if overall.gain is not None and not overall.gain.excludes(0):
        text += ", which may be chance"
    each = [g for g in system.matching if g.style]
    if len(each) > 1:
        most = max(each, key=lambda g: g.mean)
        gained = f"{number(most.mean, signed=True)}{span(most.gain)}"
        text += f"; most in {style_name(most.style)}: {gained}"
    return f"{text}."


def length_sentence(report: StyleReport, system: StyleSystem) -> str:
    """Say what twice the length does to the rank; nothing where it is not known."""
    row = original_row(report, system)
    if row is None or row.length_slope is None:
        return ""
    shift = math.log(2) * row.length_slope
    slope = f"(slope {number(row.length_slope, digits=2, signed=True)} per unit of ln words)"
    if round(shift, 2) == 0:
        return f"in these data length makes no difference to the rank {slope}."
    way = "higher" if shift < 0 else "lower"
    return (
        f"in these data a version twice as long ranks {number(abs(shift), digits=2)} places {way} "
        f"on average {slope}."
    )


def quality_sentence(report: StyleReport, system: StyleSystem) -> str:
    """Say which styles of a question cost quality; nothing where no style changed anything."""
    changed = [(q, q.change) for q in system.quality if q.change is not None]
    if not changed:
        return ""
    measure, base = leading_measure([q.measure for q, _ in changed]), report.config.original_query
    means = [q.mean for q in system.quality if (q.query_style, q.measure) == (base, measure)]
    start = f"{measure} is {score(means[0])} for {base} queries; " if means else ""
    found = [
        (change.estimate, f"{interval(change, scale=100)} in {style_name(q.query_style)}")
        for q, change in changed
        if q.measure == measure and q.p_adjusted is not None and q.p_adjusted < alpha(report)
    ]
    if not found:
        return f"{start}asking in another style changes {measure} nowhere significantly."
    found.sort(key=lambda pair: pair[0])
    named = [f"{number(100 * value, signed=True)} {where}" for value, where in found[:_NAMED]]
    if len(found) > _NAMED:
        named.append(f"in {len(found) - _NAMED} more")
    return f"{start}asking in another style changes {measure} significantly by {join(named)}."


def index_sentence(report: StyleReport, system: StyleSystem) -> str:
    """Say which styles rank apart in one index; nothing where no two were compared."""
    known = [s for s in system.index_scores if s.relative_delta is not None]
    if not known:
        return ""
    measure, base = leading_measure([s.measure for s in known]), original_text(report)
    found = [
        s
        for s in known
        if s.measure == measure and s.interval is not None and s.interval.excludes(0)
    ]
    if not found:
        return f"by {measure} no style can be told apart from {base}."
    found.sort(key=lambda s: -abs(s.relative_delta or 0.0))
    named = [
        f"{style_name(s.doc_style)} {delta(s.relative_delta)} {interval(s.interval)}"
        for s in found[:_NAMED]
    ]
    if len(found) > _NAMED:
        named.append(f"{len(found) - _NAMED} more")
    return (
        f"Relative Δ of {measure} against {base}, positive where {base} ranks higher: "
        f"{join(named)}."
    )
