"""The whole 10 × 10 style matrix with intervals, after embeddings.

    python benchmarks/speed/style_matrix.py [--quick]

1,000 queries in 10 styles × 10 document styles, 10,000 resamples, similarities drawn at random with
a bias per style. Returns the time of ``measure_style_bias`` (ranks, every interval, Friedman tests,
all pairs, matching, adjustment for length) and the ratio of a plain numpy loop over resamples to
the part of it that gives the same intervals. Before timing, the loop must give the same average
ranks, and intervals that differ by no more than the draw does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from rag_sourcebias.style.audit import measure_style_bias, style_matrix_intervals
from rag_sourcebias.style.data import StyleConfig, StyledTexts
from rag_sourcebias.style.measure import StyleMatrix

BAR = 5.0
QUERY_STYLES = ("original", *map(str, range(9)))
DOC_STYLES = ("human", *map(str, range(9)))
SAME_RANKS = 1e-12
SAME_ENDS = 0.02  # ranks; 10,000 resamples place an end of these intervals to about 0.005


def workload(n: int) -> tuple[np.ndarray, StyledTexts]:
    """Similarities of shape (n, 10, 10), and texts whose lengths differ between styles."""
    rng = np.random.default_rng(0)
    shape = (n, len(QUERY_STYLES), len(DOC_STYLES))
    scores = rng.normal(np.linspace(0, 1, len(DOC_STYLES)), 1.0, shape)
    scores += rng.normal(0, 1.0, (n, 1, len(DOC_STYLES)))  # a version is good for all query styles
    words = rng.integers(60, 180, (len(DOC_STYLES), n))
    texts = StyledTexts(
        query_ids=tuple(f"q{i}" for i in range(n)),
        queries={style: tuple(f"{style} query {i}" for i in range(n)) for style in QUERY_STYLES},
        documents={
            style: tuple(f"{style} {i}" + " word" * int(words[j, i]) for i in range(n))
            for j, style in enumerate(DOC_STYLES)
        },
        name="synthetic",
    )
    return scores, texts


def loop(ranks: np.ndarray, *, resamples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Percentile ends of average ranks and the resampled unfairness, one resample at a time."""
    rng = np.random.default_rng(1)
    n, q, d = ranks.shape
    means = np.empty((resamples, q, d))
    scores = np.empty((resamples, q))
    for b in range(resamples):
        found = ranks[rng.integers(0, n, n)].mean(axis=0)
        means[b] = found
        scores[b] = np.ptp(found, axis=1) * found.std(axis=1)
    lower, upper = np.quantile(means, [0.025, 0.975], axis=0)
    return lower, upper, scores


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def agreement(matrix: StyleMatrix, *, resamples: int) -> float:
    """Largest difference of interval ends between ours and the loop."""
    ours = style_matrix_intervals(matrix, resamples=resamples).average_ranks
    lower, upper, _ = loop(matrix.ranks, resamples=resamples)
    ends = np.array([[[cell.lower, cell.upper] for cell in row if cell] for row in ours])
    centre = np.array([[cell.estimate for cell in row if cell] for row in ours])
    if np.abs(centre - matrix.ranks.mean(axis=0)).max() > SAME_RANKS:
        raise SystemExit("average ranks differ from the mean over queries")
    return float(np.abs(ends - np.stack([lower, upper], axis=-1)).max())


def main(*, quick: bool = False) -> dict[str, float]:
    """Return seconds of both sides, their ratio and the largest difference of interval ends."""
    n, resamples, rounds = (100, 500, 1) if quick else (1_000, 10_000, 3)
    scores, texts = workload(n)
    config = StyleConfig(resamples=resamples)
    matrix = StyleMatrix.from_scores(
        scores, query_styles=QUERY_STYLES, doc_styles=DOC_STYLES, query_ids=texts.query_ids
    )
    difference = agreement(matrix, resamples=resamples)
    if not quick and difference > SAME_ENDS:
        raise SystemExit(f"interval ends differ by {difference:.4f} ranks from the plain loop")

    best = {"verb": np.inf, "intervals": np.inf, "loop": np.inf}
    for _ in range(rounds):
        for name, work in (
            ("verb", lambda: measure_style_bias({"synthetic": scores}, texts, config=config)),
            ("intervals", lambda: style_matrix_intervals(matrix, resamples=resamples)),
            ("loop", lambda: loop(matrix.ranks, resamples=resamples)),
        ):
            best[name] = min(best[name], seconds(work))
    return {
        "queries": n,
        "resamples": resamples,
        "measure_style_bias_seconds": round(best["verb"], 3),
        "bar_seconds": BAR,
        "intervals_seconds": round(best["intervals"], 3),
        "numpy_loop_seconds": round(best["loop"], 3),
        "loop_over_intervals": round(best["loop"] / best["intervals"], 2),
        "largest_difference_of_ends": round(difference, 5),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Speed of the style matrix.")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    print(json.dumps(main(quick=parser.parse_args().quick), indent=1))
