"""What [W] found, read off reports on styles and on answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.answers.page import AnswerBiasReport
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.style.data import (
    StyleSystem,
)
from rag_sourcebias.style.page import StyleReport


def ends(interval: Interval | None) -> list[float] | None:
    """Estimate, lower and upper end."""
    if interval is None:
        return None
    return [round(float(x), 4) for x in (interval.estimate, interval.lower, interval.upper)]


def matching(system: StyleSystem) -> dict:
    """(c) A query in style k raises documents in style k."""
    gains = {gain.style or "all": ends(gain.gain) or [gain.mean] for gain in system.matching}
    return {"gains": gains}


def style_figures(report: StyleReport) -> list[dict]:
    """Key figures of each system of a style report."""
    styles = report.data.doc_styles
    rows = []
    for system in report.systems:
        sums = system.average_ranks.sum(axis=1)
        expected = len(styles) * (len(styles) + 1) / 2
        if np.abs(sums - expected).max() > 1e-9 * expected:
            raise SystemExit(f"{system.name}: average ranks sum to {sums}, not {expected}")
        rows.append({
            "system": system.name,
            "settings": dict(system.settings),
            "average_ranks": {
                form: dict(zip(styles, np.round(ranks, 3).tolist(), strict=True))
                for form, ranks in zip(report.data.query_styles, system.average_ranks, strict=True)
            },
            "unfairness": {
                row.query_style: ends(row.unfairness_interval) or [round(row.unfairness.score, 4)]
                for row in system.rows
            },
            "mean_unfairness": ends(system.mean_unfairness),
            "c_matching": matching(system),
        })  # fmt: skip
    return rows


def answer_figures(report: AnswerBiasReport, *, fitted_on: str) -> list[dict]:
    """Key figures of each scorer of an answer report."""
    words = {s.name: rounded_or_none(s.mean_words_correct) for s in report.systems}
    rows = []
    for scorer in report.scorers:
        raw, adjusted = scorer.raw, scorer.adjusted
        if adjusted is None:
            raise SystemExit(f"{scorer.name}: the scores were not adjusted")
        rows.append({
            "encoder": scorer.name,
            "settings": dict(scorer.settings),
            "answers": report.name,
            "adjustment fitted on": fitted_on,
            "n_questions_all_correct": raw.spread.n_questions,
            "mean_words_correct": words,
            "means": rounded(raw.spread.systems, raw.spread.means),
            "unfairness": ends(raw.unfairness),
            "adjusted_unfairness": ends(adjusted.unfairness),
            "auc": ends(raw.auc),
            "adjusted_auc": ends(adjusted.auc),
        })  # fmt: skip
    return rows


def rounded(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in zip(names, values, strict=True)}


def rounded_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
