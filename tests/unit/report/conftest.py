"""Reports built by hand: simulated rankings, every number computed from them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np
import pytest

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import queries_for_verdict
from rag_sourcebias.intake.belong import BelongCode
from rag_sourcebias.measure.relevance import SourceScores
from rag_sourcebias.measure.texts import DataCode, DataSummary
from rag_sourcebias.source.audit import adjusted, verdicts_of
from rag_sourcebias.source.findings import (
    AuditConfig,
    CentredDelta,
    ExposureShare,
    SkewCell,
    SoleCorpusCheck,
    SourceCode,
    SystemSkew,
    TwinSkew,
)
from rag_sourcebias.source.page import SkewReport

N = 160
POOL = 40
CONFIG = AuditConfig()
MEASURES = tuple(f"{m}@{k}" for m in CONFIG.measures for k in CONFIG.cutoffs)
SAMPLED, NORMAL = InferCode.QUERIES_SAMPLED(), InferCode.RATIO_NORMAL()


def make_interval(
    estimate: float,
    half: float,
    *,
    method: InferCode = InferCode.DELTA,
    low: float = -200,
    high: float = 200,
) -> Interval:
    return Interval(
        estimate=estimate,
        lower=max(low, estimate - half),
        upper=min(high, estimate + half),
        confidence_level=0.95,
        method=method(),
        n_labeled=N,
        assumptions=(SAMPLED, NORMAL),
    )


def make_cell(measure: str = "NDCG@5", **changes: object) -> SkewCell:
    """Return a cell that favours the other source but for the correction.

    Tests change what they are about. The centred figure is the published one unless given.
    """
    values: dict[str, object] = {
        "measure": measure,
        "baseline": "human",
        "other": "llm:llama-2",
        "mean_baseline": 0.275,
        "mean_other": 0.456,
        "relative_delta": -49.6,
        "interval": make_interval(-49.6, 47),
        "refusal": None,
        "p_value": 0.04,
        "p_adjusted": 0.31,
        "n_queries": 80,
        "n_needed": 430,
    }
    values |= changes
    values.setdefault("centred", centred(values["relative_delta"], values["interval"]))
    if values["centred"] is not None and values["refusal"]:
        values["centred"] = dataclasses.replace(values["centred"], refusal=values["refusal"])
    return SkewCell(**values)  # type: ignore[arg-type]


def centred(value: float | None, interval: Interval | None, n: int = 80) -> CentredDelta:
    """Return a centred figure that equals the published one."""
    return CentredDelta(
        value=value,
        expected_baseline=0.4,
        expected_other=0.4,
        interval=interval,
        refusal=None,
        n_queries=n,
    )


def _ndcg(ranks: np.ndarray, k: int) -> float:
    gains = sum(1 / math.log2(r + 1) for r in ranks if r <= k)
    return gains / sum(1 / math.log2(i + 2) for i in range(min(k, len(ranks))))


def _ap(ranks: np.ndarray, k: int) -> float:
    hits = sorted(r for r in ranks if r <= k)
    return sum((i + 1) / r for i, r in enumerate(hits)) / len(ranks)


def _cell(
    measure: str, other: str, h: np.ndarray, g: np.ndarray, rng: np.random.Generator
) -> SkewCell:
    a, b, n = h.mean(), g.mean(), len(h)
    x = math.log(a / b)
    cov = np.cov(h, g) / n
    sd = math.sqrt(cov[0, 0] / a**2 + cov[1, 1] / b**2 - 2 * cov[0, 1] / (a * b))
    low, high = (200 * math.tanh((x + t * 1.975 * sd) / 2) for t in (-1, 1))
    diff = h - g
    null = np.abs(rng.choice([-1, 1], size=(20_000, n)) @ diff)
    p = (1 + int(np.sum(null >= abs(diff.sum()) - 1e-9))) / 20_001
    interval = Interval(
        estimate=200 * math.tanh(x / 2),
        lower=low,
        upper=high,
        confidence_level=0.95,
        method=InferCode.DELTA(),
        n_labeled=n,
        assumptions=(SAMPLED, NORMAL),
    )
    return SkewCell(
        measure=measure,
        baseline="human",
        other=other,
        mean_baseline=float(a),
        mean_other=float(b),
        relative_delta=interval.estimate,
        interval=interval,
        refusal=None,
        p_value=p,
        p_adjusted=None,
        n_queries=n,
        n_needed=None if interval.excludes(0.0) else queries_for_verdict(interval, margin=5.0),
        centred=centred(interval.estimate, interval, n),
    )


def make_system(
    name: str,
    shifts: Mapping[str, float],
    *,
    seed: int,
    variant: str = "mixed",
    length_effect: float = 0.0,
    noise: float = 0.7,
    **changes: object,
) -> SystemSkew:
    """Simulate one system; ``shifts`` moves the scores of each other source's documents."""
    rng = np.random.default_rng(seed)
    sources = ("human", *shifts)
    n_pairs = rng.integers(1, 3, size=N)
    values = np.zeros((len(MEASURES), len(sources), N))
    twins: dict[str, list[tuple[float, ...]]] = {s: [] for s in shifts}
    unseen = dict.fromkeys(shifts, 0)
    for q in range(N):
        base = rng.normal(1.6, 1, size=n_pairs[q])
        ratio = rng.normal(-0.15, 0.3, size=n_pairs[q])
        relevant = [base]
        for shift in shifts.values():
            relevant.append(
                base + shift + length_effect * ratio + rng.normal(0, noise, size=n_pairs[q])
            )
        scores = np.concatenate([*relevant, rng.normal(0, 1, size=POOL)])
        rank = np.empty(len(scores))
        rank[np.argsort(-scores)] = np.arange(1, len(scores) + 1)
        ranks = rank[: len(sources) * n_pairs[q]].reshape(len(sources), -1)
        for m, measure in enumerate(MEASURES):
            kind, _, k = measure.partition("@")
            for s in range(len(sources)):
                values[m, s, q] = (_ndcg if kind == "NDCG" else _ap)(ranks[s], int(k))
        for s, source in enumerate(shifts, start=1):
            for i in range(n_pairs[q]):
                a, b = (r if r <= 20 else math.nan for r in (ranks[0, i], ranks[s, i]))
                if math.isnan(a) and math.isnan(b):
                    unseen[source] += 1
                    continue
                above = float(
                    (math.inf if math.isnan(a) else a) > (math.inf if math.isnan(b) else b)
                )
                twins[source].append((q, above, a, b, ratio[i], rng.uniform(0.3, 0.9)))
    cells = tuple(
        _cell(measure, other, values[m, 0], values[m, s], rng)
        for s, other in enumerate(shifts, start=1)
        for m, measure in enumerate(MEASURES)
    )
    fields: dict[str, object] = {
        "name": name,
        "settings": {"search": "exact", "dtype": "float32", "max_seq_length": "256"},
        "variant": variant,
        "scores": SourceScores(
            query_ids=tuple(f"q{i}" for i in range(N)),
            sources=sources,
            measures=MEASURES,
            values=values,
            n_relevant=np.tile(n_pairs, (len(sources), 1)).astype(np.int32),
        ),
        "cells": cells,
        "twins": tuple(
            _twin(other, np.array(rows), unseen[other]) for other, rows in twins.items()
        ),
        "exposure": _exposure(sources, rng),
        "sole_corpus": _sole(tuple(shifts)),
        "awrf": 0.93,
    }
    return SystemSkew(**{**fields, **changes})  # type: ignore[arg-type]


