from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.debias.data import DebiasCandidate, DebiasSearch
from rag_sourcebias.debias.search import (
    relative_delta_over_seeds,
    search_debias_weight,
    split_queries,
)
from rag_sourcebias.stats.ratio import relative_delta_interval

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4)


def candidates(
    *,
    weights: tuple[float, ...] = WEIGHTS,
    seeds: int = 3,
    n: int = 400,
    tilt: float = -0.1,
    slope: float = 0.5,
    cost: float = 0.0,
    seed_sd: float = 0.0,
    seed: int = 0,
) -> list[DebiasCandidate]:
    """Human minus LLM scores move as tilt + slope · w; every quality loses cost · w."""
    rng = np.random.default_rng(seed)
    query = rng.uniform(0.4, 0.6, n)
    found = []
    for weight in weights:

        def draw(shift: float, at: float = weight) -> np.ndarray:
            noise = 0.02 * rng.normal(size=(seeds, n)) if at else 0.02 * rng.normal(size=n)
            own = seed_sd * rng.normal(size=(seeds, 1)) if at else np.zeros((seeds, 1))
            return query + shift - cost * at + noise + own

        gap = (tilt + slope * weight) / 2
        found.append(
            DebiasCandidate(
                weight=weight,
                baseline=draw(gap),
                other=draw(-gap),
                human_only=draw(0.2),
                llm_only=draw(0.2),
                query_ids=tuple(f"q{i}" for i in range(n)),
            )
        )
    return found


def test_finds_the_weight_nearest_to_no_skew_and_the_crossing() -> None:
    result = search_debias_weight(candidates())
    assert [p.weight for p in result.points] == list(WEIGHTS)
    assert all(p.admitted for p in result.points)
    assert result.chosen == result.selected == 0.2
    assert result.refusal is None
    # Relative Δ = 200 · (tilt + slope w) / 1: -20, -10, 0, 10, 20
    assert [p.relative_delta.estimate for p in result.points] == pytest.approx(
        [-20, -10, 0, 10, 20], abs=0.7
    )
    assert result.zero_crossing is not None
    assert result.zero_crossing.estimate == pytest.approx(0.2, abs=0.01)
    assert not result.zero_crossing.excludes(0.2)
    assert result.zero_crossing.half_width < 0.02
    assert not result.split
    assert result.n_seeds == 3


def test_target_is_a_dial() -> None:
    result = search_debias_weight(candidates(), target=10.0)
    assert result.chosen == 0.3
    assert result.zero_crossing is not None
    assert result.zero_crossing.estimate == pytest.approx(0.3, abs=0.01)


def test_a_weight_that_costs_quality_is_passed_over_with_the_reason() -> None:
    result = search_debias_weight(candidates(cost=0.02))
    refused = result.point(0.4)
    assert not refused.admitted
    assert refused.refusal is not None
    assert "mixed changed by -1." in refused.refusal
    assert "accepted is 1 %" in refused.refusal
    assert result.chosen == 0.1
    assert result.point(0.1).refusal is None


def test_nothing_passes_and_the_result_says_what_failed() -> None:
    result = search_debias_weight(candidates(cost=0.5))
    assert result.chosen is None
    assert result.selected is None
    assert result.chosen_relative_delta is None
    assert result.refusal is not None
    assert "no weight above 0 is shown to lose less than 1 %" in result.refusal
    assert "human-only fails at 4 of 4" in result.refusal
    assert result.zero_crossing is not None  # the curve is still reported


def test_only_the_failing_constraint_is_named() -> None:
    found = candidates()
    worse = [found[0]] + [replace(c, llm_only=c.llm_only * 0.9) for c in found[1:]]
    result = search_debias_weight(worse)
    assert result.refusal is not None
    assert "llm-only fails at 4 of 4" in result.refusal
    assert "human-only" not in result.refusal
    assert "mixed" not in result.refusal


def test_too_few_queries_to_decide_says_how_many_would() -> None:
    rng = np.random.default_rng(0)
    found = candidates(n=60)
    loud = [found[0]] + [
        replace(c, human_only=found[0].human_only + rng.normal(0, 0.1, c.shape).clip(-0.2, 0.2))
        for c in found[1:]
    ]
    result = search_debias_weight(loud)
    assert result.refusal is not None
    assert "on 60 queries: human-only fails" in result.refusal
    assert "queries may show it for one of them" in result.refusal


