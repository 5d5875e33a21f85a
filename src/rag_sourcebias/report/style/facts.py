"""Data, settings and versions of a style report as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import MISSING, count, level
from rag_sourcebias.report.meaning import CORRECTIONS
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["config_table", "data_table", "environment_table", "settings_table"]

_NAMED = 10


def data_table(report: StyleReport) -> Table:
    """Return what the data are, with licence and attribution."""
    data = report.data
    rows = (
        ("name", data.name),
        ("queries with every version", count(data.n_queries)),
        ("queries left out", _dropped(data.dropped)),
        ("document styles", ", ".join(data.doc_styles)),
        ("query styles", ", ".join(data.query_styles)),
        ("distractors in the index", count(data.n_distractors)),
        ("licence", data.license or "not stated"),
        ("attribution", data.attribution or "not stated"),
    )
    return Table(columns=("data", ""), rows=rows)


def _dropped(queries: Sequence[str]) -> str:
    """Return how many queries lack a version, and the first of them by name."""
    if len(queries) <= _NAMED:
        return f"{count(len(queries))}{': ' if queries else ''}{', '.join(queries)}"
    return f"{count(len(queries))}, such as {', '.join(queries[:_NAMED])}"


def config_table(report: StyleReport) -> Table:
    """Return the settings of the audit."""
    c = report.config
    rows = (
        ("original document style", c.original),
        ("original query style", c.original_query),
        ("standard deviation in unfairness", f"ddof = {c.ddof}"),
        ("rank of ties", c.ties),
        (
            "missing versions",
            "queries that lack one are left out" if c.missing == "balanced" else "refused",
        ),
        ("cutoffs", ", ".join(map(str, c.cutoffs))),
        ("confidence level", level(c.confidence_level)),
        ("margin of “alike”", f"{100 * c.margin:g}% of the places"),
        ("correction", CORRECTIONS[c.correction]),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return Table(columns=("setting", ""), rows=rows)


def settings_table(report: StyleReport) -> Table:
    """Return what would be needed to repeat each run."""
    return Table(
        columns=("system", "settings"),
        rows=tuple(
            (s.name, "; ".join(f"{k} = {v}" for k, v in s.settings.items()) or MISSING)
            for s in report.systems
        ),
    )
