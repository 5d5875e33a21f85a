"""The matrix of query and document styles."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.style.measure import StyleMatrix, matching_effect, style_ranks, unfairness_score

FORMS = ("original", "3", "8")
STYLES = ("human", "3", "8", "9")
IDS = ("a", "b", "c", "d", "e")


@pytest.fixture
def scores():
    return np.random.default_rng(4).integers(0, 9, (5, 3, 4)) / 9


def matrix_of(scores, **options):
    return StyleMatrix.from_scores(
        scores, query_styles=FORMS, doc_styles=STYLES, query_ids=IDS, **options
    )


def test_averages_against_a_loop(scores):
    found = matrix_of(scores)
    expected = [
        [
            np.mean([stats.rankdata(-scores[i, a])[b] for i in range(len(IDS))])
            for b in range(len(STYLES))
        ]
        for a in range(len(FORMS))
    ]
    np.testing.assert_allclose(found.average, expected)
    np.testing.assert_allclose(found.average.sum(axis=1), 10)
    assert found.unfairness(ddof=1).tolist() == [
        unfairness_score(row, ddof=1) for row in np.array(found.average)
    ]


def test_row_is_what_style_ranks_finds(scores):
    row = matrix_of(scores).row("3")
    alone = style_ranks(scores[:, 1], styles=STYLES, query_ids=IDS)
    np.testing.assert_array_equal(row.ranks, alone.ranks)
    assert (row.query_ids, row.styles) == (IDS, STYLES)
    with pytest.raises(DataError, match="no query style '7'"):
        matrix_of(scores).row("7")


def test_it_is_frozen(scores):
    with pytest.raises(dataclasses.FrozenInstanceError):
        matrix_of(scores).query_ids = ()


@pytest.mark.parametrize("ties", ["average", "min", "max"])
def test_round_trip_through_json(scores, ties):
    scores[1, 2, 3] = np.nan
    found = matrix_of(scores, ties=ties, missing="balanced")
    again = StyleMatrix.from_dict(json.loads(json.dumps(found.to_dict())))
    np.testing.assert_array_equal(again.ranks, found.ranks)
    for name in ("query_ids", "query_styles", "doc_styles", "ties", "dropped"):
        assert getattr(again, name) == getattr(found, name)
    assert again.dropped == ("b",)


def test_a_query_without_one_version_is_left_out_of_every_cell(scores):
    scores[2, 1, 0] = np.nan
    message = r"first for query 'c' \(query style '3'\), style 'human'.*4 of 5 queries"
    with pytest.raises(DataError, match=message):
        matrix_of(scores)
    found = matrix_of(scores, missing="balanced")
    assert found.query_ids == ("a", "b", "d", "e")
    assert found.ranks.shape == (4, 3, 4)
    assert found.dropped == ("c",)


def test_from_ranks_keeps_common_queries():
    rng = np.random.default_rng(0)
    rows = {
        "original": style_ranks(rng.random((3, 4)), styles=STYLES, query_ids=["a", "b", "c"]),
        "8": style_ranks(rng.random((3, 4)), styles=STYLES, query_ids=["d", "c", "a"]),
    }
    found = StyleMatrix.from_ranks(rows)
    assert found.query_ids == ("a", "c")
    assert set(found.dropped) == {"b", "d"}
    np.testing.assert_array_equal(found.ranks[0, 1], rows["8"].ranks[2])
    np.testing.assert_array_equal(found.ranks[1, 0], rows["original"].ranks[2])


def test_from_ranks_refuses_what_does_not_fit():
    row = style_ranks(np.eye(2), styles=["a", "b"], query_ids=["x", "y"])
    other = style_ranks(np.eye(2), styles=["a", "c"], query_ids=["x", "y"])
    apart = style_ranks(np.eye(2), styles=["a", "b"], query_ids=["v", "w"])
    with pytest.raises(DataError, match=r"query style '1' ranks \['a', 'c'\]"):
        StyleMatrix.from_ranks({"0": row, "1": other})
    with pytest.raises(InsufficientDataError, match="no query was ranked under all"):
        StyleMatrix.from_ranks({"0": row, "1": apart})
    with pytest.raises(DataError, match="no query style"):
        StyleMatrix.from_ranks({})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"doc_styles": ["x"]}, r"there is 1 document style \('x'\)"),
        ({"doc_styles": ["x", "x", "y", "z"]}, "document style 'x' is given twice"),
        ({"query_styles": ["x", "y"]}, r"ranks have shape \(5, 3, 4\), expected \(5, 2, 4\)"),
        ({"query_ids": [*"aabcd"]}, "query id 'a' is given twice"),
        ({"query_ids": [], "ranks": []}, r"there is 0 query id \(none\)"),
        ({"ties": "dense"}, "unknown tie rank 'dense'"),
        ({"ranks": [[[1, 2], [3]]]}, "ranks are not a table of numbers"),
        ({"ranks": "many"}, "field 'ranks'"),
    ],
)
def test_a_damaged_file_is_refused(scores, change, message):
    with pytest.raises(DataError, match=message):
        StyleMatrix.from_dict(matrix_of(scores).to_dict() | change)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, r"must lie in \[1, 4\]"), (9, r"must lie in \[1, 4\]"), (1.25, "'d' .*'8'.* sum to")],
)
def test_wrong_ranks_are_refused(scores, value, message):
    data = matrix_of(np.argsort(np.argsort(scores, axis=2), axis=2)).to_dict()
    data["ranks"][3][2][1] = value
    with pytest.raises(DataError, match=message):
        StyleMatrix.from_dict(data)


@pytest.mark.parametrize("shape", [(5, 3), (5, 4, 3)])
def test_wrong_shape(shape):
    with pytest.raises(DataError, match=r"expected \(queries, 3, 4\)"):
        matrix_of(np.zeros(shape))


def test_matching_effect_by_hand(scores):
    found = matrix_of(scores)
    own = matching_effect(found, reference="original")
    assert own.styles == ("3", "8")
    for i in range(len(IDS)):
        for j, (form, style) in enumerate([(1, 1), (2, 2)]):
            expected = found.ranks[i, 0, style] - found.ranks[i, form, style]
            assert own.gains[i, j] == expected
    others = matching_effect(found)
    expected = found.average[[0, 2], 1].mean() - found.average[1, 1]
    assert others.mean[0] == pytest.approx(expected)
    assert others.reference is None


def test_matching_under_other_names(scores):
    found = matching_effect(matrix_of(scores), matches={"original": "human"})
    ranks = matrix_of(scores).average[:, 0]
    assert found.styles == ("human",)
    assert found.mean == pytest.approx([ranks[1:].mean() - ranks[0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "7"}, "no query style '7'"),
        ({"matches": {"3": "x"}}, "match '3' → 'x' is not in the matrix"),
        ({"matches": {}}, "no query style matches a document style"),
    ],
)
def test_matching_refuses(scores, options, message):
    with pytest.raises(DataError, match=message):
        matching_effect(matrix_of(scores), **options)


def test_matching_needs_another_query_style():
    one = StyleMatrix.from_scores(np.eye(2)[:, None], query_styles=["a"], doc_styles=["a", "b"])
    with pytest.raises(DataError, match=r"one query style \('a'\)"):
        matching_effect(one)
