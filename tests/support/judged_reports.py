"""Judged reports whose every number the library computed, from simulated people and judges."""

from __future__ import annotations

import functools

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.data import JudgedConfig


def mean_of(report, measure, system=""):
    """Return one of the means of a report."""
    return next(m for m in report.means if (m.measure, m.system) == (measure, system))


def items_of(truth, judge, *, n_labeled, **columns):
    """Label the first items of each group."""
    groups = columns.get("groups", ("",) * len(truth))
    seen: dict[str, int] = {}
    human = np.full(len(truth), np.nan)
    for i, group in enumerate(groups):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= n_labeled:
            human[i] = truth[i]
    ids = tuple(map(str, range(len(truth))))
    return JudgedItems(ids=ids, human=human, judge=np.asarray(judge, dtype=float), **columns)


@functools.cache
def single(kind="good", n_labeled=60, *, method="regression", target="population", n=600):
    """Return a report of one mean."""
    rng = np.random.default_rng(7)
    truth = rng.normal(3, 1, n)
    judge = {
        "good": truth + 0.6 + rng.normal(0, 0.4, n),
        "noise": rng.normal(3, 1, n),
        "constant": np.full(n, 4.0),
        "perfect": truth.copy(),
        "scale": 100 * truth + rng.normal(0, 40, n),
    }[kind]
    config = JudgedConfig(method=method, target=target)
    items = items_of(truth, judge, n_labeled=n_labeled)
    bounds = (-3.0, 9.0) if n_labeled < 10 else None  # so few labels do not tell their scale
    return judge_items_with_intervals(
        items, measure="helpfulness", name=kind, config=config, bounds=bounds
    )
