from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_files import IDS

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judgments import read_qrels


def judged(qrels):
    return {
        (qrels.query_ids[q], qrels.doc_ids[d]): int(g)
        for q, d, g in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    }


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n",
        "q1\t0\td1\t2\r\n\r\nq1\t0\td2\t0\r\nq2\t0\td1\t1",
        "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t1\r\n",
        "\ufeffquery-id corpus-id score\nq1 d1 2\nq1 d2 0\nq2 d1 1\n",
        "q1\td1\t2\nq1\td2\t0\nq2\td1\t1.0\n",
        "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\nq1 0 d1 2\n",  # the same judgment again
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_qrels_of_both_forms(tmp_path, text, packed):
    file = tmp_path / ("qrels.gz" if packed else "qrels.txt")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    qrels = read_qrels(file)
    assert judged(qrels) == {("q1", "d1"): 2, ("q1", "d2"): 0, ("q2", "d1"): 1}
    assert len(qrels) == 3


def test_negative_grades_are_counted_once(tmp_path):
    file = tmp_path / "qrels.txt"
    file.write_text("q 0 a -2\nq 0 b 1\nq 0 a -2\nq 0 c -1\n")
    qrels = read_qrels(file)
    assert judged(qrels) == {("q", "a"): 0, ("q", "b"): 1, ("q", "c"): 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "q 0 a 1\n\nq 0 b 1\nq 0 a 2\n",
            r"txt: query 'q', document 'a' has grade 1 in line 1 and grade 2 in line 4",
        ),
        ("q 0 a 1\nq 0 b\n", r"qrels\.txt:2: expected 4 columns .*found 3"),
        ("q a 1\nq 0 b 1\n", r"qrels\.txt:2: expected 3 columns .*found 4"),
        ("only two\n", r"qrels\.txt:1: expected 4 columns .*found 2"),
        ("q 0 a high\n", r"qrels\.txt:1: .*grade 'high' is not a whole number"),
        ("q 0 a 1.5\n", r"qrels\.txt:1: .*grade '1.5' is not a whole number"),
        ("q 0 a inf\n", r"qrels\.txt:1: .*grade 'inf' is not a whole number"),
        ("q 0 a nan\n", r"qrels\.txt:1: .*grade 'nan' is not a whole number"),
        ("q 0 a 99999999999\n", r"qrels\.txt:1: .*grade '99999999999'"),
        ("", r"qrels\.txt is empty"),
        ("query-id\tcorpus-id\tscore\n", r"qrels\.txt holds a header but no rows"),
    ],
)
def test_bad_qrels_are_named(tmp_path, text, message):
    file = tmp_path / "qrels.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_qrels(file)


@given(
    st.dictionaries(st.tuples(IDS, IDS), st.integers(-1, 3), min_size=1, max_size=12),
    st.sampled_from(["{q} 0 {d} {g}\n", "{q}\t{d}\t{g}\r\n"]),
)
def test_any_judgments_are_read_back(tmp_path_factory, rows, form):
    file = tmp_path_factory.mktemp("qrels") / "qrels.txt"
    file.write_bytes(
        "".join(form.format(q=q, d=d, g=g) for (q, d), g in rows.items()).encode("utf-8")
    )
    qrels = read_qrels(file)
    assert judged(qrels) == {pair: max(grade, 0) for pair, grade in rows.items()}
