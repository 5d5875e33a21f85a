from __future__ import annotations

import json

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judged import read_label_distributions


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


EXPECTED = np.array([[0.5, 0.25, 0.25], [0, 0, 1.0]])


@pytest.mark.parametrize(
    "text",
    [
        "query_id\tdoc_id\tp0\tp1\tp2\nq\td1\t0.5\t0.25\t0.25\nq\td2\t0\t0\t1\n",
        'qid,docno,votes\nq,d1,"[0, 0, 1, 2]"\nq,d2,2 2\n',
        "query-id,corpus-id,votes\nq,d1,0|1|2|0\nq,d2,2\n",
        '{"query_id": "q", "doc_id": "d1", "votes": [0, 0, 1, 2]}\n'
        '{"query_id": "q", "doc_id": "d2", "votes": ["2", "2"]}\n',
    ],
    ids=["probabilities", "lists", "bars", "JSON lines"],
)
def test_every_form(tmp_path, text):
    labels = read_label_distributions(write(tmp_path / "t.txt", text))
    np.testing.assert_allclose(labels.probs, EXPECTED, rtol=1e-15)
    assert labels.query_ids == ("q",)
    assert labels.doc_ids == ("d1", "d2")


def test_single_grades_and_the_scale(tmp_path):
    path = write(tmp_path / "t.tsv", "query_id\tdoc_id\tgrade\nq\td1\t2\nq\td2\t0\n")
    np.testing.assert_array_equal(read_label_distributions(path).probs, [[0, 0, 1], [1, 0, 0]])
    assert read_label_distributions(path, n_grades=4).n_grades == 4
    with pytest.raises(DataError, match=r":2: cell '2' .* is outside the scale 0 … 1"):
        read_label_distributions(path, n_grades=2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q", "d", 0.5, 0.4)], ":1: cell 0.5 .*p0.* and p1 do not sum to 1"),
        ([("q", "d", 1.5, -0.5)], ":1: cell 1.5 .* are not all at least 0"),
        (
            [("q", "d", 1, 0), ("p", "d", 1, 0), ("q", "d", 0, 1)],
            ":3: .*'q', 'd'.* stands at .*",
        ),
        ([("q", "d", "x", 0)], ":1: probability 'x' .* is not a finite number"),
        ([("q", "d", None, 1)], ":1: cell None .*p0.* do not sum to 1"),
        ([("", "d", 1, 0)], ":1: query_id '' "),
        ([("q", "d", float("nan"), 1)], ":1: cell nan .* do not sum to 1"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, rows, message):
    keys = ("query_id", "doc_id", "p0", "p1")
    text = "\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows)
    path = write(tmp_path / "t.jsonl", text)
    with pytest.raises(DataError, match=message) as error:
        read_label_distributions(path)
    assert str(path) in str(error.value)
