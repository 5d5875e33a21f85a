"""Settings of a pair report as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.facts import environment_table, summary_table
from rag_sourcebias.report.format import MISSING, count, level, source_name
from rag_sourcebias.report.pairs.names import points
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.pair_report import PairReport

__all__ = ["config_table", "environment_table", "settings_table", "summary_table"]


def config_table(report: PairReport) -> Table:
    """Return the settings of the checks."""
    c = report.config
    rows = [
        ("baseline source", source_name(report.baseline_source)),
        ("encoder", report.encoder or "none: likeness is judged by words in common"),
        ("pairs shown", f"the {count(c.worst)} worst of each source"),
        ("characters shown", count(c.text_limit)),
    ]
    if report.sole_corpus:
        rows += [
            ("measures", ", ".join(f"{m}@{k}" for m in c.measures for k in c.cutoffs)),
            ("margin of equivalence", f"{points(c.margin)} (×100)"),
            ("level of the tests", f"{c.level:g}"),
            ("confidence level", level(c.confidence_level)),
            ("family", report.family or MISSING),
            ("tests of each kind", count(report.n_tests)),
            ("ties", c.ties),
            ("gain", c.gain),
            ("documents per query", count(c.depth)),
            ("resamples", count(c.resamples)),
            ("seed", str(c.seed)),
        ]
    return Table(columns=("setting", ""), rows=tuple(rows))


def settings_table(report: PairReport) -> Table:
    """Return what would be needed to repeat encoder and retrievers."""
    rows = tuple(
        (name, "; ".join(f"{k} = {v}" for k, v in found.items()) or MISSING)
        for name, found in report.settings.items()
    )
    return Table(columns=("system", "settings"), rows=rows)
