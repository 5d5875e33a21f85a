"""Centred Relative Δ with its test and multiway interval, against what version 0.1 did instead."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from workload import Workload

from rag_sourcebias.core.skew import AuditConfig
from rag_sourcebias.stats.exposure import Dependence
from rag_sourcebias.stats.ranking import source_codes_for, source_scores
from rag_sourcebias.stats.skew import centred_delta, chance_of, published_delta

_DRAWS = 10_000
_BLOCK = 250_000


def centred_rows(row: Callable[..., dict], *, quick: bool) -> list[dict]:
    """Time both over the same per-source scores, six measures; and memory at two sizes."""
    n = 1_000 if quick else 10_000
    config, seconds = AuditConfig(), [float("inf")] * 2
    before, now = _works(n, config)
    for _ in range(2 if quick else 4):
        for i, work in enumerate((before, now)):
            start = time.perf_counter()
            work()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    peaks = []
    for size in (n // 2, n):
        _, work = _works(size, config)
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return [
        row(
            f"scores, both forms of Relative Δ, test and multiway interval, {n:,} × 100",
            f"{1000 * seconds[1]:.0f} ms",
            f"scores, published form and sign flips as in 0.1: {1000 * seconds[0]:.0f} ms",
            seconds[1] / seconds[0],
            "≤ 2×",
            seconds[1] <= 2 * seconds[0],
        ),
        row(
            "… its peak memory at twice the queries",
            f"{peaks[1] / 1e6:.0f} MB",
            f"at half: {peaks[0] / 1e6:.0f} MB",
            peaks[1] / peaks[0],
            "≤ 2.2× (linear)",
            peaks[1] <= 2.2 * peaks[0],
        ),
    ]


def _works(n: int, config: AuditConfig) -> tuple[Callable[[], None], Callable[[], None]]:
    load = Workload(n_queries=n, depth=100, n_sources=2)
    run, qrels, tags = load.run(), load.qrels(), load.tags()
    base, other = load.sources
    group = source_codes_for(qrels.doc_ids, tags)

    def published() -> list[tuple[np.ndarray, np.ndarray]]:
        found = source_scores(run, qrels, tags)
        pairs = [(found.of(m, base), found.of(m, other)) for m in found.measures]
        for h, low in pairs:
            published_delta(h, low, confidence_level=config.confidence_level)
        return pairs

    def before() -> None:
        rng = np.random.default_rng(0)
        for h, low in published():
            _sign_flips(h - low, rng)

    def now() -> None:
        published()
        chance = chance_of(run, qrels, group, config)
        dependence = Dependence.of(qrels, tags, None)
        for i in range(len(chance.measures)):
            centred_delta(chance, i, dependence, config)

    return before, now


def _sign_flips(difference: np.ndarray, rng: np.random.Generator) -> None:
    """Draw the sums of 10,000 patterns of signs in blocks, from bits."""
    n = len(difference)
    block = max(1, _BLOCK // n)
    for start in range(0, _DRAWS, block):
        size = min(block, _DRAWS - start)
        bits = np.unpackbits(
            np.frombuffer(rng.bytes(-(-size * n // 8)), dtype=np.uint8), count=size * n
        )
        _ = bits.reshape(size, n).astype(np.float64) @ difference
