"""Data, settings and versions of a report as tables of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rag_sourcebias.report.format import CORRECTIONS, MISSING, count, level, number, source_name
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.view import label
from rag_sourcebias.types.reports import DataSummary, SkewReport

__all__ = [
    "config_table",
    "data_table",
    "environment_table",
    "settings_table",
    "summary_table",
]


class Measured(Protocol):
    """A report of any kind: it says what it was made with and when."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Versions and machine."""
        ...

    @property
    def created(self) -> str:
        """ISO 8601 time."""
        ...


def data_table(report: SkewReport) -> Table:
    """Return what the data are, with licence and attribution."""
    return summary_table(report.data)


def summary_table(data: DataSummary) -> Table:
    """Return the facts about one set of data."""
    words = {
        "rewrites": "rewrites (documents of different sources say the same thing)",
        "independent": "independent (documents answer the same queries, content differs)",
        "unknown": "unknown",
    }
    rows = [
        ("name", data.name),
        ("design", words.get(data.design, data.design)),
        ("queries", count(data.n_queries)),
        ("judgments", count(data.n_judgments)),
        ("pairs of versions", count(data.n_pairs)),
    ]
    for source, n in data.documents.items():
        length = data.mean_words.get(source)
        tail = "" if length is None else f", {number(length)} words on average"
        rows.append((f"documents, {source_name(source)}", f"{count(n)}{tail}"))
    rows += [
        ("licence", data.license or "not stated"),
        ("attribution", data.attribution or "not stated"),
    ]
    return Table(columns=("data", ""), rows=tuple(rows))


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


def environment_table(report: Measured) -> Table:
    """Return versions, machine and time."""
    rows = (*report.environment.items(), ("created", report.created))
    return Table(columns=("environment", ""), rows=tuple((str(k), str(v)) for k, v in rows))
