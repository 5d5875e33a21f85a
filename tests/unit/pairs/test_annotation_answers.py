from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.annotate import (
    AnnotationUnit,
    annotation_sheet,
    write_annotation_sheets,
)
from rag_sourcebias.pairs.annotated import read_annotations

SOURCES = [("human", "llm:a"), ("llm:b", "human")]
UNITS = [
    AnnotationUnit(
        unit_id=f"u{i}",
        texts=(f"=first {i}, 'quoted'\n\n line", f"-second {i}; text"),
        sources=SOURCES[i % 2],
        query=f"what is {i}?",
    )
    for i in range(8)
]


@pytest.fixture
def written(tmp_path):
    plan = annotation_sheet(UNITS, annotators=("ann", "bob"), overlap=0.5, rng=1)
    files = write_annotation_sheets(plan, tmp_path / "out")
    return plan, files, tmp_path / "out"


def wanted(unit, annotator):
    """What an annotator thinks, in terms of sources."""
    return (*UNITS[int(unit.unit_id[1:])].sources, "equal")[(int(unit.unit_id[1:]) + annotator) % 3]


def answer(plan, row, name="relevance"):
    unit = plan.units[row.unit]
    thought = wanted(unit, row.annotator)
    if thought == "equal":
        return "equal"
    return "AB"[[unit.sources[i] for i in row.order].index(thought)]


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def save_csv(path, rows, delimiter=","):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(out.getvalue().encode())


def fill_csv(plan, path, *, skip=(), spell=str, delimiter=","):
    by_id = {row.row_id: row for row in plan.key.rows}
    rows = read_csv(path)
    for row in rows:
        given = answer(plan, by_id[row["row_id"]])
        for column in row:
            if column.startswith("relevance") and row["row_id"] not in skip:
                row[column] = spell(given)
            if column.startswith("quality"):
                row[column] = "equal"
    save_csv(path, rows, delimiter)


def rows_of(plan, annotator):
    return [row for row in plan.key.rows if row.annotator == annotator]


def page_answers(plan, annotator, entries=None):
    """The file that the page downloads."""
    if entries is None:
        entries = [(row.row_id, answer(plan, row), "equal") for row in rows_of(plan, annotator)]
    lines = (",".join(f'"{cell}"' for cell in entry) for entry in entries)
    return "\r\n".join(['"row_id","relevance","quality"', *lines, ""])


def check(plan, annotations):
    table = annotations.table("relevance")
    for row in plan.key.rows:
        thought = wanted(plan.units[row.unit], row.annotator)
        assert table.categories[table.codes[row.unit, row.annotator]] == thought
    asked = {(row.unit, row.annotator) for row in plan.key.rows}
    for place in np.ndindex(*table.codes.shape):
        assert (table.codes[place] == -2) == (place not in asked)


def test_sheets_and_pages_come_back_as_sources(written):
    plan, files, folder = written
    fill_csv(plan, folder / "ann.csv")
    (folder / "renamed.csv").write_text(page_answers(plan, 1))
    found = read_annotations([folder / "ann.csv", folder / "renamed.csv"], key=files.key)
    assert set(found.table("relevance").categories) == {"human", "llm:a", "llm:b", "equal"}
    assert found.table("relevance").categories[-1] == "equal"
    check(plan, found)
    relevance = found.table("relevance")
    assert (relevance.n_answered, relevance.n_unanswered) == (len(plan.key.rows), 0)
    letters = [answer(plan, row) for row in plan.key.rows]
    assert (relevance.n_first, relevance.n_second) == (letters.count("A"), letters.count("B"))
    assert found.table("quality").n_first == 0
    with pytest.raises(DataError, match="question 'tone' was not asked; the sheet asked 'rel"):
        found.table("tone")


@pytest.mark.parametrize(
    ("spell", "delimiter"),
    [
        (str.lower, ";"),
        (lambda a: f" {a} ", ","),
        ({"A": "Text A", "B": "text b", "equal": "Equally relevant"}.get, ","),
    ],
)
def test_spreadsheets_may_spell_and_separate_otherwise(written, spell, delimiter):
    plan, files, folder = written
    for name in ("ann", "bob"):
        fill_csv(plan, folder / f"{name}.csv", spell=spell, delimiter=delimiter)
    check(plan, read_annotations([folder / "ann.csv", folder / "bob.csv"], key=files.key))


def test_unanswered_is_counted_not_refused(written):
    plan, files, folder = written
    mine = rows_of(plan, 0)
    fill_csv(plan, folder / "ann.csv", skip={mine[0].row_id})
    save_csv(folder / "ann.csv", read_csv(folder / "ann.csv")[:-1])  # a row was deleted
    found = read_annotations(folder / "ann.csv", key=files.key)  # and bob sent nothing
    bobs = len(rows_of(plan, 1))
    assert found.table("relevance").n_unanswered == 2 + bobs
    assert found.table("quality").n_unanswered == 1 + bobs
    assert found.table("relevance").codes[mine[0].unit, 0] == -1


def test_the_same_answer_twice_is_one_but_two_answers_conflict(written):
    plan, files, folder = written
    fill_csv(plan, folder / "ann.csv")
    (folder / "ann-answers.csv").write_text(page_answers(plan, 0))
    both = [folder / "ann.csv", folder / "ann-answers.csv"]
    assert read_annotations(both, key=files.key).table("relevance").n_answered == len(
        rows_of(plan, 0)
    )
    row = rows_of(plan, 0)[1]
    other = "B" if answer(plan, row) != "B" else "equal"
    entries = [(row.row_id, other, "")]
    (folder / "ann-answers.csv").write_text(page_answers(plan, 0, entries))
    message = (
        rf"ann-answers\.csv:2: row '{row.row_id}': relevance is '{other}' here and "
        rf"'{answer(plan, row)}' at .*ann\.csv:\d+; keep one"
    )
    with pytest.raises(DataError, match=message):
        read_annotations(both, key=files.key)


def test_a_lost_column_is_named(written):
    _, files, folder = written
    rows = read_csv(folder / "ann.csv")
    save_csv(folder / "ann.csv", [{k: v for k, v in r.items() if k[:3] != "qua"} for r in rows])
    with pytest.raises(DataError, match="column 'quality' is missing from row_id, query, text_a"):
        read_annotations(folder / "ann.csv", key=files.key)


def test_no_files_are_refused(written):
    plan, _, _ = written
    with pytest.raises(DataError, match="there are no filled sheets"):
        read_annotations([], key=plan.key)
