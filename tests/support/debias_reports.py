"""Debias reports from simulated rankings: every number is computed from per-query scores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.debias.audit import quality_changes, skew_changes
from rag_sourcebias.debias.data import (
    DEBIAS_ROWS,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasScores,
)
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.infer.means import adjust_p_values
from rag_sourcebias.measure.texts import DataSummary

CONFIG = DebiasConfig(resamples=2000)
BEFORE = "all-MiniLM-L6-v2"
LLM = "llm:llama-2"


def _discount(ranks: np.ndarray, k: int) -> np.ndarray:
    return np.where(ranks <= k, 1 / np.log2(ranks + 1), 0.0)


def simulated_scores(
    name: str,
    shift: float,
    *,
    n: int = 160,
    quality: float = 0.0,
    noise: float = 0.03,
    seed: int = 1,
    data_seed: int = 1,
    cutoffs: Sequence[int] = CONFIG.cutoffs,
) -> DebiasScores:
    """Score one pair per query; ``shift`` is what LLM versions gain, ``quality`` what both gain."""
    data, own = np.random.default_rng(data_seed), np.random.default_rng(seed)
    base = data.normal(1.7, 1, size=n)
    twin = base + data.normal(0, 0.25, size=n)
    pool = data.normal(0, 1, size=(2, n, 40))
    human, llm = (v + quality + own.normal(0, noise, size=n) for v in (base, twin))
    pool = pool + own.normal(0, noise, size=pool.shape)
    # Every LLM document gains, so that the order within a source stays as it is.
    mixed = np.concatenate((pool[0], pool[1] + shift), axis=1)

    def rank(value: np.ndarray, others: np.ndarray) -> np.ndarray:
        return 1 + np.sum(others > value[:, None], axis=1)

    moved = llm + shift
    h, g = rank(human, mixed) + (moved > human), rank(moved, mixed) + (moved <= human)
    alone_h, alone_g = rank(human, pool[0]), rank(llm, pool[1])
    values = np.zeros((len(DEBIAS_ROWS), len(cutoffs), n))
    for i, k in enumerate(cutoffs):
        ideal = 1.0 if k == 1 else 1 + 1 / math.log2(3)
        both = (_discount(h, k) + _discount(g, k)) / ideal
        values[:, i] = [
            _discount(h, k),
            _discount(g, k),
            _discount(alone_h, k),
            _discount(alone_g, k),
            both,
        ]
    return DebiasScores(
        name=name,
        query_ids=tuple(f"q{i}" for i in range(n)),
        cutoffs=tuple(cutoffs),
        values=values,
        settings={"dtype": "float32", "max_seq_length": "256"},
    )


def debias_dataset(
    name: str,
    systems: Mapping[str, tuple[float, float]],
    *,
    before: float = 0.08,
    n: int = 160,
    seed: int = 1,
    other: str = LLM,
    config: DebiasConfig = CONFIG,
    n_seen: int = 0,
) -> DebiasDataset:
    """Return a data set; ``systems`` maps names to what LLM versions and what all texts gain."""
    reference = simulated_scores(
        BEFORE, before, n=n, seed=seed, data_seed=seed, cutoffs=config.cutoffs
    )
    outcomes = [DebiasOutcome(scores=reference, skew=skew_changes(None, reference, config))]
    for place, (system, (shift, gain)) in enumerate(systems.items(), start=1):
        scores = simulated_scores(
            system,
            shift,
            n=n,
            quality=gain,
            seed=seed + 10 * place,
            data_seed=seed,
            cutoffs=config.cutoffs,
        )
        outcomes.append(
            DebiasOutcome(
                scores=scores,
                skew=skew_changes(reference, scores, config),
                quality=quality_changes(reference, scores, config),
                n_seen=n_seen,
            )
        )
    return DebiasDataset(
        data=DataSummary(
            name=name,
            design="rewrites",
            n_queries=n,
            n_judgments=2 * n,
            documents={"human": 41 * n, other: 41 * n},
            n_pairs=41 * n,
            mean_words={"human": 118.2, other: 101.7},
            license="CC BY 4.0",
            attribution="nobody: these rankings are simulated",
        ),
        other=other,
        n_pairs=n,
        outcomes=tuple(outcomes),
    )


def adjusted(datasets: Sequence[DebiasDataset]) -> tuple[DebiasDataset, ...]:
    """Adjust the p-values of all changes together, by Holm."""
    changes = [s for d in datasets for o in d.outcomes for s in o.skew if s.p_value is not None]
    values = adjust_p_values([s.p_value for s in changes], correction="holm")
    by_change = {id(s): p for s, p in zip(changes, values, strict=True)}

    def outcome(o: DebiasOutcome) -> DebiasOutcome:
        skew = tuple(dataclasses.replace(s, p_adjusted=by_change.get(id(s))) for s in o.skew)
        return dataclasses.replace(o, skew=skew)

    return tuple(
        dataclasses.replace(d, outcomes=tuple(outcome(o) for o in d.outcomes)) for d in datasets
    )


def debias_report(
    datasets: Sequence[DebiasDataset],
    *,
    methods: Sequence[DebiasMethod] = (),
    config: DebiasConfig = CONFIG,
    **changes: object,
) -> DebiasReport:
    """Return a report of these data sets with adjusted p-values.

    Of systems without a method it is not known how they were made.
    """
    done = adjusted(datasets)
    described = {method.name: method for method in methods}
    for system in (o.name for d in done for o in d.outcomes[1:]):
        described.setdefault(system, DebiasMethod(name=system, kind="model", settings={}))
    tests = sum(s.p_value is not None for d in done for o in d.outcomes for s in o.skew)
    fields: dict[str, object] = {
        "config": config,
        "methods": tuple(described.values()),
        "datasets": done,
        "family": "Holm correction over systems × cutoffs × data sets",
        "n_tests": tests,
        "environment": {"rag-sourcebias": "0.1.0", "numpy": "2.4.6"},
        "created": "2025-11-21T05:00:00+00:00",
    }
    return DebiasReport(**{**fields, **changes})  # type: ignore[arg-type]
