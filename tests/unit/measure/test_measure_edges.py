"""The edge list, for every measure: nothing crashes, and denominators stay fixed."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.measure.relevance import MEASURES, group_scores, score_run

TIES = ("expected", "trec")
EMPTY_RUN = Run.from_dict({})
RUN = Run.from_dict({"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0}})
QRELS = Qrels.from_dict({"q1": {"b": 1}, "q2": {"c": 2}})


def scores(run, qrels, ties, cutoffs=(1, 5)):
    return score_run(run, qrels, measures=MEASURES, cutoffs=cutoffs, ties=ties)


@pytest.mark.parametrize("ties", TIES)
def test_empty_run_scores_zero_for_every_judged_query(ties):
    found = scores(EMPTY_RUN, QRELS, ties)
    assert found.values.shape == (10, 1, 2)
    assert not found.values.any()
    np.testing.assert_array_equal(found.n_relevant, [[1, 1]])


@pytest.mark.parametrize("ties", TIES)
def test_cutoff_beyond_the_list(ties):
    found = scores(RUN, QRELS, ties, cutoffs=(1000,))
    assert found.of("P@1000", "all").tolist() == [1e-3, 1e-3]
    assert found.of("Recall@1000", "all").tolist() == [1.0, 1.0]
    assert found.of("NDCG@1000", "all")[0] == pytest.approx(1 / np.log2(3))


def test_all_grades_of_one_query_in_no_group():
    groups = np.full(len(QRELS.doc_ids), -1, dtype=np.int64)
    assert not group_scores(RUN, QRELS, groups, ("none",)).values.any()


def test_queries_in_another_order_and_with_their_own_vocabulary():
    run = Run.from_dict({"q2": {"x": 2.0, "c": 1.0}, "q1": {"b": 2.0, "y": 1.0}})
    found = score_run(run, QRELS, measures=["MRR"], cutoffs=[5])
    assert found.query_ids == ("q1", "q2")
    assert found.values.ravel().tolist() == [1.0, 0.5]
