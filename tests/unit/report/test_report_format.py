from __future__ import annotations

import pytest

from rag_sourcebias.core.finding import p_value, short_names, source_name
from rag_sourcebias.report.legacy import delta


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "undefined"), (-49.64, "−49.6"), (31.0, "+31.0"), (-0.04, "0.0"), (200.0, "+200.0")],
)
def test_delta_is_signed_and_never_minus_zero(value, text):
    assert delta(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0004, "< 0.001"),
        (0.001, "0.001"),
        (0.0123, "0.012"),
        (0.0496, "0.0496"),
        (0.0504, "0.0504"),
        (0.05, "0.050"),
        (1.0, "1.000"),
    ],
)
def test_p_value_never_hides_the_side_of_the_threshold(value, text):
    assert p_value(value) == text


def test_source_names():
    names = [source_name(s) for s in ("human", "llm", "llm:gpt-4", "", "wiki")]
    assert names == [
        "human-written",
        "LLM-written",
        "LLM-written (gpt-4)",
        "untagged",
        "wiki",
    ]


def test_short_names_tell_several_llms_apart():
    assert short_names(["human", "llm:a"]) == {"human": "human", "llm:a": "LLM"}
    assert short_names(["human", "llm:a", "llm:b"])["llm:b"] == "LLM b"
