"""Names, findings and sentences of the report on writing styles.

What is shown more than once is computed here once, so that outputs cannot disagree.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rag_sourcebias.core.values import Interval
from rag_sourcebias.report.blocks import (
    CORRECTIONS,
    Bar,
    First,
    FirstRow,
    count,
    counted,
    data_argument,
    delta,
    estimate,
    interval,
    join,
    level,
    number,
    opened,
    p_clause,
    roughly,
    score,
    shorten,
    split_measure,
)
from rag_sourcebias.stats.comparisons import friedman_test
from rag_sourcebias.style.data import (
    StyleCode,
    StyleFinding,
    StyleReport,
    StyleRow,
    StyleSystem,
    telling_styles,
)
from rag_sourcebias.style.measure import style_finding

_LONGEST = 60  # characters of a style's name
_NAME = 48  # of a system's name in the headline
_SYSTEMS = 3  # that the headline names one by one
_LISTED = 6  # styles that are named
_FIRST_ROWS = 6  # systems of a first screen
_EXCEPTED = 2  # styles that are named as the only exceptions
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


def original_text(report: StyleReport) -> str:
    """Return what the other styles are compared with, such as ``human text``."""
    return f"{style_name(report.config.original)} text"


def span(bounds: Interval | None, *, scale: float = 1.0, digits: int = 1) -> str:
    """Return the ends of an interval with a blank before, or nothing where there is none."""
    return "" if bounds is None else f" {interval(bounds, scale=scale, digits=digits)}"


def score_with(value: float, bounds: Interval | None, *, digits: int = 2) -> str:
    """Return a number with its interval, or alone where there is none."""
    return f"{number(value, digits=digits)}{span(bounds, digits=digits)}"


def leading_measure(measures: Sequence[str]) -> str:
    """Return NDCG at its largest cutoff, or the first measure at its largest."""
    split = [(*split_measure(m), m) for m in measures]
    leading = "NDCG" if any(name == "NDCG" for name, _, _ in split) else split[0][0]
    return max((cutoff or 0, m) for name, cutoff, m in split if name == leading)[1]


def alpha(report: StyleReport) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def significant(report: StyleReport, p_value: float | None) -> bool:
    """Return whether an adjusted p-value lies below the level; a test not made shows nothing."""
    return p_value is not None and p_value < alpha(report)


def original_row(report: StyleReport, system: StyleSystem) -> StyleRow:
    """Return the row of the original query style."""
    return next(r for r in system.rows if r.query_style == report.config.original_query)


def average_ranks(system: StyleSystem, row: StyleRow) -> tuple[float, ...]:
    """Return the average rank of each document style under one query style."""
    return tuple(map(float, system.average_ranks[system.rows.index(row)]))


def marked_names(report: StyleReport) -> list[str]:
    """Return the names of the document styles, the original marked as such."""
    return [
        style_name(s) + " (original)" * (s == report.config.original)
        for s in report.data.doc_styles
    ]


def star_note(report: StyleReport, *, intervals: bool = True) -> str:
    """Return what stars and intervals in tables of average ranks mean."""
    config, threshold = report.config, number(alpha(report), digits=2)
    bounds = f" with {level(config.confidence_level)} intervals" if intervals else ""
    rule = (
        f"p below {threshold}, not corrected"
        if config.correction == "none"
        else f"adjusted p below {threshold} ({CORRECTIONS[config.correction]} over the document "
        "styles of one query style)"
    )
    return (
        f"Average ranks{bounds}; 1 is most similar to the query. * differs from "
        f"{original_text(report)}: {rule}."
    )


def sides(report: StyleReport, row: StyleRow) -> tuple[str, ...]:
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


def verdicts(report: StyleReport) -> tuple[Verdict, ...]:
    """Return one verdict per system, in the order of the report."""
    rows = [(system, original_row(report, system)) for system in report.systems]
    return tuple(Verdict(s, row, s.finding or decided(report, s, row)) for s, row in rows)


def decided(report: StyleReport, system: StyleSystem, row: StyleRow) -> StyleFinding:
    """Return what the ranks of a system say; a report of version 0.1 holds no finding."""
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


def short(report: StyleReport, found: StyleFinding) -> str:
    """Return the verdict in a few words."""
    higher, lower = _listed(report, found.favoured), _listed(report, found.silenced)
    parts = [f"ranks {higher} higher"] * bool(higher) + [f"ranks {lower} lower"] * bool(lower)
    return {
        StyleCode.FAVOURS: ", ".join(parts) or "ranks styles apart",
        StyleCode.ALIKE: f"alike within ±{number(found.margin)} places",
        StyleCode.CANNOT_TELL: "cannot tell",
        StyleCode.TOO_FEW: "too few queries to tell",
        StyleCode.TIED: "ties all styles",
    }[found.code]


def _listed(report: StyleReport, found: Sequence[str]) -> str:
    """Return the styles in the order of the data, so that equal findings read alike."""
    styles = [s for s in report.data.doc_styles if s in found]
    if len(styles) <= _LISTED:
        return style_list(styles)
    others = [s for s in report.data.doc_styles if s not in (*found, report.config.original)]
    if not others:
        return "every other style"
    return (
        f"all styles but {style_list(others)}"
        if len(others) <= _EXCEPTED
        else f"{len(styles)} styles"
    )


def predicate(report: StyleReport, found: StyleFinding) -> str:
    """Return the finding as the predicate of a sentence about one system."""
    apart, margin = f"{number(found.apart)} places", number(found.margin)
    match found.code:
        case StyleCode.TIED:
            return "gives all styles the same similarity for every query"
        case StyleCode.TOO_FEW:
            return (
                f"may rank styles apart or alike: {_queries(found.n_queries)} "
                f"{'is' if found.n_queries == 1 else 'are'} too few to tell, at least "
                f"{found.n_needed} are needed"
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
    told, base = ((found.favoured, "above"), (found.silenced, "below")), original_text(report)
    parts = [f"{_listed(report, styles)} {where}" for styles, where in told if styles]
    if parts:
        return " and ".join([f"ranks {parts[0]} {base}", *(f"{part} it" for part in parts[1:])])
    return (
        f"ranks styles apart ({p_clause(found.p_value)}): {style_name(found.best)} is highest, "
        f"{style_name(found.worst)} lowest, {apart} below"
    )


def verdict_sentence(report: StyleReport, verdict: Verdict) -> str:
    """Return the whole finding of a system, with its name and what chance alone would give."""
    system, row, found = verdict
    text = f"{system.name} {predicate(report, found)}"
    if found.code is StyleCode.TIED:
        return f"{text}."
    return f"{text}{_distances(report, row, found)}. {chance_sentence(report, row)}"


def _distances(report: StyleReport, row: StyleRow, found: StyleFinding) -> str:
    """Return by how many places the named styles differ, the largest difference first."""
    styles, tests = (*found.favoured, *found.silenced), len(row.against_original)
    parts = [
        f"{style_name(pair.first)} by {number(abs(pair.difference))}"
        f"{span(pair.interval, scale=math.copysign(1, pair.difference))}"
        for pair in sorted(row.against_original, key=lambda pair: -abs(pair.difference))
        if pair.first in styles
    ]
    if not parts:
        return ""
    correction = report.config.correction
    how = (
        f"not corrected for {tests} comparisons"
        if correction == "none"
        else f"{CORRECTIONS[correction]} correction over {tests} comparisons"
    )
    return f", in places: {join(parts[:_NAMED])} ({how})"


def _queries(n: int) -> str:
    return counted(n, "query", "queries")


def chance_sentence(report: StyleReport, row: StyleRow) -> str:
    """Return the unfairness of a row beside what chance alone would give."""
    found, p_value, queries = (
        row.unfairness,
        row.friedman.p_value,
        _queries(row.unfairness.n_queries),
    )
    start = f"Unfairness {score_with(found.score, row.unfairness_interval)}"
    null = number(found.null_expectation, digits=2)
    if found.score <= found.null_expectation:
        return f"{start}: no more than the {null} that chance alone gives over {queries}."
    rest = f", and the rest may be chance too (Friedman {p_clause(p_value)})"
    return (
        f"{start}; chance alone would give {null} over {queries} "
        f"({number(100 * found.null_expectation / found.score, digits=0)}% of that)"
        f"{'' if significant(report, p_value) else rest}."
    )


# The headline: no more certain than the findings


def headline(report: StyleReport) -> str:
    """Return what a reader in a hurry should take away."""
    found, style = verdicts(report), report.config.original_query
    if not found:
        return "No system was measured."
    start = f"Over {_queries(report.data.n_queries)}"
    if len(report.data.query_styles) > 1:
        start += " in their original wording" if style == "original" else f" in {style_name(style)}"
    if len(found) > _SYSTEMS:
        return f"{start}, {_tally(report, found)}. {_range(found)}"
    said = "; ".join(f"{shorten(v.system.name, _NAME)} {predicate(report, v.found)}" for v in found)
    if len(found) > 1:
        return f"{start}, {said}. {_range(found)}"
    tied = found[0].found.code is StyleCode.TIED
    return f"{start}, {said}.{'' if tied else f' {chance_sentence(report, found[0].row)}'}"


def _tally(report: StyleReport, found: Sequence[Verdict]) -> str:
    """Say of each style how many systems rank it above or below the original."""
    total, base, parts = len(found), original_text(report), []
    for where, sides_ in (
        ("above", [v.found.favoured for v in found]),
        ("below", [v.found.silenced for v in found]),
    ):
        counts = Counter(style for styles in sides_ for style in styles)
        named = [
            f"{style_list([s for s in report.data.doc_styles if counts[s] == n])} by "
            f"{'all' if n == total else n}"
            for n in sorted(set(counts.values()), reverse=True)[:_SYSTEMS]
        ]
        parts += [f"{where} {base}: {', '.join(named)}"] * bool(named)
    if not parts:
        return f"none of {total} systems ranks a style significantly above or below {base}"
    return f"{total} systems rank styles significantly {'; '.join(parts)}"


def _range(found: Sequence[Verdict]) -> str:
    """Compare unfairness under the original query style, with what chance alone gives."""
    known = sorted(found, key=lambda v: v.row.unfairness.score)
    many = len(known) > _SYSTEMS
    texts = [
        f"{score_with(v.row.unfairness.score, v.row.unfairness_interval)} for "
        f"{shorten(v.system.name, _NAME)}"
        for v in (known[:: len(known) - 1] if many else known)
    ]
    said = f"from {texts[0]} to {texts[-1]}" if many else join(texts)
    nulls = [v.row.unfairness.null_expectation for v in found]
    chance = " to ".join(dict.fromkeys(number(n, digits=2) for n in (min(nulls), max(nulls))))
    return f"Unfairness is {said}; chance alone would give {chance}."


# The first screen


def first(report: StyleReport) -> First:
    """Return the first screen: counts of queries, the verdict, and what to do next."""
    found = verdicts(report)
    if not found:
        return First(answer="No system was measured.")
    one = len(found) == 1
    rows = _rank_rows(report, found[0]) if one else _system_rows(report, found)
    favours = any(v.found.code is StyleCode.FAVOURS for v in found)
    return First(
        answer=_answer(report, found[0]) if one else _plain_tally(found),
        verdict=_plain_verdict(report, found[0]) if one else "",
        standing={StyleCode.FAVOURS: "other", StyleCode.ALIKE: "even"}.get(found[0].found.code, "")
        if one
        else "",
        caption=(
            "Average place"
            if one
            else f"Queries in which a style ranks above {original_text(report)}"
        )
        if rows
        else "",
        rows=rows,
        why="Keep watching:" if favours else "With more queries:",
        command="rag-sourcebias monitor serve retrievals.db"
        if favours
        else f"rag-sourcebias audit style {data_argument(report.data.name)}",
    )


def _extreme(report: StyleReport, verdict: Verdict) -> tuple[str, str]:
    return telling_styles(verdict.found, verdict.row, report.config.original)


def _above(report: StyleReport, verdict: Verdict, high: str, low: str) -> tuple[int, int, int]:
    """Count queries in which one style ranks above another, below it, or neither."""
    system, styles = verdict.system, report.data.doc_styles
    ranks = system.ranks[:, system.rows.index(verdict.row)]
    apart = ranks[:, styles.index(high)] - ranks[:, styles.index(low)]
    return int((apart < 0).sum()), int((apart > 0).sum()), int((apart == 0).sum())


def _answer(report: StyleReport, verdict: Verdict) -> str:
    found, who = verdict.found, shorten(verdict.system.name, _NAME)
    if found.code is StyleCode.TIED:
        return f"{who} gives all styles the same place in every query."
    high, low = _extreme(report, verdict)
    above, below, ties = _above(report, verdict, high, low)
    if below > above:
        high, low, above = low, high, below
    tied = f" ({count(ties)} {'is a tie' if ties == 1 else 'are ties'})" * bool(ties)
    first, second = (
        original_text(report) if style == report.config.original else style_name(style)
        for style in (high, low)
    )
    return (
        f"In {count(above)} of {_queries(found.n_queries)}, {who} ranks {first} above "
        f"{second}{tied}."
    )


def _plain_verdict(report: StyleReport, verdict: Verdict) -> str:
    """Return the verdict of one system without a test or an interval."""
    found, who = verdict.found, shorten(verdict.system.name, _NAME)
    match found.code:
        case StyleCode.TIED:
            return ""
        case StyleCode.ALIKE:
            return f"Verdict: {who} ranks all styles alike, within the margin of this audit."
        case StyleCode.TOO_FEW | StyleCode.CANNOT_TELL:
            least = "at least" if found.code is StyleCode.TOO_FEW else "about"
            more = f"; {least} {roughly(found.n_needed)} are needed" if found.n_needed else ""
            queries = _queries(found.n_queries)
            return f"Cannot tell whether {who} ranks styles apart: {queries} are too few{more}."
    return f"Verdict: {who} {short(report, found)}, beyond chance."


def _rank_rows(report: StyleReport, verdict: Verdict) -> tuple[FirstRow, ...]:
    """Return the average place of the first and last styles and of the original."""
    if verdict.found.code is StyleCode.TIED:
        return ()
    styles, config = report.data.doc_styles, report.config
    named = zip(styles, average_ranks(verdict.system, verdict.row), strict=True)
    ranks = sorted(named, key=lambda pair: pair[1])
    original = next((i for i, (s, _) in enumerate(ranks) if s == config.original), 0)
    shown = sorted({0, original, len(ranks) - 1})
    ends = dict(zip(styles, verdict.row.average_ranks, strict=True))
    colours = dict.fromkeys(verdict.found.silenced, "baseline")
    colours |= dict.fromkeys(verdict.found.favoured, "other")
    return tuple(
        FirstRow(
            name=style_name(style),
            bar=Bar.over(
                (found.lower, rank, found.upper) if (found := ends[style]) else (rank,) * 3,
                (1.0, float(len(styles))),
                side=colours.get(style, "even"),
                solid=style in colours,
            ),
            text=number(rank),
        )
        for style, rank in (ranks[i] for i in shown)
    )


def _system_rows(report: StyleReport, found: Sequence[Verdict]) -> tuple[FirstRow, ...]:
    rows = []
    for verdict in found[:_FIRST_ROWS]:
        if verdict.found.code is StyleCode.TIED:
            continue
        others = [s for s in report.data.doc_styles if s != report.config.original]
        named = [s for s in _extreme(report, verdict) if s in others] or others
        above, below, ties = _above(report, verdict, named[0], report.config.original)
        rows.append(
            FirstRow(
                name=f"{shorten(verdict.system.name, _NAME)}: {style_name(named[0])}",
                parts=(
                    ("style higher", above, "other"),
                    ("tie", ties, "even"),
                    ("original higher", below, "baseline"),
                ),
                text=f"{count(above)} / {count(ties)} / {count(below)}",
            )
        )
    return tuple(rows)


def _plain_tally(found: Sequence[Verdict]) -> str:
    """Say how many systems rank styles apart, how many alike, and of how many it is open."""
    said = {
        StyleCode.FAVOURS: ("ranks", "rank", " some styles higher or lower than others"),
        StyleCode.ALIKE: ("ranks", "rank", " all styles alike, within the margin of this audit"),
        StyleCode.TIED: ("gives", "give", " all styles the same place"),
    }
    groups: dict[StyleCode, list[str]] = {}
    for verdict in found:
        groups.setdefault(verdict.found.code, []).append(shorten(verdict.system.name, _NAME))
    clauses, still_open = [], 0
    for code, who in groups.items():
        if code not in said:
            still_open += len(who)
            continue
        one, many, what = said[code]
        names = join(who) if len(who) <= _NAMED else f"{len(who)} of {len(found)} systems"
        clauses.append(f"{names} {one if len(who) == 1 else many}{what}")
    if still_open:
        clauses.append(f"for {counted(still_open, 'system')} there are too few queries to tell")
    return f"{opened('; '.join(clauses))}."


# One sentence per system for each effect, so that no number must be found in a picture


def matching_sentence(system: StyleSystem) -> str:
    """Say whether queries raise documents of their own style."""
    *each, overall = system.matching
    text = (
        f"a query in the style of a document {'raises' if overall.mean >= 0 else 'lowers'} it by "
        f"{number(abs(overall.mean))} places"
        f"{span(overall.gain, scale=1 if overall.mean >= 0 else -1)} on average"
    )
    if overall.gain is not None and not overall.gain.excludes(0):
        text += ", which may be chance"
    if len(each) > 1:
        most = max(each, key=lambda g: g.mean)
        text += (
            f"; most in {style_name(most.style)}: {number(most.mean, signed=True)}{span(most.gain)}"
        )
    return f"{text}."


def length_sentence(report: StyleReport, system: StyleSystem) -> str:
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


def quality_sentence(report: StyleReport, system: StyleSystem) -> str:
    """Say which styles of a question cost quality."""
    measure, base = (
        leading_measure([q.measure for q in system.quality]),
        report.config.original_query,
    )
    mean = next(q.mean for q in system.quality if (q.query_style, q.measure) == (base, measure))
    start = (
        f"{measure} is {score(mean)} for {base} queries; asking in another style changes {measure}"
    )
    found = sorted(
        (
            change.estimate,
            f"{estimate(change, scale=100, signed=True)} in {style_name(q.query_style)}",
        )
        for q in system.quality
        if q.measure == measure
        and (change := q.change) is not None
        and significant(report, q.p_adjusted)
    )
    if not found:
        return f"{start} nowhere significantly."
    return f"{start} significantly by {_first([text for _, text in found], 'in ')}."


def index_sentence(report: StyleReport, system: StyleSystem) -> str:
    """Say which styles rank apart in one index."""
    known = [s for s in system.index_scores if s.relative_delta is not None]
    measure, base = leading_measure([s.measure for s in known]), original_text(report)
    found = sorted(
        (-abs(value), f"{style_name(s.doc_style)} {delta(value)} {interval(s.interval)}")
        for s in known
        if s.measure == measure
        and (value := s.relative_delta) is not None
        and s.interval is not None
        and s.interval.excludes(0)
    )
    if not found:
        return f"by {measure} no style can be told apart from {base}."
    return (
        f"Relative Δ of {measure} against {base}, positive where {base} ranks higher: "
        f"{_first([text for _, text in found])}."
    )


def _first(texts: Sequence[str], more: str = "") -> str:
    rest = len(texts) - _NAMED
    return join([*texts[:_NAMED], *[f"{more}{rest} more"] * (rest > 0)])
