from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_sourcebias.pairs.annotate import Annotations, AnswerTable, KeyUnit
from rag_sourcebias.pairs.annotated import annotator_agreement, majority_tables
from rag_sourcebias.pairs.findings import PairsCode

NAMES = ("human", "llm", "equal")


def annotations_of(codes, *, categories=NAMES, sources=("human", "llm")):
    codes = np.asarray(codes, dtype=np.int64)
    return Annotations(
        sheet_id="s",
        annotators=tuple(f"a{i}" for i in range(codes.shape[1])),
        units=tuple(KeyUnit(unit_id=str(i), sources=sources) for i in range(len(codes))),
        tables=(AnswerTable(question="relevance", categories=categories, codes=codes),),
    )


def measured(codes, **options):
    found = annotator_agreement(annotations_of(codes), "relevance", **{"resamples": 200, **options})
    return {a.name: a for a in found}


def literal_percent(rows):
    shares = [np.mean([x == y for x, y in permutations(row, 2)]) for row in rows if len(row) >= 2]
    return np.mean(shares) if shares else None


def literal_alpha(rows):
    """Krippendorff 2011: coincidences, value by value."""
    values = [v for row in rows if len(row) >= 2 for v in row]
    n = len(values)
    seen = sum(
        (x != y) / (len(row) - 1) for row in rows if len(row) >= 2 for x, y in permutations(row, 2)
    )
    chance = sum(x != y for x, y in permutations(values, 2))
    return None if chance == 0 else 1 - (n - 1) * seen / chance


@given(
    arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(2, 4)), elements=st.integers(-2, 2))
)
@settings(max_examples=60, deadline=None)
def test_percent_and_alpha_follow_their_definitions(codes):
    rows = [[v for v in row if v >= 0] for row in codes.tolist()]
    found = measured(codes, resamples=5)
    for name, expected in (
        ("percent", literal_percent(rows)),
        ("krippendorff_alpha", literal_alpha(rows)),
    ):
        value = found[name].value
        assert (value is None) == (expected is None)
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
        assert value is not None or found[name].note


def test_alpha_of_krippendorffs_own_example():
    # Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 0.743
    table = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    codes = np.array([[-1 if v == "." else int(v) - 1 for v in row.split()] for row in table]).T
    data = annotations_of(codes, categories=("1", "2", "3", "4", "5"))
    found = {a.name: a for a in annotator_agreement(data, "relevance", resamples=100)}
    assert found["krippendorff_alpha"].value == pytest.approx(0.743, abs=5e-4)
    assert found["krippendorff_alpha"].n_units == 11


def test_missing_answers_leave_out_units_with_less_than_two():
    codes = np.array([[0, 0, 0], [0, 1, -1], [2, -1, -1], [1, 1, 1], [-2, 2, 2], [2, 2, 0]])
    found = measured(codes)
    assert found["percent"].n_units == 5
    assert found["krippendorff_alpha"].n_units == 5
    assert found["percent"].value == pytest.approx((1 + 0 + 1 + 1 + 1 / 3) / 5)


def test_intervals_cover_the_truth_about_as_often_as_stated():
    # two annotators who are right with chance .8 and guess among three answers otherwise
    truth_rng = np.random.default_rng(11)
    agree = 0.8**2 + (1 - 0.8**2) / 3
    kappa = (agree - 1 / 3) / (1 - 1 / 3)
    inside = {"percent": 0, "krippendorff_alpha": 0}
    runs = 200
    for _ in range(runs):
        real = truth_rng.integers(3, size=(60, 1))
        known = truth_rng.random((60, 2)) < 0.8
        codes = np.where(known, real, truth_rng.integers(3, size=(60, 2)))
        for a in annotator_agreement(annotations_of(codes), "relevance", resamples=200):
            inside[a.name] += not a.interval.excludes(agree if a.name == "percent" else kappa)
    # 95 % nominal: below 90 % has probability 0.2 % in 200 runs
    assert {name: hits / runs >= 0.90 for name, hits in inside.items()} == dict.fromkeys(
        inside, True
    )
    assert min(inside.values()) < runs


@pytest.mark.parametrize(
    ("codes", "name", "value", "note"),
    [
        ([[2, 2, 2]] * 5, "percent", 1.0, PairsCode.SAME_IN_ALL),
        ([[2, 2, 2]] * 5, "krippendorff_alpha", None, PairsCode.ONE_CATEGORY),
        ([[2, 2, 2]] * 5 + [[2, 2, 0]], "krippendorff_alpha", 0.0, PairsCode.OFTEN_UNDEFINED),
        ([[0, 1, 1]], "percent", 1 / 3, PairsCode.ONE_UNIT),
        ([[0, -1, -1]] * 3, "percent", None, PairsCode.NO_TWO_ANSWERS),
        ([[-1, -1, -1]], "krippendorff_alpha", None, PairsCode.NO_TWO_ANSWERS),
    ],
)
def test_what_has_no_value_or_interval_says_why(codes, name, value, note):
    found = measured(codes)[name]
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.interval is None
    assert found.note.code is note


def votes(majority, n, unanimous, other):
    """``n`` units with this majority among three, ``unanimous`` of them by all."""
    return [[majority] * 3] * unanimous + [[majority, majority, other]] * (n - unanimous)


@pytest.mark.parametrize(
    ("groups", "published"),
    [
        # [K] Table 3: human, LLM, equal in percent, and the share agreed by all in brackets
        ([votes(2, 50, 41, 0)], [(0, None), (0, None), (100, 82.0)]),
        (
            [votes(0, 4, 1, 2), votes(1, 3, 0, 2), votes(2, 43, 20, 0)],
            [(8, 25), (6, 0), (86, 46.5)],
        ),
        ([votes(0, 1, 0, 2), votes(2, 49, 40, 1)], [(2, 0), (0, None), (98, 81.6)]),
        (
            [votes(0, 2, 1, 1), votes(1, 3, 1, 0), votes(2, 45, 27, 0)],
            [(4, 50), (6, 33.3), (90, 60)],
        ),
    ],
)
def test_table_3_figures_reappear_from_votes_that_give_them(groups, published):
    codes = [row for group in groups for row in group]
    (table,) = majority_tables(annotations_of(codes))
    assert (table.n_units, table.n_no_majority, table.n_too_few) == (50, 0, 0)
    assert [s.category for s in table.shares] == list(NAMES)
    for share, (percent, unanimous) in zip(table.shares, published, strict=True):
        assert 100 * share.share.estimate == pytest.approx(percent)
        if unanimous is None:
            assert share.unanimous is None
        else:
            assert round(100 * share.unanimous, 1) == unanimous
    assert table.shares[0].share.upper > 0.07  # 0 of 50 does not mean never
