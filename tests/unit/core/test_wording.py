"""Numbers of templates and tables as they are read."""

from __future__ import annotations

from typing import Any

import pytest

from rag_sourcebias.core.finding import Frame, Interval, Wording
from rag_sourcebias.infer.findings import InferCode

ENDS = Interval(
    estimate=-0.125,
    lower=-0.25,
    upper=0.0,
    confidence_level=0.95,
    method=InferCode.DELTA(),
    n_labeled=30,
)


@pytest.mark.parametrize(
    ("spec", "value", "written"),
    [
        ("p=", 0.0123, "= 0.012"),
        ("p=", 0.0499, "= 0.0499"),
        ("p=", 0.0002, "< 0.001"),
        ("p=", None, "–"),
        ("p", 0.0123, "0.012"),
        ("g", 0.123456, "0.1235"),
        ("g", -2, "−2"),
        ("star", True, "*"),
        ("star", False, ""),
        ("points", ENDS, "−12.5 [−25.0, 0.0]"),
        ("ends:percent", ENDS, "[−25.0%, 0.0%]"),
        ("signed", 0.04, "0.0"),
        ("query|queries", 1, "1 query"),
        ("query|queries", 1_200, "1,200 queries"),
        ("", -3, "−3"),
        ("", None, "–"),
    ],
    ids=lambda value: str(value).replace("|", " or "),
)
def test_a_specification_writes_a_number(spec: str, value: Any, written: str) -> None:
    assert Wording().format_field(value, spec) == written


def test_an_interval_is_three_columns_of_values() -> None:
    frame = Frame(columns={"system": ("a", "b", "c"), "delta": (ENDS, 3.5, None)})
    assert frame.values() == {
        "system": ["a", "b", "c"],
        "delta": [-0.125, 3.5, None],
        "delta_lower": [-0.25, None, None],
        "delta_upper": [0.0, None, None],
    }
