"""Rankers that know no source, judged from pools of rankers that do: no verdict may come of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.data import Qrels, Run, TagTable
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SkewVerdict

N_DOCS, N_RELEVANT, N_RANKERS = 60, 6, 3  # per query: half of each source
SIDES = np.repeat(["human", "llm:x"], N_DOCS // 2)
CONFIG = AuditConfig(measures=("NDCG",), cutoffs=(10,), resamples=100)
FAVOURS = {SkewCode.FAVOURS_BASELINE, SkewCode.FAVOURS_OTHER}


def world(
    rng: np.random.Generator, n: int, *, pool: int | None, lean: float = 0.0, bias: float = 0.0
) -> tuple[Run, Qrels, TagTable]:
    """A run and judgments of what some rankers, leaning to human text, had on their first ranks.

    What makes a document easy to find is shared by all rankers; ``pool`` None judges everything.
    """
    results: dict[str, dict[str, float]] = {}
    judged: dict[str, dict[str, int]] = {}
    human = SIDES == "human"
    for q in range(n):
        relevant = np.zeros(N_DOCS, dtype=np.int64)
        for side in (human, ~human):
            relevant[rng.choice(np.flatnonzero(side), N_RELEVANT, replace=False)] = 1
        easy = 1.5 * relevant + rng.normal(size=N_DOCS)
        pooled = np.full(N_DOCS, pool is None)
        for _ in range(N_RANKERS if pool else 0):
            scores = easy + lean * human + rng.normal(size=N_DOCS)
            pooled[np.argsort(-scores)[:pool]] = True
        names = [f"q{q}d{i}" for i in range(N_DOCS)]
        scores = easy + bias * human + rng.normal(size=N_DOCS)
        results[f"q{q}"] = dict(zip(names, scores.tolist(), strict=True))
        judged[f"q{q}"] = {names[i]: int(relevant[i]) for i in np.flatnonzero(pooled)}
    tags = {f"q{q}d{i}": str(SIDES[i]) for q in range(n) for i in range(N_DOCS)}
    return Run.from_dict(results), Qrels.from_dict(judged), read_tags(tags)


def verdicts(n: int, draws: int, **kind: float | int | None) -> list[SkewVerdict]:
    rng = np.random.default_rng((n, draws))
    return [
        measure_source_bias(*world(rng, n, **kind), config=CONFIG).systems[0].verdicts[0]  # type: ignore[arg-type]
        for _ in range(draws)
    ]


def as_judged(found: SkewVerdict) -> bool:
    """Whether a source would be favoured, were the unjudged simply not relevant."""
    assert found.interval is not None
    return found.interval.excludes(0.0)


@pytest.mark.parametrize("pool", [10, 20])
def test_a_blind_ranker_is_not_called_biased(pool: int) -> None:
    found = verdicts(100, 60, pool=pool, lean=1.0)
    wrong = sum(one.code in FAVOURS for one in found)
    assert binomtest(wrong, len(found), 0.05, alternative="greater").pvalue > 0.001
    # the control: as they were judged, many of these draws favour a source
    assert sum(map(as_judged, found)) > 10
    assert Counter(one.holes for one in found)[True] > 10


def test_power_stays_where_pools_do_not_lean() -> None:
    found = verdicts(100, 40, pool=10, bias=0.5)
    assert sum(one.code is SkewCode.FAVOURS_BASELINE for one in found) >= 36


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_holes_are_not_blamed_where_pools_do_not_lean(bias: float) -> None:
    # what is undecided either way, or decided one way by few queries, is open for want of queries
    found = verdicts(30, 150, pool=10, bias=bias)
    blamed = sum(one.holes and not as_judged(one) for one in found)
    assert binomtest(blamed, len(found), 0.05, alternative="greater").pvalue > 0.001
    undecided = [one for one in found if one.code is SkewCode.CANNOT_TELL and not one.holes]
    assert len(undecided) > 20
    assert all(one.n_needed for one in undecided)


def test_judgments_without_holes_are_as_ever() -> None:
    rng = np.random.default_rng(3)
    run, qrels, tags = world(rng, 30, pool=None, bias=0.5)
    report = measure_source_bias(run, qrels, tags, config=CONFIG)
    assert report.systems[0].holes == ()
    assert not report.systems[0].verdicts[0].holes