def _twin(other: str, rows: np.ndarray, n_unseen: int) -> TwinSkew:
    win = float(rows[:, 1].mean())
    return TwinSkew(
        baseline="human",
        other=other,
        n_pairs=len(rows),
        n_unseen=n_unseen,
        win_rate=make_interval(win, 0.07, method=InferCode.CLUSTERED_MEAN, low=0, high=1),
        margin=make_interval(win - 0.5, 0.15, method=InferCode.CLUSTERED_MEAN),
        win_rate_equal_length=make_interval(
            0.4 + win / 5, 0.08, method=InferCode.LOGISTIC, low=0, high=1
        ),
        query_index=rows[:, 0].astype(np.int64),
        other_above=rows[:, 1],
        baseline_rank=rows[:, 2],
        other_rank=rows[:, 3],
        log_length_ratio=rows[:, 4],
        overlap=rows[:, 5],
    )


def _exposure(sources: tuple[str, ...], rng: np.random.Generator) -> tuple[ExposureShare, ...]:
    found = []
    for browsing in CONFIG.browsing:
        shares = rng.dirichlet(np.full(len(sources), 60.0))
        for source, value in zip(sources, shares, strict=True):
            corpus = 1 / len(sources)
            found.append(
                ExposureShare(
                    source=source,
                    browsing=browsing,
                    share=float(value),
                    corpus_share=corpus,
                    difference=make_interval(
                        float(value) - corpus, 0.04, method=InferCode.CLUSTERED_MEAN
                    ),
                )
            )
    return tuple(found)


def _sole(others: tuple[str, ...]) -> tuple[SoleCorpusCheck, ...]:
    return tuple(
        SoleCorpusCheck(
            measure="NDCG@5",
            baseline="human",
            other=other,
            mean_baseline=0.704,
            mean_other=0.716,
            difference=make_interval(-0.012, 0.03, method=InferCode.PAIRED_T),
            p_value=0.43,
        )
        for other in others
    )


def holm(systems: list[SystemSkew]) -> list[SystemSkew]:
    """Adjust the primary p-values and decide, as the audit does."""
    return list(adjusted(systems, CONFIG)[0])


