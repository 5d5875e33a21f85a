"""Intervals carry what is needed to defend them."""

from __future__ import annotations

import math

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode


def make(**changes):
    fields = {
        "estimate": 1.0,
        "lower": -1.0,
        "upper": 4.0,
        "confidence_level": 0.9,
        "method": InferCode.DELTA(),
        "n_labeled": 12,
    }
    return Interval(**{**fields, **changes})


def test_derived_values():
    interval = make()
    assert interval.half_width == 2.5
    assert interval.excludes(4.1)
    assert not interval.excludes(0)
    assert str(interval) == "1 [-1, 4] (90%, delta, n = 12)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence_level": 1.0}, "outside"),
        ({"confidence_level": 0.0}, "outside"),
        ({"estimate": math.nan}, "NaN"),
        ({"upper": math.nan}, "NaN"),
        ({"lower": 2.0}, "does not hold its estimate"),
        ({"upper": 0.5}, "does not hold its estimate"),
    ],
)
def test_validation(changes, message):
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_round_trip():
    assumptions = (InferCode.QUERIES_SAMPLED(), InferCode.REWRITERS_FIXED(n=2))
    interval = make(assumptions=assumptions, target="pool", n_unlabeled=3)
    assert Interval.from_dict(interval.to_dict()) == interval
