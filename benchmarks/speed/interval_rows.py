"""Speed of intervals: conformal calibration, and one interval for a million items."""

from __future__ import annotations

import time
from collections.abc import Callable

import crc
import numpy as np

from rag_sourcebias.stats.means import mean_interval

Row = Callable[[str, str, str, float, str, bool], dict]


def interval_rows(row: Row, *, quick: bool) -> list[dict]:
    return [*_calibration(row, quick=quick), _million(row, n=100_000 if quick else 1_000_000)]


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
