import numpy as np
import pytest
from command_line import read_csv

from rag_sourcebias.core.completions import Judgments
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judged import read_judged_items, read_label_distributions
from rag_sourcebias.judged.writing import (
    beside,
    write_judgments,
    write_label_distributions,
)


def judgments(doc='d,"ü"') -> Judgments:
    probs = np.array([[0.1, 0.2, 0.7], [np.nan] * 3, [1 / 3, 1 / 3, 1 / 3]])
    return Judgments(
        query_ids=("q1", "q1", "q2"),
        doc_ids=(doc, "b", "c"),
        probs=probs,
        status=("ok", "timeout", "ok"),
        reasons=("", "no answer\nin\ttime", ""),
        mass=np.array([0.9, np.nan, 1.0]),
        judge="m",
    )


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "tsv.gz", "csv.gz", "jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path, ending):
    path = tmp_path / f"labels.{ending}"
    assert write_label_distributions(judgments(), path) == 2
    found = read_label_distributions(path)
    assert len(found) == 2
    assert found.doc_ids[0] == 'd,"ü"'
    np.testing.assert_allclose(found.probs[0], [0.1, 0.2, 0.7], atol=1e-9)
    np.testing.assert_allclose(found.probs[-1], 1 / 3, atol=1e-9)


def test_the_status_lists_failures_with_their_reason(tmp_path):
    pairs = {"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"]}
    write_judgments(judgments(), tmp_path / "s.csv", pairs)
    rows = read_csv(tmp_path / "s.csv")
    assert [r["status"] for r in rows] == ["ok", "timeout", "ok"]
    assert [r["judge"] for r in rows] == ["1.6", "", "1"]
    assert rows[1]["reason"] == "no answer in time"


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_items_go_straight_into_an_interval(tmp_path, ending):
    path = tmp_path / f"items.{ending}"
    columns = {"id": ["a", "b", "c"], "human": ["1", "", "0"], "group": ["x", "y", "x"]}
    write_judgments(judgments(), path, columns)
    items = read_judged_items(path)
    assert items.ids == ("a", "b", "c")
    assert items.groups == ("x", "y", "x")
    assert items.n_labeled == 2
    np.testing.assert_allclose(items.judge, [1.6, np.nan, 1.0])


def test_names_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"ends in \.tsv, \.csv, \.jsonl"):
        write_label_distributions(judgments(), tmp_path / "labels.xlsx")
    with pytest.raises(DataError, match=r"tab or a line break.*\.jsonl or \.csv"):
        write_label_distributions(judgments(doc="a\tb"), tmp_path / "labels.tsv")
    assert not (tmp_path / "labels.tsv").exists()
    assert beside("x/labels.tsv.gz", "status").as_posix() == "x/labels.status.tsv.gz"
