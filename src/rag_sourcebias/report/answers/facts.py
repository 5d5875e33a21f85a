"""Data, settings and versions of an answer-style report as tables of text."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.report.answers.numbers import value
from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import count, level
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.answer_report import AnswerBiasReport

__all__ = ["config_table", "data_table", "environment_table", "settings_table"]


def data_table(report: AnswerBiasReport) -> Table:
    """Return what was answered and judged."""
    judged = int(np.count_nonzero(~np.isnan(report.correct)))
    rows = (
        ("name", report.name),
        ("questions", count(len(set(report.question_ids)))),
        ("systems", count(len(report.systems))),
        ("answers", count(len(report.question_ids))),
        ("answers people judged", count(judged)),
        ("licence", report.license or "not stated"),
        ("attribution", report.attribution or "not stated"),
    )
    return Table(columns=("data", ""), rows=rows)


def config_table(report: AnswerBiasReport) -> Table:
    """Return the settings of the audit."""
    c = report.config
    chosen = "what separates correct from wrong best, per score"
    rows = (
        ("threshold", chosen if c.threshold is None else f"{c.threshold:g}"),
        ("adjustment", f"yes, {c.folds} folds of questions" if c.adjust else "no"),
        ("ddof of the unfairness", str(c.ddof)),
        ("labels per system", "all there are" if c.labels is None else count(c.labels)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return Table(columns=("setting", ""), rows=rows)


def settings_table(report: AnswerBiasReport) -> Table:
    """Return what would be needed to repeat each score."""
    rows = []
    for s in report.scorers:
        parts = [f"{k} = {v}" for k, v in s.settings.items()]
        parts.append(f"threshold = {value(s, s.raw.threshold)}")
        if s.adjusted is not None:
            parts.append(f"threshold of the adjusted score = {value(s, s.adjusted.threshold)}")
        if s.adjustment:
            parts.append(f"adjustment = {s.adjustment}")
        rows.append((s.name, "; ".join(parts)))
    return Table(columns=("score", "settings"), rows=tuple(rows))