def test_tests_over_weights_are_holm_adjusted_without_a_split_and_not_with_one() -> None:
    found = candidates(cost=0.01)
    together = search_debias_weight(found)
    own = [p.p_value for p in together.points[1:]]
    adjusted = [p.p_adjusted for p in together.points[1:]]
    order = np.argsort(own)
    expected = np.minimum(np.maximum.accumulate(np.array(own)[order] * [4, 3, 2, 1]), 1)
    assert np.array(adjusted)[order] == pytest.approx(expected)
    assert together.chosen_relative_delta is not None
    assert together.chosen_relative_delta.confidence_level == pytest.approx(1 - 0.05 / 5)
    for point in together.points[1:]:
        assert point.p_value == max(t.p_value for t in point.tests)

    choose, report = split_queries(400, rng=1)
    apart = search_debias_weight(found, select_on=choose, report_on=report)
    assert apart.split
    assert [p.p_adjusted for p in apart.points] == [p.p_value for p in apart.points]
    assert apart.points[0].relative_delta.n_labeled == 200
    assert apart.chosen_relative_delta == apart.point(apart.selected or 0.0).relative_delta
    assert "other queries" in apart.assumptions[1]


def test_a_choice_that_the_reported_queries_do_not_confirm_is_withdrawn() -> None:
    found = candidates(n=800)
    choose, report = np.arange(400), np.arange(400, 800)
    for c in found[1:]:
        c.mixed[:, report] *= 0.9
    result = search_debias_weight(found, select_on=choose, report_on=report)
    assert result.selected == 0.2
    assert result.chosen is None
    assert result.refusal is not None
    assert "weight 0.2 was chosen, but the queries reported do not confirm it" in result.refusal
    assert "mixed changed by -10" in result.refusal


def test_seeds_that_differ_widen_the_curves() -> None:
    alike, apart = (search_debias_weight(candidates(seed_sd=sd)).point(0.3) for sd in (0.0, 0.02))
    assert apart.relative_delta.half_width > 3 * alike.relative_delta.half_width
    assert apart.human_only.half_width > 1.5 * alike.human_only.half_width
    assert "queries × seeds" in apart.relative_delta.method
    assert any("seeds are a random sample" in a for a in apart.relative_delta.assumptions)


def test_one_row_has_the_intervals_of_an_audit() -> None:
    one = candidates(seeds=1)[1]
    assert relative_delta_over_seeds(one, confidence_level=0.9) == relative_delta_interval(
        one.baseline[0], one.other[0], confidence_level=0.9
    )
    result = search_debias_weight(candidates(seeds=1), deterministic=True)
    assert result.chosen == 0.2


def test_three_equal_rows_say_what_one_row_says() -> None:
    once = search_debias_weight(candidates(seeds=1), deterministic=True)
    thrice = search_debias_weight(
        [
            DebiasCandidate(
                weight=c.weight,
                **{
                    name: np.repeat(getattr(c, name), 3, axis=0)
                    for name in ("baseline", "other", "human_only", "llm_only", "mixed")
                },
            )
            for c in candidates(seeds=1)
        ]
    )
    assert thrice.chosen == once.chosen
    for three, one in zip(thrice.points, once.points, strict=True):
        assert three.relative_delta.lower == pytest.approx(one.relative_delta.lower)
        assert three.mixed.upper == pytest.approx(one.mixed.upper)


def test_quality_that_cannot_change_is_declared_and_checked() -> None:
    found = candidates(seeds=1, n=80, weights=(0.0, 0.2))
    same = replace(
        found[1],
        human_only=found[0].human_only,
        llm_only=found[0].llm_only,
        mixed=found[0].mixed + 0.001 * np.arange(80) / 80,
    )
    undeclared = search_debias_weight([found[0], same], deterministic=True)
    assert undeclared.chosen is None
    assert "only 0 of 80 queries changed" in (undeclared.points[1].refusal or "")
    declared = replace(same, unchanged=("human-only", "llm-only"))
    result = search_debias_weight([found[0], declared], deterministic=True)
    assert result.chosen == 0.2
    assert result.points[1].tests[0].note == "unchanged by construction"
    with pytest.raises(DataError, match="mixed is declared unchanged, but seed row 0, query col"):
        search_debias_weight([found[0], replace(same, unchanged=("mixed",))], deterministic=True)
    with pytest.raises(DataError, match=r"unchanged \['human'\] is no quality"):
        replace(same, unchanged=("human",))


def test_a_curve_that_never_meets_the_target() -> None:
    result = search_debias_weight(candidates(slope=0.05))
    assert result.zero_crossing is None
    assert "Relative Δ does not meet 0 at any weight up to 0.4; nearest is -1" in result.notes[0]
    assert result.chosen == 0.4


