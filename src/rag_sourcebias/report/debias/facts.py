"""Data, settings and versions of a debias report as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.debias.names import data_name, loss
from rag_sourcebias.report.debias.run_tables import run_settings
from rag_sourcebias.report.facts import environment_table, summary_table
from rag_sourcebias.report.format import MISSING, count, level, source_name
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["config_table", "data_tables", "environment_table", "settings_table"]


def data_tables(report: DebiasReport) -> tuple[tuple[str, Table], ...]:
    """Return (name, facts) of every data set."""
    found = []
    for dataset in report.datasets:
        facts = summary_table(dataset.data)
        extra = (
            (
                "compared",
                f"{source_name(report.config.baseline_source)} with {source_name(dataset.other)}",
            ),
            ("pairs with a relevant version", count(dataset.n_pairs)),
        )
        table = Table(columns=facts.columns, rows=(*facts.rows, *extra))
        found.append((data_name(report, dataset), table))
    return tuple(found)


def config_table(report: DebiasReport) -> Table:
    """Return the settings of the comparison."""
    c = report.config
    rows = (
        ("baseline source", source_name(c.baseline_source)),
        ("cutoffs of NDCG", ", ".join(map(str, c.cutoffs))),
        ("skew is judged at", f"NDCG@{c.skew_cutoff}"),
        ("quality is judged at", f"NDCG@{c.quality_cutoff}"),
        ("target of Relative Δ", f"{c.target:g} ± {c.tolerance:g}"),
        ("largest loss accepted", loss(c.relative_margin)),
        ("level of the loss tests", f"{c.level:g}"),
        ("confidence level", level(c.confidence_level)),
        ("family", report.family or MISSING),
        ("tests in the family", count(report.n_tests)),
        ("ties", c.ties),
        ("gain", c.gain),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return Table(columns=("setting", ""), rows=rows)


def settings_table(report: DebiasReport) -> Table:
    """Return what would be needed to repeat each system and each training run."""
    found: dict[str, str] = {}
    for outcome in (o for d in report.datasets for o in d.outcomes):
        text = "; ".join(f"{k} = {v}" for k, v in outcome.scores.settings.items())
        found.setdefault(outcome.name, text or MISSING)
    rows = list(found.items())
    runs = {f"training of {r.name}": run_settings(r) for r in report.training}
    return Table(columns=("system", "settings"), rows=(*rows, *runs.items()))
