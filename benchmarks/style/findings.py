"""What [W] found, read off reports on styles and on answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.answers.data import AnswerBiasReport
from rag_sourcebias.core.values import Interval
from rag_sourcebias.style.data import StyleReport, StyleSystem

FAVOURED = ("human", "2")
SILENCED = ("3", "6", "7", "8")


def ends(interval: Interval | None) -> list[float] | None:
    """Estimate, lower and upper end."""
    if interval is None:
        return None
    return [round(float(x), 4) for x in (interval.estimate, interval.lower, interval.upper)]


def most_favoured(system: StyleSystem, styles: Sequence[str]) -> dict:
    """(a) The human text or style 2 is ranked highest under original queries."""
    best = styles[int(system.average_ranks[0].argmin())]
    return {"best": best, "holds": best in FAVOURED}


def least_favoured(system: StyleSystem, styles: Sequence[str]) -> dict:
    """(b) Styles 3, 6, 7 and 8 are ranked lowest under original queries.

    ``below the original`` are the styles whose difference to it is beyond chance (adjusted over
    the styles).
    """
    order = np.argsort(-system.average_ranks[0], kind="stable")[: len(SILENCED)]
    worst = [styles[i] for i in order]
    below = [
        pair.first
        for pair in system.rows[0].against_original
        if pair.difference > 0 and pair.p_adjusted < 0.05
    ]
    return {
        "worst": worst,
        "below the original": below,
        "holds": set(worst) == set(SILENCED),
    }


def matching(system: StyleSystem) -> dict:
    """(c) A query in style k raises documents in style k."""
    gains = {gain.style or "all": ends(gain.gain) or [gain.mean] for gain in system.matching}
    raised = [s for s, gain in gains.items() if s != "all" and len(gain) == 3 and gain[1] > 0]
    together = gains.get("all")
    return {
        "gains": gains,
        "raised": raised,
        "holds": bool(together and len(together) == 3 and together[1] > 0),
    }


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
            "a_most_favoured": most_favoured(system, styles),
            "b_least_favoured": least_favoured(system, styles),
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
