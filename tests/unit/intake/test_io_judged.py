from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judged import join_judged, read_judged_items

CSV = "id,human,judge,system\na,1,0.5,x\nb,,0.25,y\nc,0,,x\n"


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def check(items):
    assert items.ids == ("a", "b", "c")
    np.testing.assert_array_equal(items.human, [1, np.nan, 0])
    np.testing.assert_array_equal(items.judge, [0.5, 0.25, np.nan])
    assert (items.n_labeled, items.n_unlabeled, items.n_judge_missing) == (2, 1, 1)
    assert items.groups == ("x", "y", "x")
    assert items.clusters is None


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt"])
def test_csv(tmp_path, name):
    check(read_judged_items(write(tmp_path / name, CSV), group="system"))


def test_json_lines_may_leave_out_the_human_key(tmp_path):
    rows = [
        {"id": "b0", "judge_score": 0.75, "system": "x"},
        {"id": "a", "human": True, "judge_score": 0.5, "system": "x"},
        {"id": "b", "judge_score": "0.25", "system": "y", "human": None},
        {"id": 7, "judge_score": None, "system": "x", "human": 0},
    ]
    path = write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    items = read_judged_items(path, group="system")
    assert items.ids == ("b0", "a", "b", "7")
    np.testing.assert_array_equal(items.human, [np.nan, 1, np.nan, 0])
    np.testing.assert_array_equal(items.judge, [0.75, 0.5, 0.25, np.nan])


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "human": pa.array([True, None, False]),
            "judge": pa.array([0.5, 0.25, None]),
            "system": ["x", "y", "x"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    check(read_judged_items(tmp_path / "t.parquet", group="system"))
    pq.write_table(pa.table({"id": ["a", "a"], "judge": [1, 2]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"row 2: item 'a' stands at .*row 1 already"):
        read_judged_items(tmp_path / "d.parquet", require_human=False)
    (tmp_path / "x.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(DataError, match=r"x\.parquet is not a readable Parquet file"):
        read_judged_items(tmp_path / "x.parquet")


def test_cells_of_csv_may_span_lines_and_errors_name_the_line_they_start_on(tmp_path):
    text = 'id,answer,human,judge\na,"two\n\nlines, ""quoted""",1,1\nb,"x\ny",maybe,1\n'
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(DataError) as error:
        read_judged_items(path)
    assert str(error.value) == (
        f"{path}:5: human label 'maybe' (column 'human') is not a finite number; "
        "numbers, true/false, yes/no, correct/incorrect, A/B/tie or an empty cell are accepted; "
        "write 4/5 or 80 % as 0.8, 5,5 as 5.5"
    )
    assert read_judged_items(write(path, text.replace("maybe", "0"))).ids == ("a", "b")


@pytest.mark.parametrize(
    ("word", "value"),
    [("yes", 1), ("TRUE", 1), ("correct", 1), (" Pass ", 1), ("No", 0), ("incorrect", 0)],
)
def test_words_are_binary_verdicts(tmp_path, word, value):
    items = read_judged_items(write(tmp_path / "t.csv", f"id,human,judge\na,{word},1\nb,0,1\n"))
    assert items.human[0] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,human,judge\na,1,good\n", r":2: judge value 'good' \(column 'judge'\)"),
        ("id,human,judge\na,inf,1\n", r":2: human label 'inf'"),
        (
            "id,human,judge\na,4,1\nb,yes,1\n",
            ":2: human label '4' .* in a column with 'yes'",
        ),
        ("id,human,judge\na,1,1\nb,1,1\na,0,1\n", r":4: item 'a' stands at .*:2 already; keep"),
        ("id,human,judge\na,1,1\n,1,1\n", r":3: id '' \(column 'id'\) must be a non-empty name"),
        ("id,human,judge\na,1\n", r":2: expected 3 columns .*, found 2"),
        ("id,human,human,judge\na,1,1,1\n", r":1: two columns are called 'human'"),
        ("id,verdict,judge\na,1,1\n", r"recognised as human; its columns are id, verdict, judge"),
        ("id,x,y2\na,1,1\n", r"recognised as human or judge; .* human=… and judge=…"),
        (
            "id,human_label,gold,judge\na,1,1,1\n",
            r"'human_label' and 'gold' could all be the human",
        ),
        ("id,human,judge\n", "holds a header but no rows"),
        ("", "is empty; expected a header and rows"),
        ('id,human,judge\na,"1,1\n', r":2: not a CSV record .*read through line 2"),
        ('{"id": 1, "human": [1], "judge": 1}\n', r":1: human label \[1\]"),
        ("id,human,judge\na,1_0,1\n", r":2: human label '1_0'"),
        ('{"id": 1, "human": 1' + "0" * 400 + ', "judge": 1}\n', r":1: human label 10+"),
        ('[{"id": 1}]\n', r"recognised as human or judge; its columns are id"),
        ("[1]\n", r": record 1 is 1; expected an object"),
        ('{"id": {}, "human": 1, "judge": 1}\n', r":1: id \{\} \(column 'id'\)"),
    ],
)
def test_refusals_name_file_line_and_value(tmp_path, text, message):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(DataError, match=message) as error:
        read_judged_items(path)
    assert str(path) in str(error.value)


def test_pairs_are_identified_by_query_and_document_and_rows_by_number(tmp_path):
    path = write(tmp_path / "p.tsv", "qid\tdocid\thuman\tjudge\nq\td1\t1\t1\nq\td2\t2\t1\n")
    assert read_judged_items(path).ids == ("q\td1", "q\td2")
    assert read_judged_items(path, id=["docid", "qid"]).ids == ("d1\tq", "d2\tq")
    assert read_judged_items(path, cluster="qid").clusters == ("q", "q")
    with pytest.raises(DataError, match=r"item 'q' stands at .* already"):
        read_judged_items(path, id="qid")
    assert read_judged_items(write(path, "human,judge\n1,1\n0,1\n")).ids == ("1", "2")


def test_rows_of_one_query_are_a_cluster_unless_the_user_says_otherwise(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("query_id,doc_id,human,judge,topic\nq1,a,1,1,t\nq1,b,,0,t\nq2,a,0,1,t\n")
    assert read_judged_items(path).clusters == ("q1", "q1", "q2")
    assert read_judged_items(path, cluster="none").clusters is None
    assert read_judged_items(path, cluster="topic").clusters == ("t", "t", "t")


def test_rows_of_a_query_by_several_systems_are_items_of_their_own(tmp_path):
    path = tmp_path / "systems.csv"
    path.write_text("query_id,group,human,judge\nq1,a,1,1\nq1,b,,0\nq2,a,0,1\n")
    items = read_judged_items(path)
    assert items.ids == ("q1\ta", "q1\tb", "q2\ta")
    assert items.clusters == ("q1", "q1", "q2")
    path.write_text("query_id,human,judge\nq1,1,1\nq1,,0\n")
    with pytest.raises(DataError, match=r"'q1' stands at .* already"):
        read_judged_items(path)


class TestJoin:
    JUDGE = "id,score,group\na,0.1,x\nb,0.2,y\nc,,x\nd,0.4,y\n"

    def join(self, tmp_path, text, judge=JUDGE, **options):
        return join_judged(
            write(tmp_path / "h.csv", text), write(tmp_path / "j.csv", judge), **options
        )

    def test_order_is_that_of_the_judge_file(self, tmp_path):
        items = self.join(tmp_path, "id,grade\nd,3\na,1\nzz,\n")
        assert items.ids == ("a", "b", "c", "d")
        np.testing.assert_array_equal(items.human, [1, np.nan, np.nan, 3])
        np.testing.assert_array_equal(items.judge, [0.1, 0.2, np.nan, 0.4])
        assert items.groups == ("x", "y", "x", "y")

    def test_labels_that_do_not_join_are_counted(self, tmp_path):
        with pytest.raises(DataError) as error:
            self.join(tmp_path, "id,grade\na,1\nA2,3\nB2,3\n")
        assert str(error.value) == (
            f"2 of 3 labelled items are not in {tmp_path / 'j.csv'}, first 'A2' "
            f"({tmp_path / 'h.csv'}:3); ids there look like 'a'; every labelled item needs a "
            "judge value"
        )

    def test_a_labelled_item_the_judge_failed_on(self, tmp_path):
        human = "id,grade\na,1\nc,2\n"
        items = self.join(tmp_path, human)
        assert items.n_labeled == 2
        assert items.n_judge_missing == 1


def test_items_validate_and_can_be_taken(tmp_path):
    items = read_judged_items(write(tmp_path / "t.csv", CSV), group="system")
    some = items.take(items.labeled & items.judged)
    assert some.ids == ("a",)
    assert some.groups == ("x",)
    assert items.take(np.array([2, 0])).ids == ("c", "a")
    kwargs = {"ids": ("a", "b"), "human": np.zeros(2), "judge": np.zeros(2)}
    make = type(items)
    for change, message in [
        ({"ids": ("a", "a")}, "item 'a' occurs twice"),
        ({"human": np.zeros(3)}, r"human values of shape \(3,\) for 2 ids"),
        ({"judge": np.array([1, np.inf])}, "judge value of item 'b' is infinite"),
        ({"groups": ("x",)}, "1 groups for 2 ids"),
    ]:
        with pytest.raises(DataError, match=message):
            make(**{**kwargs, **change})


def test_cells_may_be_long_and_the_limit_of_the_process_stays(tmp_path):

    limit = csv.field_size_limit()
    path = tmp_path / "items.csv"
    path.write_text(f'id,text,human,judge\na,"{"x" * 200_000}",1,0.5\nb,y,,1\n', encoding="utf-8")
    assert len(read_judged_items(path)) == 2
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("column", ["query_id", "id"])
def test_a_column_named_as_the_cluster_is_no_id(tmp_path, column):
    text = f"system,{column},human,judge\na,q0,1,0.5\na,q0,,0.25\nb,q1,0,1\n"
    items = read_judged_items(write(tmp_path / "t.csv", text), group="system", cluster=column)
    assert items.ids == ("1", "2", "3")
    assert items.clusters == ("q0", "q0", "q1")
    with pytest.raises(DataError, match=r"item 'q0.* stands at .* already"):
        read_judged_items(write(tmp_path / "t.csv", text), group="system")


def test_a_column_named_as_the_group_is_no_judge(tmp_path):
    path = write(tmp_path / "t.csv", "id,judge,llm_score,human\na,gpt,1,0\nb,llama,0,\n")
    items = read_judged_items(path, group="judge")
    assert (items.groups, items.judge.tolist()) == (("gpt", "llama"), [1, 0])
    labels = write(tmp_path / "h.csv", "id,human\na,1\n")
    assert join_judged(labels, path, group="judge").judge.tolist() == [1, 0]
