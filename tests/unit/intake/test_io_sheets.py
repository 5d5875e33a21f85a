from __future__ import annotations

import csv
import io
import json

import pytest

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.infer.sheets import manifest_path
from rag_sourcebias.judged.sheets import read_sheet, write_sheet

ROWS = {
    "query '007', document 'd1'": {"query": "=SUM(A1)?", "text": "-5 °C, in winter"},
    "query '007', document 'd2'": {"query": "=SUM(A1)?", "text": 'a "quoted"\r\n\n  line'},
    "query '8', document '@d'": {"query": "what; and why", "text": "'=already safe"},
    "query '9', document 'd1'": {"query": "tab\there", "text": "+1, -1; 'tis"},
}
GRADES = [2, 0, 3, 1]
DESIGN = {"rows": [4, 7, 9, 11], "seed": 3}


def write(path, rows=ROWS, **options):
    options = {"n_grades": 4, "design": DESIGN, "rng": 0, **options}
    return write_sheet(path, rows, **options)


def records(path):
    """What a spreadsheet shows: cells as they stand in the file."""
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def save(path, rows, *, delimiter=",", end="\r\n", bom=False):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(b"\xef\xbb\xbf" * bom + out.getvalue().encode())


def fill(path, grades=GRADES):
    """Grade every row, as an annotator would, from what the sheet shows."""
    plan = json.loads(manifest_path(path).read_text())
    place = {row["row_id"]: at for at, row in enumerate(plan["rows"])}
    rows = records(path)
    for row in rows:
        row["label"] = str(grades[place[row["row_id"]]])
    save(path, rows)
    return rows


@pytest.fixture(params=["labels.csv", "labels.jsonl"])
def sheet(request, tmp_path):
    path = tmp_path / request.param
    write(path)
    return path


def test_grades_come_back_in_the_order_of_the_sample(sheet):
    fill(sheet)
    filled = read_sheet(sheet)
    assert filled.labels.tolist() == GRADES
    assert filled.design == DESIGN
    assert filled.n_grades == 4


def test_the_sheet_is_blind(sheet):
    for row in records(sheet):
        assert list(row) == ["row_id", "query", "text", "label"]
        assert row["label"] == ""
    for hidden in ("11", "007", "d1", "@d"):  # neither the design nor an id
        assert hidden not in sheet.read_text()


def test_no_cell_is_taken_for_a_formula(tmp_path):
    path = tmp_path / "labels.csv"
    write(path)
    cells = [cell for row in records(path) for cell in row.values()]
    assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")] == []
    assert {"'=SUM(A1)?", "'-5 °C, in winter", "''=already safe"} <= set(cells)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [False, True])
def test_what_spreadsheets_do_to_a_file_is_accepted(tmp_path, delimiter, end, bom):
    path = tmp_path / "labels.csv"
    write(path)
    rows = fill(path)[::-1]
    for row in rows:
        row["label"] = f"{row['label']}.0"
        row["remark"] = "fine"
        row["text"] = row["text"].replace("\r\n", "\n").lstrip("'")  # the marker was swallowed
    save(path, [*rows, dict.fromkeys(rows[0], "")], delimiter=delimiter, end=end, bom=bom)
    assert read_sheet(path).labels.tolist() == GRADES


