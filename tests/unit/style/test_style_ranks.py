"""Ranks of versions against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.style.measure import rank_versions, style_ranks

STYLES = ("human", "0", "1")


@pytest.mark.parametrize("ties", ["average", "min", "max"])
@pytest.mark.parametrize("shape", [(40, 10), (7, 4, 6), (5, 2), (3, 1), (0, 4)])
def test_against_scipy(ties, shape):
    scores = np.random.default_rng(1).integers(0, 4, shape) / 4
    expected = stats.rankdata(-scores, method=ties, axis=-1) if scores.size else scores
    np.testing.assert_array_equal(rank_versions(scores, ties=ties), expected)


def test_every_version_tied():
    np.testing.assert_array_equal(rank_versions(np.full((2, 10), 0.3)), np.full((2, 10), 5.5))


def test_scores_that_single_precision_cannot_tell_apart_are_tied():
    assert rank_versions(np.array([0.7, 0.7 + 1e-12, 0.2])).tolist() == [1.5, 1.5, 3.0]
    assert rank_versions(np.array([0.7, 0.7 + 1e-6, 0.2])).tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_what_cannot_be_ranked(bad):
    with pytest.raises(DataError, match="NaN, infinity or a number beyond single precision"):
        rank_versions(np.array([0.1, bad]))


def test_one_number_is_no_table():
    with pytest.raises(DataError, match="are one number"):
        rank_versions(np.float64(0.5))


def test_unknown_tie_rank():
    with pytest.raises(DataError, match="unknown tie rank 'dense'"):
        rank_versions(np.zeros(3), ties="dense")


def test_average_ranks():
    found = style_ranks(np.array([[0.9, 0.8, 0.1], [0.2, 0.9, 0.9]]), styles=STYLES)
    assert found.query_ids == ("0", "1")
    assert found.average.tolist() == [2.0, 1.75, 2.25]
    assert found.dropped == ()


SCORES = np.array([[0.9, np.nan, 0.1], [0.2, 0.9, 0.8], [0.1, 0.3, 0.2]])


def test_a_missing_version_is_refused_by_name():
    message = (
        r"1 version\(s\) without a score \(NaN\), first for query 'a', style '0'; give a score "
        r"for each, or missing='balanced' to use only the 2 of 3 queries"
    )
    with pytest.raises(DataError, match=message):
        style_ranks(SCORES, styles=STYLES, query_ids=["a", "b", "c"])


def test_balanced_subset_is_used_and_reported():
    found = style_ranks(SCORES, styles=STYLES, query_ids=["a", "b", "c"], missing="balanced")
    assert found.query_ids == ("b", "c")
    assert found.dropped == ("a",)
    assert found.ranks.tolist() == [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]


def test_no_complete_query_names_the_style_to_leave_out():
    scores = np.array([[0.1, np.nan, 0.3], [0.1, np.nan, np.nan]])
    with pytest.raises(
        InsufficientDataError, match=r"none of 2 queries .* style '0' lacks one for"
    ):
        style_ranks(scores, styles=STYLES, missing="balanced")


def test_infinite_scores_are_never_taken_for_missing():
    scores = np.array([[0.1, -np.inf, 0.3]])
    with pytest.raises(DataError, match=r"1 infinite score\(s\), first for query 'q7', style '0'"):
        style_ranks(scores, styles=STYLES, query_ids=["q7"], missing="balanced")


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros((2, 2)), {"styles": ["a", "a"]}, "style 'a' is given twice"),
        (np.zeros((2, 1)), {"styles": ["a"]}, r"there is 1 style \('a'\)"),
        (np.zeros((2, 3)), {"styles": ["a", "b"]}, r"shape \(2, 3\); expected one row per query"),
        (np.zeros(3), {"styles": STYLES}, r"shape \(3,\)"),
        (np.zeros((2, 3)), {"styles": STYLES, "query_ids": ["a"]}, "1 query ids but scores of 2"),
        (np.zeros((2, 3)), {"styles": STYLES, "query_ids": ["a", "a"]}, "query id 'a' is given tw"),
        (np.zeros((2, 3)), {"styles": STYLES, "missing": "drop"}, "'drop' is not one of 'refuse'"),
    ],
)
def test_bad_input(scores, options, message):
    with pytest.raises(DataError, match=message):
        style_ranks(scores, **options)


def test_no_query():
    with pytest.raises(InsufficientDataError, match="no query"):
        style_ranks(np.zeros((0, 3)), styles=STYLES)
