"""Curves over a debias weight: points, their intervals over seeds, and where skew vanishes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.debias.data import DebiasConfig, DebiasScores, DebiasSearch
from rag_sourcebias.debias.search import debias_curve, relative_delta_over_seeds
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import relative_delta_interval

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4)
CONFIG = DebiasConfig(cutoffs=(5,), quality_cutoff=5)
Scores = dict[float, list[DebiasScores]]


def scored(rows: Sequence[np.ndarray]) -> DebiasScores:
    values = np.array(rows)[:, None, :]
    ids = tuple(f"q{i}" for i in range(values.shape[-1]))
    return DebiasScores(name="x", query_ids=ids, cutoffs=(5,), values=values)


def scores(
    *,
    weights: tuple[float, ...] = WEIGHTS,
    seeds: int = 3,
    n: int = 400,
    tilt: float = -0.1,
    slope: float = 0.5,
    seed_sd: float = 0.0,
) -> Scores:
    """Human minus LLM scores move as tilt + slope · w; qualities stay."""
    rng = np.random.default_rng(0)
    query = rng.uniform(0.4, 0.6, n)
    found: Scores = {}
    for weight in weights:

        def draw(shift: float, at: float = weight) -> np.ndarray:
            noise = 0.02 * rng.normal(size=(seeds, n)) if at else 0.02 * rng.normal(size=n)
            own = seed_sd * rng.normal(size=(seeds, 1)) if at else np.zeros((seeds, 1))
            return query + shift + noise + own

        gap = (tilt + slope * weight) / 2
        human, llm, alone, other = draw(gap), draw(-gap), draw(0.2), draw(0.2)
        both = (human + llm) / 2
        found[weight] = [
            scored([human[s], llm[s], alone[s], other[s], both[s]]) for s in range(seeds)
        ]
    return found


def curve(found: Scores, config: DebiasConfig = CONFIG) -> DebiasSearch:
    return debias_curve(found, searched="weight", data="d", config=config)


def test_points_and_the_crossing() -> None:
    given = scores()
    found = curve(given)
    assert [p.weight for p in found.points] == list(WEIGHTS)
    # Relative Δ = 200 · (tilt + slope w) / 1: -20, -10, 0, 10, 20
    assert [p.relative_delta.estimate for p in found.points] == pytest.approx(
        [-20, -10, 0, 10, 20], abs=0.7
    )
    for point in found.points:
        mean = np.mean([one.of("mixed", 5) for one in given[point.weight]])
        assert point.mixed.estimate == pytest.approx(mean)
    assert found.zero_crossing is not None
    assert found.zero_crossing.estimate == pytest.approx(0.2, abs=0.01)
    assert not found.zero_crossing.excludes(0.2)
    assert found.zero_crossing.half_width < 0.02
    assert (found.n_seeds, found.searched, found.data) == (3, "weight", "d")
    assert DebiasSearch.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_target_is_a_dial() -> None:
    crossing = curve(scores(), DebiasConfig(cutoffs=(5,), quality_cutoff=5, target=10.0))
    assert crossing.zero_crossing is not None
    assert crossing.zero_crossing.estimate == pytest.approx(0.3, abs=0.01)


def test_seeds_that_differ_widen_the_curves() -> None:
    alike, apart = (curve(scores(seed_sd=sd)).points[3] for sd in (0.0, 0.02))
    assert apart.relative_delta.half_width > 3 * alike.relative_delta.half_width
    assert apart.human_only.half_width > 1.5 * alike.human_only.half_width
    assert apart.relative_delta.method.code is InferCode.WITH_SEEDS
    assert InferCode.SEEDS_SAMPLED() in apart.relative_delta.assumptions


def test_one_row_has_the_intervals_of_an_audit() -> None:
    (one,) = scores(seeds=1)[0.1]
    human, llm = one.of("baseline", 5), one.of("other", 5)
    assert relative_delta_over_seeds(
        human[None], llm[None], confidence_level=0.9
    ) == relative_delta_interval(human, llm, confidence_level=0.9)


def test_three_equal_rows_say_what_one_row_says() -> None:
    given = scores(seeds=1)
    once, thrice = curve(given), curve({weight: found * 3 for weight, found in given.items()})
    for three, one in zip(thrice.points, once.points, strict=True):
        assert three.relative_delta.lower == pytest.approx(one.relative_delta.lower)
        assert three.mixed.upper == pytest.approx(one.mixed.upper)


def test_a_curve_that_never_meets_the_target() -> None:
    assert curve(scores(slope=0.05)).zero_crossing is None


def test_a_curve_that_turns_back_meets_the_target_twice() -> None:
    turning = scores() | {0.5: scores(weights=(0.0, 0.5), slope=-0.2)[0.5]}
    crossing = curve(turning).zero_crossing
    assert crossing is not None
    assert crossing.estimate == pytest.approx(0.2, abs=0.01)
    assert crossing.upper > 0.4
    assert InferCode.CROSSES_AGAIN(n=2) in crossing.notes


def test_crossing_that_the_weights_tried_do_not_bound() -> None:
    crossing = curve(scores(weights=(0.0, 0.1, 0.201), n=25, seed_sd=0.02)).zero_crossing
    assert crossing is not None
    assert crossing.upper == 0.201
    assert InferCode.BEYOND_POSSIBLE() in crossing.notes


def test_systems_that_do_not_belong_together() -> None:
    found = scores()
    with pytest.raises(DataError, match=r"weights \[0.1, 0.2, 0.3, 0.4\] must hold 0"):
        curve({w: of for w, of in found.items() if w})
    with pytest.raises(DataError, match=r"have \[3, 3, 3, 3, 2\] systems; every weight needs"):
        curve(found | {0.4: found[0.4][:2]})
    with pytest.raises(DataError, match="different queries"):
        curve(found | {0.4: scores(n=300)[0.4]})
    with pytest.raises(InsufficientDataError, match=r"2 seeds .* at least 3") as raised:
        curve({weight: of[:2] for weight, of in found.items()})
    assert raised.value.n_needed == 3
