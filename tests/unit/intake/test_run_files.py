from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_files import IDS, write_run

from rag_sourcebias.core.data import Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.rankings import read_run, runs_of

SCORES = st.floats(allow_nan=False, allow_infinity=False)


def as_dict(run):
    return {r.query_id: list(zip(r.doc_ids, r.scores.tolist(), strict=True)) for r in run}


def test_scores_decide_where_all_ranks_are_the_same(tmp_path):
    file = tmp_path / "run.txt"
    file.write_text(
        "q2 Q0 a 0 0.5 sys\nq1 Q0 b 0 1.0 sys\nq2\tQ0\tc\t0\t2e0\tsys\r\n\nq1 Q0 a 0 1.0 sys\n"
        "q2  Q0 d 0 0.5 sys"
    )
    run = read_run(file)
    assert as_dict(run) == {
        "q2": [("c", 2.0), ("a", 0.5), ("d", 0.5)],  # ties keep the order of the file
        "q1": [("b", 1.0), ("a", 1.0)],
    }
    assert run.name == "sys"
    assert run.scores.dtype == np.float64
    assert runs_of(file, name="mine")[0].name == "mine"


def test_the_order_is_that_of_trec_eval(tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs pytrec_eval")
    rng = np.random.default_rng(3)
    scores = np.sort(rng.permutation(200) / 7)[::-1]
    file = tmp_path / "run.txt"
    file.write_text(
        "".join(f"q Q0 d{i} {i + 1} {s} t\n" for i, s in enumerate(scores)), encoding="utf-8"
    )
    run = read_run(file)
    relevant = {f"d{i}": 1 for i in rng.choice(200, 20, replace=False)}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": relevant}, {"recip_rank", "P_10"})
    found = evaluator.evaluate({"q": {f"d{i}": float(s) for i, s in enumerate(scores)}})["q"]
    hits = [doc in relevant for doc in run.ranked_list(0).doc_ids]
    assert found["P_10"] == pytest.approx(sum(hits[:10]) / 10)
    assert found["recip_rank"] == pytest.approx(1 / (hits.index(True) + 1))


def test_unicode_ids_gzip_and_bom(tmp_path):
    file = tmp_path / "run.txt.gz"
    text = "\ufeffαβγ Q0 文書\u00a01\u3000x 1 1.5 tag\nαβγ Q0 doc@llm:x 2 0.5 tag\n"
    file.write_bytes(gzip.compress(text.encode()))
    assert as_dict(read_run(file)) == {"αβγ": [("文書\u00a01\u3000x", 1.5), ("doc@llm:x", 0.5)]}


def test_a_document_listed_twice_is_counted(tmp_path):
    file = tmp_path / "run.txt"
    file.write_text("q Q0 b 1 3 t\nq Q0 a 2 2 t\nq Q0 a 3 1 t\n")
    run = read_run(file)
    assert as_dict(run) == {"q": [("b", 3.0), ("a", 2.0)]}
    assert run.n_duplicates == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 d 1 0.5", r"run\.txt:2: expected 6 columns .*found 5"),
        ("q Q0 d 1 0.5 t extra", r"run\.txt:2: expected 6 columns .*found 7"),
        ("q Q0 d 1 nan t", r"run\.txt:2: cell 'nan' .* is no score"),
        ("q Q0 d 1 -inf t", r"run\.txt:2: score '-inf'"),
        ("q Q0 d 1 1e309 t", r"run\.txt:2: score '1e309'"),
        ("q Q0 d 1 high t", r"run\.txt:2: score 'high'"),
    ],
)
def test_a_bad_run_line_is_named(tmp_path, line, message):
    file = tmp_path / "run.txt"
    file.write_text(f"q Q0 a 1 1.0 t\n{line}\n")
    with pytest.raises(DataError, match=message):
        read_run(file)


@given(
    st.dictionaries(
        IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=6), min_size=1, max_size=4
    ),
    IDS,
    st.sampled_from(["run.txt", "run.gz"]),
)
def test_a_run_survives_the_round_trip(tmp_path_factory, mapping, name, file_name):
    run = Run.from_dict(mapping, name=name)
    file = tmp_path_factory.mktemp("run") / file_name
    write_run(run, file)
    again = read_run(file)
    if again.scores is not None:
        assert as_dict(again) == as_dict(run)
    else:  # no query has two different scores: the order counts
        assert [found.doc_ids for found in again] == [found.doc_ids for found in run]
    assert again.query_ids == run.query_ids
    assert again.name == name


@pytest.mark.parametrize("lines", ["q d1 1\nq d2 1\n", "q d1 1\nq d2 .5\n"])
def test_grades_are_no_ranks(tmp_path, lines) -> None:
    file = tmp_path / "grades.txt"
    file.write_text(lines, encoding="utf-8")
    with pytest.raises(DataError, match=r"the third column holds no ranks"):
        runs_of(file)


def test_json_cut_short_is_no_run_of_three_columns(tmp_path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{"q1": {"d1": 1', encoding="utf-8")
    with pytest.raises(DataError, match=r"run\.json.* is not JSON"):
        runs_of(file)
