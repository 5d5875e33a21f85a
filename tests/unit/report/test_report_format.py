from __future__ import annotations

import pytest

from rag_sourcebias.report import blocks as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "undefined"), (-49.64, "−49.6"), (31.0, "+31.0"), (-0.04, "0.0"), (200.0, "+200.0")],
)
def test_delta_is_signed_and_never_minus_zero(value, text):
    assert fmt.delta(value) == text


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
    assert fmt.p_value(value) == text


def test_p_clause_reads_as_prose():
    assert fmt.p_clause(0.04) == "p = 0.040"
    assert fmt.p_clause(0.0001, name="adjusted p") == "adjusted p < 0.001"
    assert fmt.p_clause(None) == "no p-value"


def test_interval_uses_the_minus_sign(make):
    assert fmt.interval(make.interval(-49.05, 47.05)) == "[−96.1, −2.0]"
    assert fmt.interval(None) == "–"


def test_scores_are_times_one_hundred():
    assert fmt.score(0.4437) == "44.4"
    assert fmt.share(0.5) == "50.0%"


def test_level_keeps_what_matters():
    assert fmt.level(0.95) == "95%"
    assert fmt.level(0.995) == "99.5%"


def test_source_names():
    names = [fmt.source_name(s) for s in ("human", "llm", "llm:gpt-4", "", "wiki")]
    assert names == [
        "human-written",
        "LLM-written",
        "LLM-written (gpt-4)",
        "untagged",
        "wiki",
    ]


def test_short_names_tell_several_llms_apart():
    assert fmt.short_names(["human", "llm:a"]) == {"human": "human", "llm:a": "LLM"}
    assert fmt.short_names(["human", "llm:a", "llm:b"])["llm:b"] == "LLM b"


def test_shorten_keeps_both_ends():
    assert fmt.shorten("abcdefghij", 5) == "ab…ij"
    assert fmt.shorten("abc", 5) == "abc"


def test_join_and_split():
    assert fmt.join(["a"]) == "a"
    assert fmt.join(["a", "b", "c"]) == "a, b and c"
    assert fmt.split_measure("NDCG@10") == ("NDCG", 10)
    assert fmt.split_measure("MRR") == ("MRR", None)