def test_a_curve_that_turns_back_meets_the_target_twice() -> None:
    found = candidates()
    turning = [*found, replace(candidates(weights=(0.0, 0.5), slope=-0.2)[1])]
    crossing = search_debias_weight(turning).zero_crossing
    assert crossing is not None
    assert crossing.estimate == pytest.approx(0.2, abs=0.01)
    assert crossing.upper > 0.4
    assert "meets the target 2 times" in " ".join(crossing.notes)


def test_crossing_that_the_weights_tried_do_not_bound() -> None:
    crossing = search_debias_weight(
        candidates(weights=(0.0, 0.1, 0.201), n=25, seed_sd=0.02)
    ).zero_crossing
    if crossing is None:
        pytest.fail("the curve was built to meet the target")
    assert crossing.upper == 0.201
    assert "may lie beyond the largest weight tried" in crossing.notes


def test_doing_nothing_is_chosen_where_it_is_nearest() -> None:
    result = search_debias_weight(candidates(tilt=0.0))
    assert result.chosen == 0.0


def test_mixed_quality_defaults_to_the_mean_of_both_versions() -> None:
    candidate = candidates()[1]
    assert candidate.of("mixed") == pytest.approx((candidate.baseline + candidate.other) / 2)


def test_round_trip_through_json() -> None:
    choose, report = split_queries(400)
    for result in (
        search_debias_weight(candidates(), select_on=choose, report_on=report),
        search_debias_weight(candidates(cost=0.5)),
    ):
        again = DebiasSearch.from_dict(json.loads(json.dumps(result.to_dict())))
        assert again == result
    with pytest.raises(DataError, match=r"no weight 9 was tried; there are \[0.0, 0.1"):
        again.point(9)


def test_order_of_candidates_does_not_matter() -> None:
    found = candidates()
    assert search_debias_weight(found[::-1]) == search_debias_weight(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": -1.0}, "weight -1.0 must be a number of at least 0"),
        ({"other": np.zeros((3, 399))}, r"other has shape \(3, 399\), baseline \(3, 400\)"),
        ({"other": np.full((3, 400), np.nan)}, "seed row 0, query column 0 is nan; scores must"),
        ({"llm_only": np.full((3, 400), 1.5)}, "llm_only of seed row 0, query column 0 is 1.5"),
        ({"seeds": (1, 1, 2)}, r"seeds must be 3 different names, got 3 \(2 different\)"),
        ({"query_ids": ("a",)}, "query_ids must be 400 different names, got 1"),
    ],
)
def test_a_candidate_refuses_what_it_cannot_use(change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        replace(candidates()[1], **change)


def test_candidates_that_do_not_belong_together() -> None:
    found = candidates()
    with pytest.raises(DataError, match=r"weights \[0.1, 0.2, 0.3, 0.4\] must hold 0"):
        search_debias_weight(found[1:])
    with pytest.raises(DataError, match="a weight occurs twice"):
        search_debias_weight([*found, found[1]])
    with pytest.raises(DataError, match=r"shape of weight 0.1 differ.*at position 1 300, not 400"):
        search_debias_weight([found[0], candidates(n=300)[1]])
    renamed = replace(found[1], query_ids=("x", *found[1].query_ids[1:]))
    with pytest.raises(DataError, match=r"query_ids of weight 0.1 .* position 0 'x', not 'q0'"):
        search_debias_weight([found[0], renamed])
    with pytest.raises(DataError, match=r"target 200\.0 is outside"):
        search_debias_weight(found, target=200.0)


def test_seeds_that_are_too_few() -> None:
    with pytest.raises(InsufficientDataError, match=r"2 seed\(s\) .* at least 3") as raised:
        search_debias_weight(candidates(seeds=2))
    assert raised.value.n_needed == 3
    with pytest.raises(DataError, match="deterministic method has one row per candidate, not 3"):
        search_debias_weight(candidates(), deterministic=True)


@pytest.mark.parametrize(
    ("select_on", "report_on", "error", "message"),
    [
        ([0, 1], None, DataError, "belong together"),
        ([0, 1], [1, 2], DataError, "share 1 queries, such as column 1"),
        ([0, 0], [1], DataError, "select_on must hold different column numbers from 0 to 399"),
        ([0], [400], DataError, "report_on must hold different column numbers"),
        ([True], [False], DataError, "select_on must be column numbers, got bool"),
        (range(10), range(10, 400), InsufficientDataError, "at least 20 queries, there are 10"),
    ],
)
def test_splits_that_are_refused(select_on, report_on, error, message) -> None:
    with pytest.raises(error, match=message):
        search_debias_weight(candidates(), select_on=select_on, report_on=report_on)


def test_split_covers_all_queries_once() -> None:
    choose, report = split_queries(101, rng=5)
    assert len(choose) == 50
    assert sorted([*choose, *report]) == list(range(101))
