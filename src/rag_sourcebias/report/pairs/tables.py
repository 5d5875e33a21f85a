"""Flags, values, criteria and corpora searched alone as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.format import (
    MISSING,
    count,
    interval,
    number,
    p_value,
    score,
    share,
    shorten,
    source_name,
)
from rag_sourcebias.report.pairs.names import (
    FLAGS,
    THRESHOLDS,
    VALUES,
    names_of,
    threshold_text,
    value_text,
)
from rag_sourcebias.report.pairs.wording import criteria_of, test_text
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.pair_checks import BROKEN
from rag_sourcebias.types.pair_report import PairReport, SourcePairs

__all__ = [
    "criteria_table",
    "flag_meanings",
    "flags_table",
    "sole_table",
    "thresholds_table",
    "values_table",
]

_WORDS = {True: "met", False: "not met", None: "not checked"}
_NAME = 40


def criteria_table(report: PairReport) -> Table:
    """Return the three criteria of [K] §2 for every source."""
    rows = [
        (source_name(part.source), c.name, _WORDS[c.met], c.text)
        for part in report.sources
        for c in criteria_of(part.criteria)
    ]
    if len(report.sources) == 1:
        return Table(columns=("criterion", "", "found"), rows=tuple(r[1:] for r in rows), n_heads=1)
    return Table(columns=("source", "criterion", "", "found"), rows=tuple(rows), n_heads=2)


def flags_table(report: PairReport) -> Table:
    """Return how many pairs of each source have each flag; broken ones first."""
    names = names_of(report)

    def row(name: str, counts: list[int]) -> tuple[str, ...]:
        return (
            name,
            *(_of(n, part) for n, part in zip(counts, report.sources, strict=True)),
        )

    rows = [
        row(
            flag.replace("_", " ") + (" (broken)" if flag in BROKEN else ""),
            [part.summary.flagged.get(flag, 0) for part in report.sources],
        )
        for flag in FLAGS
    ]
    rows += [
        row("broken, any of these", [part.summary.n_broken for part in report.sources]),
        row("any flag", [part.summary.n_flagged for part in report.sources]),
        ("pairs", *(count(part.summary.n_pairs) for part in report.sources)),
    ]
    columns = ("flag", *(shorten(names[part.source], _NAME) for part in report.sources))
    return Table(columns=columns, rows=tuple(rows))


def _of(n: int, part: SourcePairs) -> str:
    if not part.summary.n_pairs:
        return MISSING
    return f"{count(n)} ({share(n / part.summary.n_pairs)})" if n else "0"


def flag_meanings() -> Table:
    """Return what each flag says."""
    rows = tuple((flag.replace("_", " "), text) for flag, text in FLAGS.items())
    return Table(columns=("flag", "means"), rows=rows)


def thresholds_table(report: PairReport) -> Table:
    """Return every threshold with its reason."""
    rows = tuple(
        (
            f"{text}: {threshold_text(report.thresholds, name)}",
            report.threshold_reasons.get(name, MISSING),
        )
        for name, text in THRESHOLDS.items()
    )
    return Table(columns=("threshold", "because"), rows=rows)


def values_table(report: PairReport) -> Table:
    """Return the middle and the ends of every value."""
    rows = [
        (
            source_name(part.source),
            VALUES[name],
            *(value_text(name, q) for q in part.summary.quantiles[name]),
        )
        for part in report.sources
        for name in VALUES
        if name in part.summary.quantiles
    ]
    if len(report.sources) == 1:
        head: tuple[str, ...] = ("value", "5%", "median", "95%")
        return Table(columns=head, rows=tuple(row[1:] for row in rows))
    return Table(columns=("source", "value", "5%", "median", "95%"), rows=tuple(rows), n_heads=2)


def sole_table(report: PairReport) -> Table:
    """Return every measure on each corpus alone, with both tests."""
    names = names_of(report)
    several = len({test.other for test in report.sole_corpus}) > 1
    rows = tuple(
        (
            f"{t.system}, {names[t.other]}" if several else t.system,
            t.measure,
            score(t.mean_baseline),
            score(t.mean_other),
            MISSING
            if t.difference is None
            else f"{number(100 * t.difference.estimate, signed=True)} "
            f"{interval(t.difference, scale=100)}",
            p_value(t.p_different_adjusted),
            p_value(t.p_equivalent_adjusted),
            count(t.n_queries),
            test_text(t),
        )
        for t in report.sole_corpus
    )
    base = names[report.baseline_source]
    other = "other" if several or not report.sole_corpus else names[report.sole_corpus[0].other]
    columns = (
        "system", "measure", base, other, "difference", "p different", "p equivalent", "queries",
        "verdict",
    )  # fmt: skip
    return Table(columns=columns, rows=rows, n_heads=2)
