from __future__ import annotations

import csv
import io
import json

import pytest

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.judged.sheets import (
    SheetRow,
    manifest_path,
    read_label_sheet,
    write_label_sheet,
)

ROWS = [
    SheetRow(query_id="007", query="=SUM(A1)?", doc_id="d1", text="-5 °C, in winter"),
    SheetRow(query_id="007", query="=SUM(A1)?", doc_id="d2", text='a "quoted"\r\n\n  line'),
    SheetRow(query_id="8", query="what; and why", doc_id="@d", text="'=already safe"),
    SheetRow(query_id="9", query="tab\there", doc_id="d1", text="+1, -1; 'tis"),
]
GRADES = [2, 0, 3, 1]
DESIGN = {"rows": [4, 7, 9, 11], "seed": 3}


def write(path, rows=ROWS, **options):
    options = {"n_grades": 4, "design": DESIGN, "rng": 0, **options}
    return write_label_sheet(path, rows, **options)


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
    place = {row["row_id"]: row["position"] for row in plan["rows"]}
    rows = records(path)
    for row in rows:
        row["grade"] = str(grades[place[row["row_id"]]])
    save(path, rows)
    return rows


@pytest.fixture(params=["labels.csv", "labels.jsonl"])
def sheet(request, tmp_path):
    path = tmp_path / request.param
    write(path)
    return path


def test_grades_come_back_in_the_order_of_the_sample(sheet):
    fill(sheet)
    filled = read_label_sheet(sheet)
    assert filled.grades.tolist() == GRADES
    assert filled.design == DESIGN
    assert filled.n_grades == 4


def test_the_sheet_is_blind(sheet):
    for row in records(sheet):
        assert list(row) == ["row_id", "query_id", "query", "doc_id", "text", "grade"]
        assert row["grade"] == ""
    assert "11" not in sheet.read_text()  # nothing of the design


def test_no_cell_is_taken_for_a_formula(tmp_path):
    path = tmp_path / "labels.csv"
    write(path)
    cells = [cell for row in records(path) for cell in row.values()]
    assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")] == []
    assert {"'=SUM(A1)?", "'-5 °C, in winter", "'@d", "''=already safe"} <= set(cells)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [False, True])
def test_what_spreadsheets_do_to_a_file_is_accepted(tmp_path, delimiter, end, bom):
    path = tmp_path / "labels.csv"
    write(path)
    rows = fill(path)[::-1]
    for row in rows:
        row["grade"] = f"{row['grade']}.0"
        row["remark"] = "fine"
        row["text"] = row["text"].replace("\r\n", "\n").lstrip("'")  # the marker was swallowed
    save(path, [*rows, dict.fromkeys(rows[0], "")], delimiter=delimiter, end=end, bom=bom)
    assert read_label_sheet(path).grades.tolist() == GRADES


CASES = {
    "unknown id": (
        lambda r: [*r, {**r[0], "row_id": "r9"}],
        r"row_id 'r9' is not one of this sheet's 4 \(r1 … r4\)",
    ),
    "twice": (lambda r: [*r, r[0]], r"row 'r1' stands at .*:[12] already; keep one"),
    "missing": (
        lambda r: r[1:-1],
        r"2 of 4 rows are missing, first 'r1' \(query '.*', document '.*'\); put them back",
    ),
    "empty": (
        lambda r: [r[0], {**r[1], "grade": " "}, {**r[2], "grade": ""}, r[3]],
        r"2 of 4 rows have no grade, first .*labels\..*:\d: row 'r2' .*; grade them all",
    ),
    "outside": (
        lambda r: [{**r[0], "grade": "4"}, *r[1:]],
        r"labels\..*: row 'r1': grade '4' is not on the scale; a whole number 0 … 3",
    ),
    "negative": (lambda r: [{**r[0], "grade": "-1"}, *r[1:]], r"grade '-1' is not on the scale"),
    "half": (lambda r: [{**r[0], "grade": "1.5"}, *r[1:]], r"grade '1.5' is not on the scale"),
    "word": (lambda r: [{**r[0], "grade": "good"}, *r[1:]], r"grade 'good' is not on the scale"),
    "text": (
        lambda r: [{**r[0], "text": "something else"}, *r[1:]],
        r"row 'r1': text 'something else' was changed; only the grade may be filled in",
    ),
    "query id": (
        lambda r: [{**x, "query_id": x["query_id"].lstrip("0")} for x in r],
        r"query_id '7' was '007'; .* Spreadsheets drop leading zeros",
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
            read_label_sheet(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a header"),
        ("id,grade\n1,2\n", r"labels\.csv has no column 'row_id', .*; its columns are id, grade"),
        ("row_id,grade,grade\nr1,1,1\n", r"two columns are called 'grade'"),
        ("row_id,grade\nr1\n", r"labels\.csv:2: expected 2 columns as in the header, found 1"),
        ('row_id,grade\nr1,"2\n', r"labels\.csv:2: not a CSV record"),
    ],
)
def test_files_that_are_no_sheet(tmp_path, text, message):
    path = tmp_path / "labels.csv"
    write(path)
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_label_sheet(path)


def test_manifests(sheet):
    fill(sheet)
    beside = manifest_path(sheet)
    moved = beside.with_name("kept.json")
    beside.rename(moved)
    with pytest.raises(DataError, match=r"manifest.json does not exist: the sheet's manifest"):
        read_label_sheet(sheet)
    assert read_label_sheet(sheet, manifest=moved).grades.tolist() == GRADES
    data = json.loads(moved.read_text())
    moved.write_text(json.dumps({**data, "schema_version": 2}))
    with pytest.raises(UnsupportedVersionError, match="schema version 2; this release reads"):
        read_label_sheet(sheet, manifest=moved)
    for text, message in [
        (json.dumps({k: v for k, v in data.items() if k != "rows"}), "required field 'rows'"),
        (json.dumps({**data, "rows": data["rows"][1:]}), "a row has no place of its own"),
        ("{}", "is no manifest of a labelling sheet"),
        ("{", "is not the JSON of a manifest"),
    ]:
        moved.write_text(text)
        with pytest.raises(DataError, match=message):
            read_label_sheet(sheet, manifest=moved)


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    path = tmp_path / "labels.csv"
    with pytest.raises(DataError, match=r"labelling sheets are \.csv or \.jsonl"):
        write(tmp_path / "labels.xlsx")
    long = SheetRow(query_id="q", query="", doc_id="d", text="x" * 40_000)
    with pytest.raises(DataError, match=r"text of row 'r1' has 40000 characters.* as \.jsonl"):
        write(path, [long])
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "labels.jsonl", [long])


def test_a_filled_sheet_is_not_written_over(sheet):
    fill(sheet)
    with pytest.raises(DataError, match="exists and may hold grades"):
        write(sheet)
    assert read_label_sheet(sheet).grades.tolist() == GRADES
