"""Verdicts on a change, through ``measure_debias``, in worlds whose Relative Δ is known.

Every query has one human text and one by a model, and no other: who comes first is a coin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log2

import numpy as np
import pytest
from simulation import acceptable
from tagged_texts import dataset_of

from rag_sourcebias.core.data import Corpus, Dataset, Query, Run
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import (
    DebiasConfig,
)
from rag_sourcebias.debias.legacy_report import DebiasReport

pytestmark = pytest.mark.slow
LLM, SECOND = "llm:x", 1 / log2(3)
MOST = 200 * (1 - SECOND) / (1 + SECOND)  # Relative Δ@5 where human texts always come first
MARGIN, N, RUNS = 20.0, 80, 60
CONFIG = DebiasConfig(cutoffs=(5,), quality_cutoff=5, tolerance=MARGIN, resamples=199)


@dataclass(frozen=True)
class Coins:
    """Rank the human text of query i first where ``heads[i]``."""

    name: str
    heads: np.ndarray
    settings: Mapping[str, str] = field(default_factory=dict)

    def build(self, corpus: Corpus) -> Coins:
        object.__setattr__(self, "corpus", corpus)
        return self

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        codes = self.corpus.tags.source_codes  # type: ignore[attr-defined]
        of = np.array([int(text) for text in self.corpus.texts])  # type: ignore[attr-defined]
        human = codes == self.corpus.tags.sources.index("human") if "human" in (
            self.corpus.tags.sources
        ) else np.zeros(len(codes), bool)  # fmt: skip
        first = human == self.heads[of]
        order = np.lexsort((~first, of))
        return Run.from_arrays(
            query_ids=tuple(query.query_id for query in queries),
            query_codes=of[order].astype(np.int32),
            doc_codes=order.astype(np.int32),
            doc_ids=self.corpus.doc_ids,  # type: ignore[attr-defined]
        )


@cache
def data(n: int) -> Dataset:
    sides = (("h", "human"), ("l", LLM))
    rows = [(f"{s}{i}", source, str(i), str(i)) for i in range(n) for s, source in sides]
    grades = {f"q{i}": {f"h{i}": 1, f"l{i}": 1} for i in range(n)}
    return dataset_of(rows, {f"q{i}": str(i) for i in range(n)}, grades, name="coins")


def measured(before: float, after: float, rng: np.random.Generator, n: int = N) -> DebiasReport:
    """Compare two retrievers of these Relative Δ."""
    specs = [
        Coins(name, rng.random(n) < (1 + delta / MOST) / 2)
        for name, delta in (("before", before), ("after", after))
    ]
    return measure_debias(specs[0], specs[1:], [data(n)], config=CONFIG)


def verdicts(before: float, after: float, *, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    return Counter(measured(before, after, rng).verdict for _ in range(RUNS))


def rare(times: int) -> bool:
    """Whether a verdict that may be wrong in one of twenty cases was wrong no more often."""
    return 1 - times / RUNS >= acceptable(0.95, RUNS)


def test_a_skew_just_outside_the_margin_is_rarely_called_alike() -> None:
    assert rare(verdicts(30.0, -MARGIN - 0.5, seed=1)["alike"])


def test_no_skew_is_called_alike() -> None:
    found = verdicts(30.0, 0.0, seed=2)
    assert found["alike"] >= 0.85 * RUNS, found
    assert rare(found["made_worse"] + found["favours_other"])


def test_few_queries_are_not_enough_for_alike() -> None:
    """The negative control: with a quarter of the queries no skew is rarely proven."""
    rng = np.random.default_rng(3)
    found = Counter(measured(30.0, 0.0, rng, n=20).verdict for _ in range(100))
    assert found["alike"] <= 20
    assert found["cannot_tell"] >= 70


@pytest.mark.parametrize(("before", "after"), [(30.0, 30.0), (-30.0, 30.0)])
def test_what_is_as_far_as_before_is_rarely_called_worse(before: float, after: float) -> None:
    assert rare(verdicts(before, after, seed=4)["made_worse"])


@pytest.mark.parametrize(("before", "after"), [(0.0, 38.0), (8.0, -42.0)])
def test_what_is_further_than_before_is_called_worse(before: float, after: float) -> None:
    assert verdicts(before, after, seed=5)["made_worse"] >= 0.85 * RUNS


def test_the_queries_asked_for_are_enough() -> None:
    """At least three in four of the larger studies reach a verdict."""
    rng, done, reached = np.random.default_rng(6), 0, 0
    while done < 60:
        truth = rng.uniform(-40, 40)
        pilot = measured(truth, truth, rng, n=30).datasets[0].outcomes[1].skew_at(5)
        if pilot.n_needed is None or pilot.n_needed > 3_000:
            continue
        done += 1
        reached += measured(truth, truth, rng, n=pilot.n_needed).verdict != "cannot_tell"
    assert reached / done >= acceptable(0.75, done)