def make_report(systems: list[SystemSkew], **changes: object) -> SkewReport:
    """Return a report over the systems; p-values are kept as they are, verdicts made of them."""
    others = tuple(dict.fromkeys(c.other for s in systems for c in s.cells))
    fields: dict[str, object] = {
        "data": DataSummary(
            name="crowdrag-rewrites",
            design="rewrites",
            n_queries=N,
            n_judgments=2 * N,
            documents={"human": 160, **dict.fromkeys(others, 160)},
            n_pairs=160,
            mean_words={"human": 118.2, **dict.fromkeys(others, 101.7)},
            license="CC BY 4.0",
            attribution="Webis CrowdRAG-25 (Gienapp et al.), rewritten by a language model",
        ),
        "config": CONFIG,
        "systems": tuple(systems),
        "n_tests": sum(
            c.p_adjusted is not None for s in systems if s.variant == "mixed" for c in s.cells
        ),
        "environment": {"rag-sourcebias": "0.1.0", "numpy": "2.4.6", "machine": "x86_64"},
        "created": "2025-11-21T05:00:00+00:00",
        "findings": (DataCode.FEW_QUERIES(n=80, cutoff=1, severity="warning"),),
    }
    report = SkewReport(**{**fields, **changes})  # type: ignore[arg-type]
    decided = tuple(
        system
        if system.verdicts
        else dataclasses.replace(
            system, verdicts=verdicts_of(system.cells, report.config, report.n_tests)
        )
        for system in report.systems
    )
    return dataclasses.replace(report, systems=decided)


def simple_system(*cells: SkewCell, name: str = "MiniLM", **changes: object) -> SystemSkew:
    """Return a system with hand-made cells and nothing else."""
    made = make_system(name, {"llm:llama-2": 0.0}, seed=1)
    blank = {"twins": (), "exposure": (), "sole_corpus": (), "awrf": None}
    return dataclasses.replace(made, cells=cells, **{**blank, **changes})  # type: ignore[arg-type]


def build_full_report() -> SkewReport:
    llm = "llm:llama-2"
    minilm = "sentence-transformers/all-MiniLM-L6-v2"
    lexical = make_system(
        "BM25", {llm: -0.9}, seed=2, length_effect=0.8, settings={"k1": "0.9", "b": "0.4"}
    )
    dense = make_system(minilm, {llm: 0.08}, seed=8)
    exact = make_system(
        minilm,
        {llm: 0.1},
        seed=8,
        variant="exact",
        sole_corpus=(),
        twins=(),
        notes=(SourceCode.APPROXIMATE(share=0.925, cutoff=5),),
    )
    cut = make_system("BM25", {llm: -0.3}, seed=2, variant="length-matched", sole_corpus=())
    odd = make_system(
        "多言語-エンコーダ/très-long-modèle-d’encodage-ÅÄÖ-" + "x" * 40 + "-final-v2.1",
        {llm: 0.2},
        seed=5,
        n_untagged=14,
        n_empty=3,
        notes=(
            BelongCode.UNTAGGED(system="odd", n=14, n_all=800, first="d7"),
            SourceCode.TIES_AVERAGED(n=9, n_queries=160, rank=6),
        ),
    )
    systems = [lexical, dense, exact, cut, odd]
    last = list(odd.cells)
    refusal = SourceCode.ONE_WAY(events=3, n_pairs=160, n_least=5)
    last[0] = dataclasses.replace(
        last[0],
        interval=None,
        refusal=refusal,
        p_value=None,
        n_needed=267,
        centred=dataclasses.replace(last[0].centred, interval=None, refusal=refusal),
    )
    last[3] = dataclasses.replace(
        last[3],
        mean_baseline=0.0,
        mean_other=0.0,
        relative_delta=None,
        interval=None,
        refusal=SourceCode.NOTHING_RELEVANT(),
        p_value=None,
        n_needed=None,
        centred=dataclasses.replace(last[3].centred, value=None, interval=None),
    )
    systems[-1] = dataclasses.replace(odd, cells=tuple(last))
    return make_report(holm(systems))


@pytest.fixture(scope="session")
def full_report() -> SkewReport:
    return build_full_report()


@pytest.fixture(scope="session")
def three_source_report() -> SkewReport:
    shifts = {"llm:llama-2-7b-chat": 0.5, "llm:gpt-4": -0.4}
    systems = holm(
        [
            make_system("BM25", shifts, seed=3),
            make_system("all-mpnet-base-v2", {k: -v for k, v in shifts.items()}, seed=4),
        ]
    )
    return make_report(systems)


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Return the builders of this file."""
    return SimpleNamespace(
        cell=make_cell,
        interval=make_interval,
        report=make_report,
        system=make_system,
        simple=simple_system,
        holm=holm,
    )


@pytest.fixture(scope="session")
def report_of() -> Callable[..., SkewReport]:
    """Return a builder of reports with one hand-made system in a family of 36 tests."""

    def build(*cells: SkewCell, design: str = "rewrites", **changes: object) -> SkewReport:
        system = simple_system(*cells, **changes.pop("system", {}))  # type: ignore[arg-type]
        report = make_report([system], **{"n_tests": 36, **changes})
        data = dataclasses.replace(report.data, design=design)  # type: ignore[arg-type]
        return dataclasses.replace(report, data=data)

    return build
