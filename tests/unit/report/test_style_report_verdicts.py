from __future__ import annotations

import dataclasses

import pytest
from style_reports import similarities, style_report

from rag_sourcebias.style.page import (
    chance_sentence,
)


@pytest.fixture(scope="module")
def plain():
    return style_report(similarities(shifts=(0, 0, 0, 0), seed=12))


@pytest.mark.parametrize(
    ("score", "p", "words"),
    [
        (0.3, 0.5, "no more than the 0.40 that chance alone gives over 60 queries"),
        (0.8, 0.2, "over 60 queries, and the rest may be chance too (Friedman p = 0.200)"),
        (8.0, 0.001, "chance alone would give 0.40 over 60 queries."),
    ],
)
def test_unfairness_is_set_against_chance(plain, score, p, words):
    row = plain.systems[0].rows[0]
    row = dataclasses.replace(
        row,
        unfairness=dataclasses.replace(row.unfairness, score=score, null_expectation=0.4),
        unfairness_interval=None,
        friedman=dataclasses.replace(row.friedman, p_value=p),
    )
    assert words in chance_sentence(plain, row)
