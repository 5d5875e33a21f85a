"""SCIDOCS pairs scored by ANCE: how often the LLM copy scores above the human one."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.source.audit import other_above
from support.real_data import data_folder

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def pairs():
    path = data_folder() / "perplexity_trap" / "pos_rel_ance.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_llm_copies_score_above_their_twins(pairs):
    """P = .569 ± .014, clustered by query (4,739 pairs; measured .5688 [.5545, .5831])."""
    above = other_above(np.array([p["human"] for p in pairs]), np.array([p["llm"] for p in pairs]))
    _, query = np.unique([p["query_id"] for p in pairs], return_inverse=True)
    rate = clustered_mean(above, query, bounds=(0.0, 1.0))
    assert len(pairs) == 4739
    assert rate.estimate == pytest.approx(0.5688, abs=5e-4)
    assert rate.half_width == pytest.approx(0.014, abs=6e-4)
    assert rate.lower > 0.5
    # Pairs of one query are not independent; ignoring that would not change the conclusion here.
    alone = clustered_mean(above, np.arange(len(above)), bounds=(0.0, 1.0))
    assert alone.estimate == rate.estimate
    assert alone.half_width == pytest.approx(rate.half_width, rel=0.1)
