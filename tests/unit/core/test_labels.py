import numpy as np
import pytest

from rag_sourcebias.core.data import LabelDistributions, Qrels
from rag_sourcebias.core.errors import DataError


def test_rows_are_scaled_to_sum_to_one_exactly():
    labels = LabelDistributions.from_rows([("q", "a", [0.3, 0.7 + 5e-7]), ("q", "b", [1, 0])])
    assert labels.probs.sum(axis=1).tolist() == pytest.approx([1, 1], abs=1e-15)
    assert (len(labels), labels.n_grades) == (2, 2)


def test_qrels_become_one_hot_rows():
    qrels = Qrels.from_rows([("q", "a", 2), ("é", "b", 0)])
    labels = LabelDistributions.from_qrels(qrels, n_grades=3)
    assert labels.probs.tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(DataError, match=r"grade 2 of query 'q', document 'a'.*scale 0 … 1"):
        LabelDistributions.from_qrels(qrels, n_grades=2)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.4], r"1 label distribution\(s\) do not sum to 1, first query 'q', document 'b'"),
        ([1.5, -0.5], "do not sum to 1, first query 'q', document 'b'"),
        ([np.nan, 1.0], "sums to nan"),
        ([0.2, 0.3, 0.5], "document 'b': 3 probabilities where the first pair has 2"),
    ],
)
def test_bad_rows_are_named(row, message):
    with pytest.raises(DataError, match=message):
        LabelDistributions.from_rows([("q", "a", [0.5, 0.5]), ("q", "b", row)])


def test_a_pair_may_be_judged_once():
    with pytest.raises(DataError, match="judged twice, first query 'q', document 'a'"):
        LabelDistributions.from_rows([("q", "a", [0, 1]), ("q", "a", [1, 0])])
    with pytest.raises(DataError, match="no label distributions"):
        LabelDistributions.from_rows([])