CASES = {
    "unknown id": (
        lambda r: [*r, {**r[0], "row_id": "r9"}],
        r"row_id 'r9' is not one of this sheet's 4; restore it",
    ),
    "twice": (lambda r: [*r, r[0]], r"row 'r1' stands at .*:[12] already; keep one"),
    "missing": (
        lambda r: r[1:-1],
        r"2 of 4 rows have no grade, first 'r\d' \(query '.*', document '.*'\); grade them all",
    ),
    "empty": (
        lambda r: [r[0], {**r[1], "label": " "}, {**r[2], "label": ""}, r[3]],
        r"2 of 4 rows have no grade, first 'r[23]' .*; grade them all",
    ),
    "outside": (
        lambda r: [{**r[0], "label": "4"}, *r[1:]],
        r"labels\..*: label '4' \(column 'label'\) is not on the scale; a whole number 0 … 3",
    ),
    "negative": (lambda r: [{**r[0], "label": "-1"}, *r[1:]], r"'-1' \(column 'label'\) is not on"),
    "half": (lambda r: [{**r[0], "label": "1.5"}, *r[1:]], r"'1.5' \(column 'label'\) is not on"),
    "word": (lambda r: [{**r[0], "label": "good"}, *r[1:]], r"label 'good' .* is not a finite"),
    "text": (
        lambda r: [{**r[0], "text": "something else"}, *r[1:]],
        r"row 'r1': what it shows was changed; only 'label' may be filled in",
    ),
    "column": (
        lambda r: [{k: v for k, v in x.items() if k != "text"} for x in r],
        r"has no column 'text'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_came_back_wrong_is_named(tmp_path, case):
    change, message = CASES[case]
    for name in ("labels.csv", "labels.jsonl"):
        path = tmp_path / name
        write(path)
        rows = fill(path)
        save(path, change(rows))
        with pytest.raises(DataError, match=message):
            read_sheet(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a header"),
        ("id,grade\n1,2\n", r"labels\.csv has no column 'row_id', .*; its columns are id, grade"),
        ("row_id,label,label\nr1,1,1\n", r"two columns are called 'label'"),
        ("row_id,label\nr1\n", r"labels\.csv:2: expected 2 columns .*, found 1"),
        ('row_id,label\nr1,"2\n', r"labels\.csv:2: not a CSV record"),
    ],
)
def test_files_that_are_no_sheet(tmp_path, text, message):
    path = tmp_path / "labels.csv"
    write(path)
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_sheet(path)


def test_manifests(sheet):
    fill(sheet)
    beside = manifest_path(sheet)
    moved = beside.with_name("kept.json")
    beside.rename(moved)
    with pytest.raises(DataError, match=r"manifest.json does not exist: the sheet's manifest"):
        read_sheet(sheet)
    assert read_sheet(sheet, manifest=moved).labels.tolist() == GRADES
    data = json.loads(moved.read_text())
    moved.write_text(json.dumps({**data, "schema_version": 2}))
    with pytest.raises(UnsupportedVersionError, match="schema version 2; this release reads"):
        read_sheet(sheet, manifest=moved)
    for text, message in [
        (json.dumps({k: v for k, v in data.items() if k != "rows"}), "required field 'rows'"),
        ("{}", "is no manifest of a sheet"),
        ("{", "is not the JSON of a manifest"),
    ]:
        moved.write_text(text)
        with pytest.raises(DataError, match=message):
            read_sheet(sheet, manifest=moved)


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    path = tmp_path / "labels.csv"
    with pytest.raises(DataError, match=r"sheets are \.csv or \.jsonl"):
        write(tmp_path / "labels.xlsx")
    long = {"long": {"text": "x" * 40_000}}
    with pytest.raises(DataError, match=r"text of row 'r1' has 40000 characters.* as \.jsonl"):
        write(path, long)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="a column is called row_id or label, as sheets have"):
        write(path, {"one": {"label": "x"}})
    write(tmp_path / "labels.jsonl", long)


def test_a_filled_sheet_is_not_written_over(sheet):
    fill(sheet)
    with pytest.raises(DataError, match="exists and may be filled in"):
        write(sheet)
    assert read_sheet(sheet).labels.tolist() == GRADES


def test_labels_of_items_may_be_words_and_some_may_be_missing(tmp_path):
    path = tmp_path / "labels.csv"
    write(path, n_grades=None)
    rows = fill(path, ["yes", "no", "", "yes"])
    save(path, rows, delimiter=";")
    assert str(read_sheet(path).labels.tolist()) == "[1.0, 0.0, nan, 1.0]"
