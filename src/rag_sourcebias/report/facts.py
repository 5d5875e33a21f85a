"""Data, settings and versions of a report as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.blocks import Table, environment_table, summary_table
from rag_sourcebias.report.format import CORRECTIONS, MISSING, count, level, number, source_name
from rag_sourcebias.report.view import label
from rag_sourcebias.types.reports import SkewReport

__all__ = [
    "config_table",
    "data_table",
    "environment_table",
    "settings_table",
    "summary_table",
]


def data_table(report: SkewReport) -> Table:
    """Return what the data are, with licence and attribution."""
    return summary_table(report.data)


def config_table(report: SkewReport) -> Table:
    """Return the settings of the audit."""
    c = report.config
    rows = (
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
    return Table(columns=("setting", ""), rows=rows)


def settings_table(report: SkewReport) -> Table:
    """Return what would be needed to repeat each run."""
    return Table(
        columns=("system", "settings"),
        rows=tuple(
            (label(s), "; ".join(f"{k} = {v}" for k, v in s.settings.items()) or MISSING)
            for s in report.systems
        ),
    )
