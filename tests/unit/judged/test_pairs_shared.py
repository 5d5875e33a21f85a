from __future__ import annotations

import numpy as np

from rag_sourcebias.core.data import LabelDistributions
from rag_sourcebias.judged.judge_audit import rows_of


def labels(rows):
    return LabelDistributions.from_rows(rows)


def test_rows_are_found_by_pair():
    judge = labels([("q", f"d{i}", [0.5, 0.5]) for i in range(5)])
    human = labels([("q", "d3", [0, 1]), ("q", "d1", [1, 0]), ("q", "d9", [0, 1])])
    assert rows_of(human, judge).tolist() == [3, 1, -1]
    no_rows = np.zeros(0, dtype=np.int32)
    nothing = LabelDistributions(
        query_ids=(), doc_ids=(), query_codes=no_rows, doc_codes=no_rows, probs=np.zeros((0, 2))
    )
    assert rows_of(human, nothing).tolist() == [-1, -1, -1]
