import math

import numpy as np
import pytest
from command_line import write_csv

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judged import read_ragas_result

HEADER = ("", "user_input", "response", "faithfulness")
ROWS = [(k, f"q{k}", "r", "" if k == 2 else k / 10) for k in range(6)]


def test_labels_in_the_result_itself(tmp_path):
    path = write_csv(
        tmp_path / "r.csv",
        (*HEADER, "human", "system"),
        [(*row, 1 if row[0] < 3 else "", f"s{row[0] % 2}") for row in ROWS],
    )
    items, metric, joined = read_ragas_result(path, group="system")
    assert (metric, joined) == ("faithfulness", "the row")
    assert items.groups == ("s0", "s1") * 3
    assert items.n_labeled == 3
    assert np.flatnonzero(np.isnan(items.judge)).tolist() == [2]


def test_an_experiment_is_joined_by_its_id_since_its_rows_come_in_any_order(tmp_path):
    rows = [(f"s{k}", f"q{k}", f"a{k}", k / 10, "v1") for k in (3, 1, 2, 0)]
    result = write_csv(tmp_path / "exp.csv", ("id", "question", "answer", "score", "name"), rows)
    labels = write_csv(tmp_path / "l.csv", ("id", "row", "label"), [("s1", 0, 1), ("s3", 1, 0)])
    items, metric, joined = read_ragas_result(result, human_path=labels, human="label")
    assert (metric, joined) == ("score", "id")
    assert items.ids == ("s3", "s1", "s2", "s0")
    assert items.human[:2].tolist() == [0, 1]
    assert math.isnan(items.human[2])


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ((("user_input", "y", "z"), [("q1", 1, 1)]), {"human": "w"}, r"no column 'w'"),
        ((("user_input", "a", "b"), [("q1", 1, 1)]), {}, r"no column is recognised as human"),
        (
            (("nr", "y"), [("1", 1)]),
            {},
            r"l\.csv: no column is recognised as id; .* nr, y",
        ),
        ((("user_input", "y"), [("q9", 1)]), {}, r"1 of 1 labelled items are not in .*'q9'"),
        ((("user_input", "y"), [("q1", 1)]), {"metric": "f1"}, r"no column 'f1'; its columns are"),
    ],
)
def test_what_does_not_join_is_named(tmp_path, labels, options, message):
    result = write_csv(tmp_path / "r.csv", HEADER, ROWS)
    path = write_csv(tmp_path / "l.csv", *labels)
    with pytest.raises(DataError, match=message):
        read_ragas_result(result, human_path=path, **options)


def test_numbers_named_as_id_or_cluster_are_no_metric(tmp_path):
    rows = [(k, k // 2, k / 10, k % 2) for k in range(4)]
    path = write_csv(tmp_path / "r.csv", ("uid", "family", "faithfulness", "human"), rows)
    items, metric, _ = read_ragas_result(path, id="uid", cluster="family")
    assert metric == "faithfulness"
    assert items.ids == ("0", "1", "2", "3")
    assert items.clusters == ("0", "0", "1", "1")
    with pytest.raises(DataError, match="scores of 2 metrics"):
        read_ragas_result(path, id="uid")
