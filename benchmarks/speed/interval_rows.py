"""Speed of intervals: conformal calibration, and one interval for a million items."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import crc
import numpy as np

from rag_sourcebias.judged.files import read_judged_items
from rag_sourcebias.judged.judge_audit import audit_judge
from rag_sourcebias.stats.means import mean_interval
from rag_sourcebias.stats.systems import compare_systems

Row = Callable[[str, str, str, float, str, bool], dict]


def interval_rows(row: Row, *, quick: bool) -> list[dict]:
    n = 100_000 if quick else 1_000_000
    return [
        *_calibration(row, quick=quick),
        _million(row, n=n),
        *_audit(row, n=n),
        *_judges(row, n=n),
        _systems(row, quick=quick),
    ]


def _calibration(row: Row, *, quick: bool) -> list[dict]:
    found = crc.main(quick=quick)
    reference = f"bisection over bootstrap batches: {found['bisection_ms']:.0f} ms"
    return [
        row(
            "CRC calibration, same batches and same λ pair",
            f"{found['exact_ms']:.1f} ms",
            reference,
            found["exact_speedup"],
            "≥ 20×",
            found["exact_speedup"] >= 20 and found["largest_lambda_difference"] < 1e-9,
        ),
        row(
            "CRC calibration, M → ∞ (default)",
            f"{found['limit_ms']:.2f} ms",
            reference,
            found["limit_speedup"],
            "≥ 100×",
            found["limit_speedup"] >= 100,
        ),
        row(
            "… relative error of its width",
            f"{found['limit_width_error']:.4f}",
            f"10⁶ batches; a draw of 10,000 is off by {found['draw_width_error']:.4f}",
            found["limit_width_error"],
            "< 0.002",
            found["limit_width_error"] < 0.002,
        ),
    ]


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


def _judges(row: Row, *, n: int) -> list[dict]:
    """The command on n items of three judges, 16 digits each, in a process of its own."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    judges = 1 / (1 + np.exp(-truth[:, None] - rng.normal(size=(n, 3))))
    human = np.where(np.arange(n) < 300, (truth > 0).astype(float), np.nan)
    names = ["a", "b", "c"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items.csv"
        lines = (
            f"q{i},{'' if h != h else int(h)},{a!r},{b!r},{c!r}\n"
            for i, (h, (a, b, c)) in enumerate(zip(human, judges.tolist(), strict=True))
        )
        file.write_text("id,human,a,b,c\n" + "".join(lines), encoding="utf-8")
        start = time.perf_counter()
        read_judged_items(file, judge=names)
        reading = time.perf_counter() - start
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, str(file)], check=True, capture_output=True, text=True
        )
    seconds, peak = map(float, done.stdout.split()[-2:])
    return [
        row(
            f"interval from a file of {n:,} items and three judges, 16 digits",
            f"{seconds:.1f} s",
            f"reading them: {reading:.1f} s",
            seconds / reading,
            "≤ 3×",
            seconds / reading <= 3,
        ),
        row("… memory of its process", f"{peak:.0f} MB", "–", peak, "≤ 500 MB", peak <= 500),
    ]


_COMMAND = """
import re, sys, time
from pathlib import Path
from rag_sourcebias.cli import main
start = time.perf_counter()
sys.argv = ["rag-sourcebias", "interval", sys.argv[1]]
sys.argv += [part for name in "abc" for part in ("--judge", name)]
try:
    main()
except SystemExit as end:
    assert not end.code
seconds = time.perf_counter() - start
# Not getrusage: on Linux it goes on from what the process was forked from.
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(seconds, int(peak) / 1000)
"""


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
