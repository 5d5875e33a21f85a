"""Answers, references and verdicts from tables, and what is said about bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.answers import read_answer_scores, read_answer_texts

HEAD = "question_id,system,answer,reference,correct"


def write(path: Path, *lines: str):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refused(path: Path, *words: str, **options):
    with pytest.raises(DataError) as caught:
        read_answer_texts(path, **options)
    for word in words:
        assert word in str(caught.value)


def test_a_long_table(tmp_path):
    path = write(
        tmp_path / "answers.csv",
        HEAD,
        'q1,süd,"Köln, am Rhein",Köln,true',
        "q1,b,,Köln,0",
        "q2,süd,AC/DC,AC/DC,",
    )
    texts = read_answer_texts(path)
    assert texts.question_ids == ("q1", "q1", "q2")
    assert texts.systems == ("süd", "b", "süd")
    assert texts.answers == ("Köln, am Rhein", "", "AC/DC")
    assert texts.references == (("Köln",), ("Köln",), ("AC/DC",))  # a slash separates nothing
    np.testing.assert_array_equal(texts.correct, [1, 0, np.nan])
    assert texts.name == "answers.csv"
    assert read_answer_texts(path, separator="/").references[2] == ("AC", "DC")


def test_names_of_ragas_and_lists_of_references(tmp_path):
    path = write(
        tmp_path / "gpt.v4.jsonl",
        '{"user_input": "when?", "response": 1949, "reference": ["1949", "in 1949"], "label": 1}',
        '{"user_input": "who?", "response": null, "reference": "[\\"Ann\\", \\"Bea\\"]"}',
        '{"user_input": "what?", "response": NaN, "reference": "[a] list", "label": false}',
    )
    texts = read_answer_texts(path)
    assert texts.systems == ("gpt.v4",) * 3
    assert texts.question_ids == ("when?", "who?", "what?")
    assert texts.answers == ("1949", "", "")
    assert texts.references == (("1949", "in 1949"), ("Ann", "Bea"), ("[a] list",))
    np.testing.assert_array_equal(texts.correct, [1, np.nan, 0])


def evouna(path, *changes):
    base = {
        "question": "which band?",
        "golden_answer": "AC/DC",
        "answer_x": "AC",
        "judge_x": True,
        "answer_y": "DC, of course",
        "judge_y": False,
        "improper": False,
    }
    path.write_bytes(gzip.compress(json.dumps([base | c for c in changes]).encode()))
    return path


def test_one_row_per_question(tmp_path):
    path = evouna(
        tmp_path / "NQ.json.gz",
        {},
        {"improper": True, "golden_answer": None},
        {"judge_x": None, "judge_y": "nan", "answer_y": None},
    )
    texts = read_answer_texts(path)
    assert texts.name == "NQ.json.gz (1 question marked improper left out)"
    assert texts.question_ids == ("0", "0", "2", "2")  # equal texts, two questions
    assert texts.systems == ("x", "y", "x", "y")
    assert texts.answers == ("AC", "DC, of course", "AC", "")
    assert texts.references[0] == ("AC", "DC")
    np.testing.assert_array_equal(texts.correct, [1, 0, np.nan, np.nan])
    assert read_answer_texts(path, separator=" or ").references[0] == ("AC/DC",)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((HEAD, "q1,a,x,y,1", "q2,a,x,y,1", "q1,a,z,y,1"), (":4:", "'a'", "'q1'", ":2 already")),
        ((HEAD, "q1,a,x,y,0.5"), (":2:", "'0.5'", "human verdict", "yes or no")),
        ((HEAD, "q1,a,x,y,2"), (":2:", "'2'", "human verdict")),
        ((HEAD, "q1,a,x,y,perhaps"), (":2:", "'perhaps'", "true/false")),
        ((HEAD, "q1,a,x,y,inf"), (":2:", "'inf'", "finite")),
        ((HEAD, "q1,a,x,  ,1"), (":2:", "reference '  '", "no text")),
        ((HEAD, "q1,,x,y,1"), (":2:", "system ''")),
        ((HEAD, ",a,x,y,1"), (":2:", "question ''")),
        ((HEAD, "q1,a,x,y"), (":2:", "expected 5 columns")),
        ((HEAD,), ("header but no rows",)),
        (("question,answer,reference", "q,a,r"), ("recognised as correct", "human_verdict")),
        (("question,text,correct", "q,a,1"), ("reference or answer", "response", "ground_truth")),
        (("question,answer_x,reference", "q,a,r"), ("answer_x", "judge_x", "correct_x")),
        (
            ("question,answer,reference,human,label", "q,a,r,1,0"),
            ("'human' and 'label'", "call the right one 'correct'"),
        ),
        (('{"question": "q", "answer": ["a"], "reference": "r", "correct": 1}',), (":1:", "['a']")),
        (
            ('{"question": "q", "answer": "a", "reference": {}, "correct": 1}',),
            (":1:", "is {}"),
        ),
        (('{"question": "q", "answer": "a", "reference": [], "correct": 1}',), (":1:", "no text")),
        (("[]",), ("empty list",)),
        (("[1]",), ("record 1 is 1",)),
        (('[{"question": "q"}',), ("a table as JSON",)),
        (
            ('[{"question": "q", "answer": "a", "reference": "r", "correct": 3}]',),
            ("record 1: cell 3", "human verdict"),
        ),
    ],
)
def test_bad_files_are_named_with_line_and_remedy(tmp_path, lines, words):
    refused(write(tmp_path / "bad.txt", *lines), "bad.txt", *words)


def test_only_improper_questions_and_wrong_paths(tmp_path):
    refused(evouna(tmp_path / "a.json.gz", {"improper": True}), "all 1 questions", "improper")
    refused(evouna(tmp_path / "b.json.gz", {"golden_answer": None}), "record 1", "no text")
    refused(tmp_path / "c.csv", "does not exist")
    refused(write(tmp_path / "d.csv", ""), "is empty")
    refused(write(tmp_path / "e.csv", HEAD, "q,a,x,y,1"), "''", separator="")


def test_scores_of_a_table(tmp_path):
    path = write(tmp_path / "a.csv", HEAD + ",sim,f1", "q1,a,x,y,1,0.5,", "q2,a,x,y,0,nan,-1e3")
    found, notes = read_answer_scores(path, ["sim", "f1"])
    assert notes == []
    np.testing.assert_array_equal(found["sim"], [0.5, np.nan])
    np.testing.assert_array_equal(found["f1"], [np.nan, -1000])
    with pytest.raises(DataError, match=r"no column 'bleu'; its columns are .*sim, f1"):
        read_answer_scores(path, ["bleu"])
    with pytest.raises(DataError, match=r"a\.csv:2: score 'x' .*not a finite number"):
        read_answer_scores(path, ["answer"])
    with pytest.raises(DataError, match="one row per question"):
        read_answer_scores(evouna(tmp_path / "b.json.gz", {}), ["golden_answer"])


def test_a_score_that_stands_for_none_is_missing_and_named(tmp_path):
    scores = [0.2, 0.4, 0.6, 0.8, -1]
    rows = [f"q{i},a,x,y,1,{score}" for i, score in enumerate(scores)]
    found, notes = read_answer_scores(write(tmp_path / "a.csv", HEAD + ",sim", *rows), ["sim"])
    np.testing.assert_array_equal(found["sim"], [0.2, 0.4, 0.6, 0.8, np.nan])
    assert [str(note) for note in notes] == [
        "Column sim: -1 lies apart from all other values in 1 row and counts as missing."
    ]
