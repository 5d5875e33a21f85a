"""What the reports say together: rows by data set, curves over the weight, the search."""

from __future__ import annotations

from collections.abc import Sequence

import curves
import figures
import training
from study import Measured

from rag_sourcebias.core.values import to_plain
from rag_sourcebias.debias.data import DebiasScores


def tables(found: Sequence[Measured]) -> dict[str, list[dict]]:
    """Rows by data set; the unchanged system once."""
    by_data: dict[str, list[dict]] = {}
    for one in found:
        rows = by_data.setdefault(one.data, [])
        known = {(r["system"], r["source"]) for r in rows}
        rows += [r for r in figures.rows(one.report) if (r["system"], r["source"]) not in known]
    return {data: sorted(rows, key=lambda r: r["source"]) for data, rows in by_data.items()}


def trained_scores(
    found: Sequence[Measured], done: Sequence[training.Run]
) -> dict[str, dict[float, dict[int, DebiasScores]]]:
    """Scores of the runs by data set, weight and seed."""
    runs = {f"training, weight {run.weight:g}, seed {run.seed}": run for run in done}
    scores: dict[str, dict[float, dict[int, DebiasScores]]] = {}
    for one in found:
        if one.name in runs:
            run, outcome = runs[one.name], one.report.datasets[0].outcome(one.name)
            scores.setdefault(one.data, {}).setdefault(run.weight, {})[run.seed] = outcome.scores
    return scores


def searches(scores: dict[str, dict[float, dict[int, DebiasScores]]]) -> tuple[dict, dict]:
    found, drawn = {}, {}
    for data, runs in scores.items():
        result = curves.search(runs, skew=figures.SKEW_AT, quality=figures.QUALITY_AT)
        found[data] = (
            {"refusal": result}
            if isinstance(result, str)
            else {
                "zero_crossing": to_plain(result.zero_crossing),
                "seeds": result.n_seeds,
            }
        )
        drawn[data] = {
            name: column
            for cutoff in curves.CUTOFFS
            for name, column in curves.series(runs, cutoff).items()
        }
    return found, drawn


def unchanged(rows: Sequence[dict]) -> dict:
    return next(r for r in rows if r["kind"] == "unchanged")


def dial_curves(dialled: Sequence[Measured]) -> dict[str, dict]:
    """Curves over multiples of the offset, which has no seeds."""
    scores: dict[str, dict[float, dict[int, DebiasScores]]] = {}
    for one in dialled:
        outcome = one.report.datasets[0].outcome(one.name)
        multiple = float(one.name.rpartition(" ")[2])
        scores.setdefault(one.data, {})[multiple] = {0: outcome.scores}
    return {
        f"{data}, offset": {
            name: column
            for cutoff in curves.CUTOFFS
            for name, column in curves.series(runs, cutoff, deterministic=True).items()
        }
        for data, runs in scores.items()
    }


def described(found: Sequence[Measured]) -> list[dict]:
    """What was fitted, once each; the settings of training runs are the same but for two."""
    methods = {method.name: method for one in found for method in one.report.methods}
    return [
        {"name": m.name, "fitted_on": m.fitted_on, "pairs": m.n_pairs, "settings": dict(m.settings)}
        for m in methods.values()
        if m.kind != "training"
    ]
