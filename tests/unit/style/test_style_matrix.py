"""The matrix of query and document styles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.style.measure import StyleMatrix, matching_effect, style_ranks

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


def test_ranks_under_one_query_style_are_what_style_ranks_finds(scores):
    alone = style_ranks(scores[:, 1], styles=STYLES, query_ids=IDS)
    np.testing.assert_array_equal(matrix_of(scores).ranks[:, 1], alone.ranks)


def test_it_is_frozen(scores):
    with pytest.raises(dataclasses.FrozenInstanceError):
        matrix_of(scores).query_ids = ()


def test_a_query_without_one_version_is_left_out_of_every_cell(scores):
    scores[2, 1, 0] = np.nan
    message = r"first for query 'c' \(query style '3'\), style 'human'.*4 of 5 queries"
    with pytest.raises(DataError, match=message):
        matrix_of(scores)
    found = matrix_of(scores, missing="balanced")
    assert found.query_ids == ("a", "b", "d", "e")
    assert found.ranks.shape == (4, 3, 4)
    assert found.dropped == ("c",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"doc_styles": ("x",)}, r"there is 1 document style \('x'\)"),
        ({"doc_styles": ("x", "x", "y", "z")}, "document style 'x' is given twice"),
        ({"query_styles": ("x", "y")}, r"ranks have shape \(5, 3, 4\), expected \(5, 2, 4\)"),
        ({"query_ids": tuple("aabcd")}, "query id 'a' is given twice"),
        ({"query_ids": ()}, r"there is 0 query id \(none\)"),
        ({"ties": "dense"}, "unknown tie rank 'dense'"),
    ],
)
def test_what_does_not_fit_is_refused(scores, change, message):
    with pytest.raises(DataError, match=message):
        dataclasses.replace(matrix_of(scores), **change)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, r"must lie in \[1, 4\]"), (9, r"must lie in \[1, 4\]"), (1.25, "'d' .*'8'.* sum to")],
)
def test_wrong_ranks_are_refused(scores, value, message):
    found = matrix_of(np.argsort(np.argsort(scores, axis=2), axis=2))
    ranks = found.ranks.copy()
    ranks[3, 2, 1] = value
    with pytest.raises(DataError, match=message):
        dataclasses.replace(found, ranks=ranks)


@pytest.mark.parametrize("shape", [(5, 3), (5, 4, 3)])
def test_wrong_shape(shape):
    with pytest.raises(DataError, match=r"expected \(queries, 3, 4\)"):
        matrix_of(np.zeros(shape))


def test_matching_effect_by_hand(scores):
    found = matrix_of(scores)
    others = matching_effect(found)
    assert others.styles == ("3", "8")
    for i in range(len(IDS)):
        for j, (form, rest) in enumerate([(1, [0, 2]), (2, [0, 1])]):
            expected = found.ranks[i, rest, form].mean() - found.ranks[i, form, form]
            assert others.gains[i, j] == pytest.approx(expected)
    expected = found.average[[0, 2], 1].mean() - found.average[1, 1]
    assert others.mean[0] == pytest.approx(expected)


def test_matching_under_other_names(scores):
    found = matching_effect(matrix_of(scores), matches={"original": "human"})
    ranks = matrix_of(scores).average[:, 0]
    assert found.styles == ("human",)
    assert found.mean == pytest.approx([ranks[1:].mean() - ranks[0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
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
