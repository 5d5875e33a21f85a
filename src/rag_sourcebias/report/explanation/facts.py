"""Data, settings and versions of an explanation as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.facts import environment_table, summary_table
from rag_sourcebias.report.format import count, level, source_name
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain_report import ExplainReport

__all__ = ["config_table", "data_table", "environment_table"]

_MAPS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}


def data_table(report: ExplainReport) -> Table:
    """Return what the data are, with the pairs that were looked at."""
    facts = summary_table(report.data)
    pairs = tuple(
        (
            f"pairs looked at, {source_name(s.source)}",
            f"{count(s.n_pairs)} of {count(s.n_available)}",
        )
        for s in report.sources
    )
    return Table(columns=facts.columns, rows=(*facts.rows, *pairs))


def config_table(report: ExplainReport) -> Table:
    """Return the settings of the explanation."""
    c = report.config

    def most(value: int | None) -> str:
        return "all" if value is None else f"at most {count(value)}"

    rows = (
        ("encoder", report.encoder or "none"),
        ("baseline source", source_name(c.baseline_source)),
        ("pairs", most(c.limit)),
        ("pairs whose perplexity is computed", most(c.perplexity_limit)),
        ("map", f"{_MAPS.get(c.map_method, c.map_method)}, {most(c.map_limit)} pairs"),
        ("spectra: centred", "yes" if c.centre else "no"),
        ("spectra: scaled to length 1", "yes" if c.normalise else "no"),
        ("singular values", most(c.n_values)),
        ("words per list", most(c.terms)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return Table(columns=("setting", ""), rows=rows)
