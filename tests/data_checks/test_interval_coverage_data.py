"""The real sets that the coverage benchmark resamples are what they were.

That the default method covers in each of them, and how wide it is, are bars of that benchmark.
"""

from __future__ import annotations

import pytest
from benchmark_modules import load

from support.real_data import data_folder

(read,) = load("coverage", "real_sets")

pytestmark = pytest.mark.data


def test_the_sets_are_what_they_were():
    sets = {found.name: found for found in read.real_sets(data_folder())}
    assert len(sets) == 74
    votes = sets["interval_labels/dl19_dl20_bm25_umbrela3votes"]
    assert len(votes.y) == 97
    assert votes.y.mean() == pytest.approx(10.104, abs=1e-3)
    assert votes.yhat.mean() == pytest.approx(14.405, abs=1e-3)
    # BM25: nDCG@10 with linear gains is .5058 and .4796; gains 2^r − 1 give less
    assert sets["dl_human_llm/dl19 umbrela_gpt4 NDCG@10"].y.mean() == pytest.approx(0.436, abs=2e-3)
