"""What distinguishes Llama-2's rewrites of nq-utd, as texts."""

from __future__ import annotations

import pytest

from rag_sourcebias.explain.audit import explain_sources
from rag_sourcebias.explain.data import SourceExplanation
from rag_sourcebias.intake.beir import read_beir
from support.real_data import data_folder

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def found() -> SourceExplanation:
    report = explain_sources(read_beir(data_folder() / "nq-utd", name="nq-utd"))
    assert len(report.sources) == 1
    return report.sources[0]


def test_rewrites_are_shorter_and_keep_most_words(found):
    """As on [K]'s sets (Table 1: 4.5 and 12.7 % shorter; Fig. 3b: overlaps near .6 and .8)."""
    assert (found.n_pairs, found.n_available) == (800, 800)
    assert -0.15 < found.texts.log_length_ratio.upper < 0
    assert 0.6 < found.texts.overlap.median < 0.85
    assert found.texts.jaccard.mean < found.texts.overlap.mean
