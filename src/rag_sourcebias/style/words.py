"""Names, findings and sentences of the report on writing styles.

What is shown more than once is computed here once, so that outputs cannot disagree.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rag_sourcebias.core.finding import (
    CORRECTIONS,
    Interval,
    data_argument,
    number,
    shorten,
    split_measure,
)
from rag_sourcebias.report.document import Bar, First, FirstRow, Standing
from rag_sourcebias.report.legacy import (
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
)
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


def alpha(report: StyleResults) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def significant(report: StyleResults, p_value: float | None) -> bool:
    """Return whether an adjusted p-value lies below the level; a test not made shows nothing."""
    return p_value is not None and p_value < alpha(report)


def original_row(report: StyleResults, system: StyleSystem) -> StyleRow:
    """Return the row of the original query style."""
    return next(r for r in system.rows if r.query_style == report.config.original_query)


def average_ranks(system: StyleSystem, row: StyleRow) -> tuple[float, ...]:
    """Return the average rank of each document style under one query style."""
    return tuple(map(float, system.average_ranks[system.rows.index(row)]))


def star_note(report: StyleResults) -> str:
    """Return what stars and intervals in tables of average ranks mean."""
    config, threshold = report.config, number(alpha(report), digits=2)
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


class Verdict(NamedTuple):
    """What can be said about one system, with the row of the original query style."""

    system: StyleSystem
    row: StyleRow
    found: StyleFinding


def verdicts(report: StyleResults) -> tuple[Verdict, ...]:
    """Return one verdict per system, in the order of the report."""
    return tuple(Verdict(s, original_row(report, s), s.finding) for s in report.systems)


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


def verdict_sentence(report: StyleResults, verdict: Verdict) -> str:
    """Return the whole finding of a system and what chance alone would give."""
    text = predicate(report, verdict.found)
    if verdict.found.code is StyleCode.TIED:
        return f"{text}."
    distances = _distances(report, verdict.row, verdict.found)
    return f"{text}{distances}. {chance_sentence(report, verdict.row)}"


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
    found = verdicts(report)
    if not found:
        return "No system was measured."
    said = "; ".join(f"{shorten(v.system.name, _NAME)} {predicate(report, v.found)}" for v in found)
    return f"Over {_queries(report.data.n_queries)}, {said}."


# The first screen


def first(report: StyleResults) -> First:
    """Return the first screen: counts of queries, the verdict, and what to do next."""
    found = verdicts(report)
    if not found:
        return First(answer="No system was measured.")
    favours = any(v.found.code is StyleCode.FAVOURS for v in found)
    one = found[0] if len(found) == 1 else None
    rows = _rank_rows(report, one) if one else ()
    again = f"rag-sourcebias audit style {data_argument(report.data.name)}"
    return First(
        answer=" ".join(_answer(report, verdict) for verdict in found),
        verdict=_plain_verdict(report, one) if one else "",
        standing=_STANDINGS.get(one.found.code, "") if one else "",
        caption="Average place" if rows else "",
        rows=rows,
        next=next_step("Keep watching:", "rag-sourcebias monitor serve retrievals.db")
        if favours
        else next_step("With more queries:", again),
    )


_STANDINGS: dict[StyleCode, Standing] = {StyleCode.FAVOURS: "other", StyleCode.ALIKE: "even"}


def _answer(report: StyleResults, verdict: Verdict) -> str:
    """Say in how many queries one of the two styles of a verdict ranks above the other."""
    system, row, found = verdict
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


def _plain_verdict(report: StyleResults, verdict: Verdict) -> str:
    """Return the verdict of one system without a test or an interval."""
    found, who = verdict.found, shorten(verdict.system.name, _NAME)
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


def _rank_rows(report: StyleResults, verdict: Verdict) -> tuple[FirstRow, ...]:
    """Return the average place of the first and last styles and of the original."""
    if verdict.found.code is StyleCode.TIED:
        return ()
    styles = report.data.doc_styles
    means = dict(zip(styles, average_ranks(verdict.system, verdict.row), strict=True))
    bounds = dict(zip(styles, verdict.row.average_ranks, strict=True))
    ordered = sorted(styles, key=means.__getitem__)
    colours = dict.fromkeys(verdict.found.silenced, "baseline")
    colours |= dict.fromkeys(verdict.found.favoured, "other")
    rows = []
    for style in ordered:
        if style not in (ordered[0], report.config.original, ordered[-1]):
            continue
        mean, ends = means[style], bounds[style]
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
        (q.change.estimate, f"{_change(q.change)} in {style_name(q.query_style)}")
        for q in rows
        if q.change is not None and significant(report, q.p_adjusted)
    )
    if not found:
        return f"{start} nowhere significantly."
    return f"{start} significantly by {_some([text for _, text in found], 'in ')}."


def _change(found: Interval) -> str:
    return estimate(found, scale=100, signed=True)


def index_sentence(report: StyleResults, system: StyleSystem) -> str:
    """Say which styles rank apart in one index."""
    measure = leading_measure([s.measure for s in system.index_scores])
    base = original_text(report)
    found = sorted(
        (
            -abs(s.relative_delta),
            f"{style_name(s.doc_style)} {_delta(s.relative_delta, s.interval)}",
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


def _delta(value: float, bounds: Interval) -> str:
    return f"{delta(value)} {interval(bounds)}"


def _some(texts: Sequence[str], more: str = "") -> str:
    rest = len(texts) - _NAMED
    if rest <= 0:
        return join(texts)
    return join([*texts[:_NAMED], f"{more}{rest} more"])
