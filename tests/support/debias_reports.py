"""Debias reports from simulated rankings: every number is computed from per-query scores."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.core.training import TrainingHistory, TrainingPoint
from rag_sourcebias.debias.audit import quality_changes, skew_changes
from rag_sourcebias.debias.data import (
    DEBIAS_ROWS,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasScores,
    DebiasSearch,
)
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.debias.search import debias_curve
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


@functools.cache
def simulated_search(
    weights: Sequence[float] = (0, 1e-4, 1e-3, 1e-2, 0.1, 1),
    shifts: Sequence[float] = (0.15, 0.11, 0.05, 0.0, -0.2, -0.4),
    gains: Sequence[float] = (0, 0.05, 0.06, 0.06, 0.0, -0.3),
    seeds: int = 3,
    n: int = 400,
) -> DebiasSearch:
    """Return a curve through simulated rankings, by the function that real searches use."""
    scores = {
        weight: [
            simulated_scores(
                "", shift, n=n, quality=gain, seed=7 * s + round(1000 * weight), noise=0.02
            )
            for s in range(seeds)
        ]
        for weight, shift, gain in zip(weights, shifts, gains, strict=True)
    }
    return debias_curve(scores, searched="debias weight", data="nfcorpus", config=CONFIG)


def training_runs(
    name: str, weights: Sequence[float] = (0.01, 0.1), seeds: Sequence[int] = (0, 1, 2)
) -> tuple[TrainingHistory, ...]:
    """Return histories whose losses fall."""
    found = []
    for weight in weights:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            points = [TrainingPoint(step=0)]
            for step in range(25, 151, 25):
                done = step / 150
                points.append(
                    TrainingPoint(
                        step=step,
                        rank_loss=1.1 - 0.5 * done + 0.05 * float(rng.normal()),
                        debias_loss=weight * (9 - 6 * done),
                        hinge_share=0.52 - 0.3 * done,
                    )
                )
            found.append(
                TrainingHistory(
                    name=name,
                    debias_weight=weight,
                    seed=seed,
                    n_pairs=2400,
                    n_steps=150,
                    seconds=81.3,
                    settings={"base loss": "MNRL", "reduction": "sum", "scale": "20"},
                    points=tuple(points),
                )
            )
    return tuple(found)


METHODS = (
    DebiasMethod(
        name="projection, 4 directions",
        kind="projection",
        settings={"method": "pca", "directions": "4", "strength": "1"},
        fitted_on="nfcorpus",
        n_pairs=2400,
        encode_cost=1.004,
    ),
    DebiasMethod(
        name="parity offset",
        kind="calibration",
        settings={"similarity": "cosine"},
        fitted_on="nfcorpus",
        n_pairs=2400,
    ),
    DebiasMethod(
        name="trained, weight 0.1",
        kind="training",
        settings={"base loss": "MNRL", "reduction": "sum"},
        fitted_on="nfcorpus",
        n_pairs=2400,
        encode_cost=0.99,
    ),
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


@functools.cache
def full_report() -> DebiasReport:
    """Three methods on two data sets and a second LLM, a search and its training runs."""
    near, far = (
        {
            "projection, 4 directions": (-0.06, 0.03),
            "parity offset": (0.0, 0.0),
            "trained, weight 0.1": (-0.2, -0.1),
        },
        {
            "projection, 4 directions": (0.25, 0.0),
            "parity offset": (0.0, 0.02),
            "trained, weight 0.1": (0.1, 0.05),
        },
    )
    first = debias_dataset("nfcorpus", near, n=324, seed=3, n_seen=12)
    second = debias_dataset("nq-utd", far, n=80, seed=5)
    third = debias_dataset("outfox", far, n=200, seed=8, other="llm:gpt-4")
    return debias_report(
        (first, second, third),
        methods=METHODS,
        search=simulated_search(),
        training=training_runs("trained, weight 0.1"),
        warnings=("80 queries of nq-utd are few.",),
    )


@functools.cache
def plain_report() -> DebiasReport:
    """One system of unknown origin on one data set; nothing else."""
    data = debias_dataset("nfcorpus", {"debiased": (0.0, 0.0)}, n=200, seed=4)
    return debias_report((data,))


def refused_report() -> DebiasReport:
    """Nothing has an interval, and the qualities before are 0."""
    report = plain_report()
    dataset = report.datasets[0]
    outcomes = []
    for outcome in dataset.outcomes:
        skew = tuple(
            dataclasses.replace(
                s,
                before=None,
                after=None,
                change=None,
                p_value=None,
                p_adjusted=None,
                refusal="neither source scores on 200 queries",
            )
            for s in outcome.skew
        )
        quality = tuple(
            dataclasses.replace(
                q,
                before=0.0,
                after=0.0,
                difference=None,
                p_value=None,
                test=None,
                refusal="no query scored before",
            )
            for q in outcome.quality
        )
        outcomes.append(dataclasses.replace(outcome, skew=skew, quality=quality))
    return dataclasses.replace(
        report, datasets=(dataclasses.replace(dataset, outcomes=tuple(outcomes)),)
    )
