"""Exposure-aware re-ranking: the minima hold, and nothing moves without need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.data import DocTags, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.rescore import ExposureReranker, constrained_order
from rag_sourcebias.stats.exposure import awrf, exposure

HALF = Fraction(1, 2)


def ranked(reranker: ExposureReranker, sources: list[str | None]) -> list[int]:
    ids = [str(i) for i in range(len(sources))]
    scores = reranker(
        "q", doc_ids=ids, texts=ids, tags=[DocTags(source=s) for s in sources], scores=None
    )
    if scores is None:
        return list(range(len(sources)))
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def holds(order: list[int], groups: list[int], shares: list[Fraction]) -> bool:
    """The definition: k places hold at least floor(share · k), or all there are."""
    return all(
        sum(groups[i] == g for i in order[:k])
        >= min(math.floor(share * k), sum(x == g for x in groups))
        for k in range(1, len(order) + 1)
        for g, share in enumerate(shares)
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[Fraction]]:
    parts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    slack = draw(st.integers(0, 6))
    total = max(sum(parts) + slack, 1)
    groups = draw(st.lists(st.integers(0, len(parts) - 1), max_size=14))
    return groups, [Fraction(part, total) for part in parts]


@settings(max_examples=100, deadline=None)
@given(problems())
def test_minima_hold_at_every_depth_and_groups_keep_their_order(
    problem: tuple[list[int], list[Fraction]],
) -> None:
    groups, shares = problem
    order = constrained_order(groups, shares)
    assert sorted(order) == list(range(len(groups)))
    assert holds(order, groups, shares)
    for group in set(groups):
        members = [i for i in order if groups[i] == group]
        assert members == sorted(members)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_ranking_that_meets_the_minima_is_left_alone(
    problem: tuple[list[int], list[Fraction]],
) -> None:
    groups, shares = problem
    identity = list(range(len(groups)))
    if holds(identity, groups, shares):
        assert constrained_order(groups, shares) == identity
    again = constrained_order(groups, shares)
    regrouped = [groups[i] for i in again]
    assert constrained_order(regrouped, shares) == identity


def test_neighbours_are_out_of_order_only_where_a_minimum_demands_it() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        groups = rng.integers(0, 3, size=9).tolist()
        shares = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
        order = constrained_order(groups, shares)
        for at in range(len(order) - 1):
            if order[at] > order[at + 1]:
                swapped = [*order[:at], order[at + 1], order[at], *order[at + 2 :]]
                assert not holds(swapped, groups, shares)


def every_feasible(groups: list[int], shares: list[Fraction]) -> list[tuple[int, ...]]:
    orders = itertools.permutations(range(len(groups)))
    return [order for order in orders if holds(list(order), groups, shares)]


def n_reversed(order: Sequence[int]) -> int:
    return sum(a > b for a, b in itertools.combinations(order, 2))


def test_with_two_groups_the_order_is_the_first_feasible_one() -> None:
    """Best candidate first, then second: the smallest feasible order, found by trying all."""
    for groups in itertools.product((0, 1), repeat=6):
        feasible = every_feasible(list(groups), [HALF, HALF])
        assert constrained_order(list(groups), [HALF, HALF]) == list(min(feasible))


def test_with_two_groups_and_any_shares_no_feasible_order_reverses_fewer_pairs() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        groups = rng.integers(0, 2, size=rng.integers(3, 7)).tolist()
        first, second, slack = (int(part) for part in rng.integers(0, 4, size=3))
        total = max(first + second + slack, 1)
        shares = [Fraction(first, total), Fraction(second, total)]
        feasible = every_feasible(groups, shares)
        found = constrained_order(groups, shares)
        assert found == list(min(feasible))
        assert n_reversed(found) == min(map(n_reversed, feasible))


def published(groups: list[int], shares: list[Fraction], *, slips: bool) -> list[int]:
    """Algorithm 3 as it is printed, on groups that do not run out; its condition may be mended."""
    members = [[i for i, g in enumerate(groups) if g == group] for group in range(len(shares))]
    counts, minima = [0] * len(shares), [0] * len(shares)
    ranked: list[int] = []
    deadlines: list[int] = []
    k = 0
    while len(ranked) < len(groups):
        k += 1
        wanted = [math.floor(share * k) for share in shares]
        changed = [g for g in range(len(shares)) if minima[g] < wanted[g]]
        for g in sorted(changed, key=lambda g: members[g][counts[g]]):
            ranked.append(members[g][counts[g]])
            deadlines.append(k)
            start = len(ranked) - 1
            while (
                start > 0
                and deadlines[start - 1] >= start + (not slips)
                and ranked[start - 1] > ranked[start]
            ):
                for column in (ranked, deadlines):
                    column[start - 1], column[start] = column[start], column[start - 1]
                start -= 1
            counts[g] += 1
        minima = wanted
    return ranked


def test_it_is_the_published_algorithm_but_for_a_condition_that_breaks_minima() -> None:
    rng, broken = np.random.default_rng(5), 0
    for _ in range(300):
        parts = rng.integers(1, 4, size=rng.integers(2, 5)).tolist()
        shares = [Fraction(part, sum(parts)) for part in parts]
        times = int(rng.integers(1, 4))  # so that all groups run out at once
        groups = rng.permutation(np.repeat(np.arange(len(parts)), np.array(parts) * times)).tolist()
        assert constrained_order(groups, shares) == published(groups, shares, slips=False)
        broken += not holds(published(groups, shares, slips=True), groups, shares)
    assert broken > 30  # printed, one place below a minimum; else there were nothing to change


def test_half_and_half_by_hand() -> None:
    assert constrained_order([0, 0, 0, 1, 1], [HALF, HALF]) == [0, 3, 1, 4, 2]


def test_shares_are_exact_decimals() -> None:
    sources = ["llm:x"] * 100 + ["human"] * 29
    order = ranked(ExposureReranker({"human": 0.29}), list(sources))
    assert sum(sources[i] == "human" for i in order[:100]) == 29
    assert order[3] == 100  # the first place at which .29 · k reaches 1 is 4


def test_shares_of_the_candidates_are_the_default() -> None:
    sources: list[str | None] = ["llm:x"] * 6 + ["human"] * 2
    assert ranked(ExposureReranker(), sources) == [0, 1, 2, 6, 3, 4, 5, 7]


def test_untagged_documents_keep_their_ranks() -> None:
    sources = ["llm:x", None, "llm:x", None, "human", "human"]
    assert ranked(ExposureReranker({"human": 0.5}), sources) == [0, 1, 4, 3, 2, 5]


@pytest.mark.parametrize("sources", [[], [None, None], ["human", None], ["human", "human"]])
def test_one_source_leaves_everything_as_it_is(sources: list[str | None]) -> None:
    ids = [str(i) for i in range(len(sources))]
    tags = [DocTags(source=s) for s in sources]
    assert ExposureReranker()("q", doc_ids=ids, texts=ids, tags=tags, scores=None) is None


def test_a_run_is_reranked_query_by_query_and_gains_proportional_exposure() -> None:
    rng = np.random.default_rng(0)
    sources = {f"d{i}": ("human" if i % 2 else "llm:x") for i in range(40)}
    lists = []
    for q in range(20):
        ids = sorted(sources, key=lambda d: rng.normal() - 1.5 * (sources[d] == "llm:x"))
        lists.append(RankedList(query_id=str(q), doc_ids=tuple(ids)))
    tags = TagTable.from_tags((d, DocTags(source=s)) for d, s in sources.items())
    run = Run.from_lists([*lists, RankedList(query_id="empty", doc_ids=())])
    fair = ExposureReranker().apply_to(run, tags)
    target = {"human": 0.5, "llm:x": 0.5}
    before, after = (awrf(exposure(r, tags), target) for r in (run, fair))
    assert (after > before).all()
    assert after.min() > 0.99
    for row in range(20):
        ids = run.doc_codes[run.offsets[row] : run.offsets[row + 1]]
        order = ExposureReranker().order([sources[run.doc_ids[c]] for c in ids])
        assert order is not None
        assert fair.doc_codes[run.offsets[row] : run.offsets[row + 1]].tolist() == (
            ids[order].tolist()
        )


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"human": 1.2}, r"1.2 of 'human' is outside \[0, 1\]"),
        ({"human": -0.1}, "outside"),
        ({"human": math.nan}, "outside"),
        ({"human": 0.6, "llm:x": 0.5}, "add up to 1.1"),
        ({}, "at least one source"),
    ],
)
def test_impossible_shares_are_refused(shares: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ExposureReranker(shares)


def test_shares_beyond_one_and_missing_tags_are_refused() -> None:
    with pytest.raises(DataError, match="more than 1"):
        constrained_order([0, 1], [HALF, Fraction(2, 3)])
    with pytest.raises(DataError, match="2 documents but 1 tags"):
        ExposureReranker()("q", doc_ids=["a", "b"], texts=["", ""], tags=[DocTags()], scores=None)
