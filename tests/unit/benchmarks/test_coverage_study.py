"""Coverage studies: what is drawn, what counts as true, what is counted."""

import numpy as np
import pytest
from benchmark_modules import load

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import mean_interval

(study,) = load("coverage", "study")
coverage_study, Tally = study.coverage_study, study.Tally

RNG = np.random.default_rng(0)
Y = RNG.gamma(2.0, 2.0, 300)
YHAT = Y + RNG.normal(1, 1, 300)


def exactly(value, half=0.0):
    return Interval(
        estimate=value,
        lower=value - half,
        upper=value + half,
        confidence_level=0.95,
        method=InferCode.LABELS_T(),
        n_labeled=2,
    )


def run(methods, **options):
    given = {"sizes": [20], "n_unlabeled": 30, "n_runs": 40, "rng": 3} | options
    return coverage_study(Y, YHAT, methods=methods, **given)


def test_cells_agree_with_a_plain_loop():
    seen = []

    def spy(y, yhat, pool):
        seen.append((y, yhat, pool))
        return mean_interval(y, yhat, pool)

    found = run({"spy": spy})
    intervals = [mean_interval(*sample) for sample in seen]
    cell = found[0]
    assert cell.mean_width == pytest.approx(np.mean([2 * v.half_width for v in intervals]))
    assert cell.coverage == np.mean([v.lower <= Y.mean() <= v.upper for v in intervals])
    named = run(["regression"])[0]
    assert (named.coverage, named.mean_width) == (cell.coverage, cell.mean_width)
    assert {len(y) for y, _, _ in seen} == {20}
    assert {len(pool) for _, _, pool in seen} == {30}
    # labelled pairs stay pairs
    known = dict(zip(Y.tolist(), YHAT.tolist(), strict=True))
    assert all(known[a] == b for y, yhat, _ in seen for a, b in zip(y, yhat, strict=True))


@pytest.mark.parametrize(
    ("target", "method"),
    [
        ("population", lambda y, yhat, pool: exactly(Y.mean())),
        ("unlabeled", lambda y, yhat, pool: exactly(pool.mean())),
        ("pool", lambda y, yhat, pool: exactly(np.concatenate([y, pool]).mean())),
    ],
)
def test_truth_of_each_target(target, method):
    """A perfect judge knows the truth of each target; no other target is the same."""
    for truth in ("population", "pool", "unlabeled"):
        found = coverage_study(
            Y, Y, sizes=[20], methods={"m": method}, n_unlabeled=30, n_runs=20, target=truth, rng=1
        )
        assert found[0].coverage == (1.0 if truth == target else 0.0)


def test_clusters_are_drawn_whole_and_copies_are_apart():
    cluster = np.repeat(np.arange(6), [1, 2, 3, 1, 2, 3])
    y = 100.0 * cluster + np.arange(12)
    sizes = {}

    def look(values, yhat, pool):
        codes, counts = np.unique(values // 100, return_counts=True)
        sizes.update(zip(codes.tolist(), counts.tolist(), strict=True))
        return exactly(0.0)

    coverage_study(
        y, y, sizes=[2], methods={"look": look}, n_unlabeled=1, n_runs=60, clusters=cluster, rng=0
    )
    assert all(count % len(y[cluster == code]) == 0 for code, count in sizes.items())
    found = coverage_study(
        Y, YHAT, sizes=[10], methods=["labels"], n_unlabeled=20, n_runs=5, rng=0,
        clusters=np.arange(300) // 3,
    )  # fmt: skip
    assert found[0].n_failed == 0


def test_refusals_are_counted_by_reason():
    def refuse(y, yhat, pool):
        raise InsufficientDataError(f"only {y[0]:.3f} of {len(y)}")

    cell = run({"refuse": refuse})[0]
    assert cell.failures == {"only # of #": 40}
    assert (cell.n_failed, cell.n_runs, cell.coverage, cell.mean_width) == (40, 40, 0.0, 0.0)


def test_zero_width_holds_the_truth_up_to_rounding():
    tally = Tally("m", 2)
    tally.add(0.3, 0.3, 0.1 + 0.2)
    tally.add(0.3, 0.3, 0.3001)
    assert tally.cell().coverage == 0.5
