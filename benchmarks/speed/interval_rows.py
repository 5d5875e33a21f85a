"""Speed of intervals, of a judge audit of a million items, and of many systems at once."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rag_sourcebias.infer.judged import compare_systems, mean_interval
from rag_sourcebias.intake.judged import read_judged_items
from rag_sourcebias.judged.judge_audit import audit_judge

Row = Callable[[str, str, str, float, str, bool], dict]


def interval_rows(row: Row, *, quick: bool) -> list[dict]:
    n = 100_000 if quick else 1_000_000
    return [_million(row, n=n), *_audit(row, n=n), _systems(row, quick=quick)]


def _million(row: Row, *, n: int) -> dict:
    rng = np.random.default_rng(0)
    judge = rng.normal(size=n)
    human = judge[:50] + rng.normal(size=50)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        mean_interval(human, judge[:50], judge[50:])
        seconds.append(time.perf_counter() - start)
    return row(
        f"an interval for {n:,} judged items, 50 of them labelled",
        f"{1000 * min(seconds):.0f} ms",
        "–",
        min(seconds),
        "< 0.2 s",
        min(seconds) < 0.2,
    )


def _audit(row: Row, *, n: int) -> list[dict]:
    """Read n labelled items of five systems, clustered by question, and audit their judge."""
    rng = np.random.default_rng(0)
    human = (rng.random(n) < 0.6).astype(int)
    judge = np.clip(0.5 + 0.3 * (human - 0.5) + 0.2 * rng.normal(size=n), 0, 1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items.csv"
        lines = (f"{i},q{i // 5},s{i % 5},{human[i]},{judge[i]:.3f}\n" for i in range(n))
        file.write_text("id,question,group,human,judge\n" + "".join(lines), encoding="utf-8")
        start = time.perf_counter()
        items = read_judged_items(file, cluster="question")
        reading = time.perf_counter() - start
    start = time.perf_counter()
    audit_judge(items)
    auditing = time.perf_counter() - start
    tracemalloc.start()
    audit_judge(items)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    times = (reading + auditing) / reading
    return [
        row(
            f"judge audit of {n:,} labelled items from a file",
            f"{reading + auditing:.1f} s",
            f"reading them: {reading:.1f} s",
            times,
            "≤ 3×",
            times <= 3,
        ),
        row("… memory beyond the items", f"{peak:.0f} MB", "–", peak, "≤ 500 MB", peak <= 500),
    ]


def _systems(row: Row, *, quick: bool) -> dict:
    """All pairs of 63 systems against the matrix product that forms their differences."""
    m, n, resamples = 63, 53, 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    y = rng.random((n, m))
    judge = np.clip(y + 0.2 * rng.normal(size=y.shape), 0, 1)
    first, second = np.triu_indices(m, 1)
    weights = rng.multinomial(n, np.full(n, 1 / n), resamples) / n
    product, ours = [], []
    for _ in range(3):
        start = time.perf_counter()
        weights @ (y[:, first] - y[:, second])
        product.append(time.perf_counter() - start)
        start = time.perf_counter()
        compare_systems(y, judge, judge[:0], bounds=(0, 1), n_resamples=resamples)
        ours.append(time.perf_counter() - start)
    times = min(ours) / min(product)
    return row(
        f"all pairs of {m} systems on {n} queries, {resamples:,} joint resamples",
        f"{1000 * min(ours):.0f} ms",
        f"matrix product of the differences: {1000 * min(product):.0f} ms",
        times,
        "≤ 6×",
        times <= 6,
    )
