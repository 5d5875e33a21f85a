"""Sentences about one system."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.format import count, interval, join, number, p_clause
from rag_sourcebias.report.meaning import CORRECTIONS
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.verdicts import EXACT_LIMIT, SLIGHT, StyleVerdict, least_p_value
from rag_sourcebias.report.style.view import Compared, alpha, average_ranks
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_report import StyleReport, StyleRow

__all__ = [
    "chance_sentence",
    "correction_of",
    "finding",
    "listed",
    "score_with",
    "short",
    "too_few",
    "verdict_sentence",
]

_LISTED = 6  # styles that are named
_EXCEPTED = 2  # styles that are named as the only exceptions
_NAMED = 5  # styles of which the difference is written out


def score_with(value: float, bounds: Interval | None, *, digits: int = 2) -> str:
    """Return a number with its interval, or alone where there is none."""
    text = number(value, digits=digits)
    return text if bounds is None else f"{text} {interval(bounds, digits=digits)}"


def correction_of(report: StyleReport, n_tests: int) -> str:
    """Return over what p-values are adjusted, such as ``after Holm correction over 9 styles``."""
    tests = "1 comparison" if n_tests == 1 else f"{n_tests} comparisons"
    if report.config.correction == "none":
        return f"without correction for {tests}"
    return f"after {CORRECTIONS[report.config.correction]} correction over {tests}"


def short(report: StyleReport, verdict: StyleVerdict) -> str:
    """Return the verdict in a few words."""
    if verdict.kind == "differs":
        parts = []
        if verdict.favoured:
            parts.append(f"favours {listed(report, verdict.favoured)}")
        if verdict.silenced:
            parts.append(f"silences {listed(report, verdict.silenced)}")
        return ", ".join(parts)
    return {
        "slight": "slight differences only",
        "uneven": f"styles differ, none clearly from {original_text(report)}",
        "none": "no measurable difference",
        "few": "too few queries to tell",
        "tied": "ties all styles",
        "empty": "nothing was measured",
    }[verdict.kind]


def listed(report: StyleReport, found: Sequence[Compared]) -> str:
    """Return the styles in the order of the data, so that equal findings read alike."""
    chosen = {c.style for c in found}
    styles = [s for s in report.data.doc_styles if s in chosen]
    others = [s for s in report.data.doc_styles if s not in chosen and s != report.config.original]
    if len(styles) <= _LISTED:
        return style_list(styles)
    if not others:
        return "every other style"
    if len(others) <= _EXCEPTED:
        return f"all styles but {style_list(others)}"
    return f"{len(styles)} styles"


def finding(report: StyleReport, verdict: StyleVerdict) -> str:
    """Return the verdict as a sentence without its subject."""
    row = verdict.row
    if row is None:
        return "No query style was measured."
    if verdict.kind == "tied":
        return "Every query gives all styles the same similarity, so there is nothing to rank."
    text = {
        "differs": _differs,
        "slight": _slight,
        "uneven": _uneven,
        "none": _none,
        "few": _few,
    }[verdict.kind](report, verdict, row)
    return text[:1].upper() + text[1:] + "."


def verdict_sentence(report: StyleReport, verdict: StyleVerdict) -> str:
    """Return the whole finding of a system, with its name and what chance alone would give."""
    text = f"{verdict.system.name}: {finding(report, verdict)}"
    if verdict.row is None or verdict.kind == "tied":
        return text
    return f"{text} {chance_sentence(report, verdict.row)}"


def _differs(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    base = original_text(report)
    parts: list[str] = []
    for found, where in ((verdict.favoured, "above"), (verdict.silenced, "below")):
        if found:
            parts.append(f"{where} {'it' if parts else base}: {_distances(found)}")
    if verdict.slight:
        styles = style_list([c.style for c in verdict.slight], most=_NAMED)
        parts.append(f"{styles} differ{'s' if len(verdict.slight) == 1 else ''} slightly")
    return f"ranks {'; '.join(parts)} ({_tested(report, verdict, row)})"


def _distances(found: Sequence[Compared]) -> str:
    """Return ``style 8 by 4.5 places [3.9, 5.1]`` for the largest differences, others by name."""
    named = [
        f"{style_name(c.style)} by {_distance(c, unit=' places' if i == 0 else '')}"
        for i, c in enumerate(found[:_NAMED])
    ]
    rest = found[_NAMED:]
    if rest:
        named.append(style_list([c.style for c in rest], most=_NAMED))
    return join(named)


def _distance(c: Compared, *, unit: str) -> str:
    """Return how far a style is away; the interval may reach to the other side of 0."""
    sign = 1 if c.difference > 0 else -1
    low, high = sorted((sign * c.lower, sign * c.upper))
    text = f"{number(abs(c.difference))}{unit}"
    return f"{text} [{number(low)}, {number(high)}]" if c.known else text


def _tested(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    worst = max(c.p_adjusted for c in (*verdict.favoured, *verdict.silenced, *verdict.slight))
    several = len(verdict.favoured) + len(verdict.silenced) + len(verdict.slight) > 1
    clause = p_clause(worst, name="adjusted p" if report.config.correction != "none" else "p")
    clause = clause.replace(" = ", " ≤ ") if several else clause
    return f"{clause} {correction_of(report, len(row.against_original))}"


def _slight(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    limit = number(SLIGHT * (row.friedman.n_styles - 1), digits=2)
    return (
        f"differences from {original_text(report)} are significant but small, below {limit} of a "
        f"place: {join([f'{style_name(c.style)} {_signed(c)}' for c in verdict.slight[:_NAMED]])} "
        f"({_tested(report, verdict, row)})"
    )


def _signed(c: Compared) -> str:
    text = number(c.difference, signed=True, digits=2)
    if not c.known:
        return text
    return f"{text} [{number(c.lower, digits=2)}, {number(c.upper, digits=2)}]"


def _uneven(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    if row.against_original:
        start = f"no style differs significantly from {original_text(report)}, but styles differ"
    else:
        start = "styles differ"
    if (pair := verdict.pair) is not None:
        above, below = pair.first, pair.second
        if pair.difference > 0:
            above, below = below, above
        tests = len(verdict.system.pairs)
        return (
            f"{start}: {style_name(above)} ranks {number(abs(pair.difference))} places above "
            f"{style_name(below)} ({p_clause(pair.p_adjusted, name='adjusted p')} "
            f"{correction_of(report, tests)})"
        )
    means = average_ranks(verdict.system, row)
    styles = report.data.doc_styles
    order = sorted(range(len(styles)), key=lambda i: means[i])
    return (
        f"{start} (Friedman {p_clause(row.friedman.p_value)}); which ones cannot be told: average "
        f"ranks run from {number(means[order[0]])} for {style_name(styles[order[0]])} to "
        f"{number(means[order[-1]])} for {style_name(styles[order[-1]])}"
    )


def _none(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    if not row.against_original:
        return (
            f"no two styles differ significantly (Friedman {p_clause(row.friedman.p_value)}); "
            f"{count(row.friedman.n_queries)} queries"
        )
    text = (
        f"no style ranks significantly above or below {original_text(report)} "
        f"{correction_of(report, len(row.against_original))} "
        f"(Friedman {p_clause(row.friedman.p_value)})"
    )
    if verdict.widest is not None:
        text += f"; differences of up to {number(verdict.widest)} places cannot be ruled out"
    return text


def _few(report: StyleReport, verdict: StyleVerdict, row: StyleRow) -> str:
    tests = len(row.against_original) or len(verdict.system.pairs) or 1
    return f"cannot tell: {too_few(report, row.friedman.n_queries, tests)}"


def too_few(report: StyleReport, n_queries: int, n_tests: int) -> str:
    """Return why no test can be significant; nothing where one can."""
    config, asked = report.config, alpha(report)
    least = least_p_value(
        n_queries, n_tests, resamples=config.resamples, correction=config.correction
    )
    if least < asked:
        return ""
    queries = "1 query" if n_queries == 1 else f"{count(n_queries)} queries"
    what = f"{count(config.resamples)} resamples are too few"
    if n_queries <= EXACT_LIMIT:
        what = f"{queries} {'is' if n_queries == 1 else 'are'} too few"
    return (
        f"{what}, because with as many and {n_tests} comparisons no adjusted p-value can be below "
        f"{number(least, digits=3)}, and less than {number(asked, digits=3)} is asked for"
    )


def chance_sentence(report: StyleReport, row: StyleRow) -> str:
    """Return the unfairness of a row beside what chance alone would give."""
    found = row.unfairness
    null = number(found.null_expectation, digits=2)
    queries = "1 query" if found.n_queries == 1 else f"{count(found.n_queries)} queries"
    start = f"Unfairness {score_with(found.score, row.unfairness_interval)}"
    if found.score <= found.null_expectation:
        return f"{start}: no more than the {null} that chance alone gives over {queries}."
    share = number(100 * found.null_expectation / found.score, digits=0)
    text = f"{start}; chance alone would give {null} over {queries} ({share}% of that)"
    if row.friedman.p_value >= alpha(report):
        text += f", and the rest may be chance too (Friedman {p_clause(row.friedman.p_value)})"
    return f"{text}."
