"""The runner of ``benchmarks/reproduce``: entries, checks, and where our figures come from."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
MODULES = ("entries", "checks", "run")


def load():
    """Load the modules of the benchmark, which is no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        found = [importlib.import_module(name) for name in MODULES]
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:  # other benchmarks have modules of these names
            sys.modules.pop(name, None)
    return found


entries, checks, runner = load()

ENTRY = """
id: {id}
paper: "[X]"
what: a curve
conditions: {{data: synthetic}}
published: {{theirs: {{x: [0, 1, 2], y: [-30.0, 5.0, 60.0]}}}}
ours:
  curve: {{file: ours.json, at: [curves, "1"], command: [make.py, --all]}}
checks:
  - {{check: rises, series: [curve], says: it rises, tolerance: 5, okish: 13}}
  - {{check: changes_sign, series: [curve], says: it changes sign}}
  - {{check: close, series: [curve], says: near theirs, to: theirs, tolerance: 1, okish: 10}}
  - {{check: close, series: [], says: on their data, skip: the data cannot be had}}
"""


def curve(*values, **more):
    return entries.Series(tuple(range(len(values))), tuple(map(float, values)), **more)


def write_entry(folder: Path, text: str = ENTRY, name: str = "fig") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text.format(id=name), encoding="utf-8")
    return path


def write_ours(folder: Path, **series) -> None:
    (folder / "ours.json").write_text(json.dumps({"curves": {"1": series}}), encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((-12, -3, 20), "OK"),
        ((-12, 20, 16), "OK"),
        ((-12, 20, 15), "OK"),
        ((-12, 20, 14), "OKish"),
        ((-12, 20, 7), "OKish"),
        ((-12, 20, 6), "FAIL"),
        ((5,), "FAIL"),
    ],
)
def test_rises(values, verdict) -> None:
    assert checks.rises(curve(*values), tolerance=5, okish=13)[0] == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((-1, 4, 2), "OK"), ((-9, 4, -2), "OKish"), ((-9, 4, -4), "FAIL"), ((2, 4, 9), "OKish")],
)
def test_changes_sign(values, verdict) -> None:
    assert checks.changes_sign(curve(*values), tolerance=3)[0] == verdict


def test_crosses_zero_says_where() -> None:
    assert checks.crosses_zero(curve(-10, -5, 15)) == ("OK", "between 1 and 2, linearly at 1.25")
    assert checks.crosses_zero(curve(-10, -5, 15), last_x=1)[0] == "FAIL"
    assert checks.crosses_zero(curve(10, 5, 15))[0] == "FAIL"


def test_an_interval_that_holds_zero_is_okish() -> None:
    series = curve(-10, -2, lower=(-15.0, -7.0), upper=(-5.0, 3.0))
    verdict, why = checks.crosses_zero(series)
    assert verdict == "OKish"
    assert "[1]" in why


def test_keeps_compares_with_the_first_value_in_percent() -> None:
    assert checks.keeps(curve(50, 49, 51), tolerance=2, okish=5)[0] == "OK"
    assert checks.keeps(curve(50, 48.5, 51), tolerance=2, okish=5)[0] == "OKish"
    verdict, why = checks.keeps(curve(50, 47, 51), tolerance=2, okish=5)
    assert (verdict, why.endswith("largest loss 6.0 % at 1")) == ("FAIL", True)


def test_same_order_counts_pairs_turned_round() -> None:
    theirs = curve(1, 2, 3)
    assert checks.same_order(curve(10, 20, 30), theirs)[0] == "OK"
    assert checks.same_order(curve(10, 30, 20), theirs, okish=1)[0] == "OKish"
    assert checks.same_order(curve(30, 20, 10), theirs, okish=1)[0] == "FAIL"
    assert checks.same_order(entries.Series(("a",), (1.0,)), theirs)[0] == "FAIL"


def test_rows_of_an_entry(tmp_path: Path) -> None:
    entry = entries.read_entry(write_entry(tmp_path))
    write_ours(tmp_path, x=[0, 1, 2], y=[-31, 5.5, 64], note="3 seeds")
    rows = runner.judged(entry, results=tmp_path)
    assert [row["verdict"] for row in rows] == ["OK", "OK", "OKish", "SKIPPED"]
    assert rows[2]["why"] == "largest difference +4 at 2 (3 seeds)"
    assert rows[3]["why"] == "the data cannot be had"


def test_what_is_not_made_is_skipped_with_the_command(tmp_path: Path) -> None:
    entry = entries.read_entry(write_entry(tmp_path))
    rows = runner.judged(entry, results=tmp_path)
    assert {row["verdict"] for row in rows} == {"SKIPPED"}
    assert rows[0]["why"] == (
        "results/ours.json is not there; made by python benchmarks/make.py --all"
    )
    (tmp_path / "ours.json").write_text('{"curves": {}}', encoding="utf-8")
    assert runner.judged(entry, results=tmp_path)[0]["why"].startswith(
        "results/ours.json has no curves / 1"
    )


def test_ours_may_come_from_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "our_figures.py").write_text(
        "def squares(n):\n    return {'x': list(range(n)), 'y': [i * i for i in range(n)]}\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    source = entries.Source(call="our_figures:squares", arguments={"n": 3})
    assert entries.load(source).y == (0, 1, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (ENTRY.replace("paper:", "paper_:"), "fig.yaml: paper missing"),
        (ENTRY.replace("id: {id}", "id: other"), "id 'other' is not the name of the file"),
        (ENTRY.replace("series: [curve], says: it rises", "series: [c], says: it rises"), "ours"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, wrong: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        entries.read_entry(write_entry(tmp_path, wrong))


def test_an_unknown_check_is_refused(tmp_path: Path) -> None:
    write_ours(tmp_path, x=[0, 1], y=[1, 2])
    entry = entries.read_entry(write_entry(tmp_path, ENTRY.replace("rises", "raises")))
    with pytest.raises(SystemExit, match="no check 'raises'; there are rises"):
        runner.judged(entry, results=tmp_path)


def test_entries_are_found_by_file(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_entry(tmp_path, name=name)
    assert [e.id for e in runner.entries(folder=tmp_path)] == ["a", "b"]
    assert [e.id for e in runner.entries(["b"], folder=tmp_path)] == ["b"]
    with pytest.raises(SystemExit, match="no entry c; there are a, b"):
        runner.entries(["c"], folder=tmp_path)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_papers_have_the_shapes_that_are_asked_of_us(path: Path) -> None:
    entry = entries.read_entry(path)
    assert [row for row in runner.published(entry) if row["verdict"] == "FAIL"] == []
    runner.judged(entry)  # every check is known and takes the parameters given


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "reproduce.json"
    monkeypatch.setattr(
        sys, "argv", ["run.py", "--only", "fig8-debias-delta", "--output", str(output)]
    )
    status = runner.main()
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert status == int(any(row["verdict"] == "FAIL" for row in rows))
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [row["verdict"] for row in rows]
    monkeypatch.setattr(sys, "argv", ["run.py", "--list"])
    assert runner.main() == 0
    assert "fig9-debias-quality: [K]" in capsys.readouterr().out
