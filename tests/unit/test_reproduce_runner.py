"""The runner of ``benchmarks/reproduce``: entries, checks, and where our figures come from."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
MODULES = ("entries", "checks", "run", "tables", "needs")


def load():
    """Load the modules of the benchmark, which is no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        found = [importlib.import_module(name) for name in MODULES]
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES[:-1]:  # other benchmarks have modules of these names
            sys.modules.pop(name, None)
    return found


entries, checks, runner, tables, needs = load()
RESULTS = FOLDER.parent / "results" / "reproduce.json"
PAGE = FOLDER.parents[1] / "docs" / "results.md"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set, no model and no hub."""
    for name in (needs.DATA, needs.MODELS_FOLDER):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(needs, "packaged", lambda name: False)
    monkeypatch.setattr(needs, "downloaded", lambda name: False)
    needs.hub_answers.cache_clear()


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_papers_have_the_shapes_that_are_asked_of_us(path: Path) -> None:
    entry = entries.read_entry(path)
    assert [row for row in runner.published(entry) if row["verdict"] == "FAIL"] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_check_takes_its_parameters(path: Path) -> None:
    entry = entries.read_entry(path)
    for check in entry.checks:
        if check.series:
            checks.verdict(check, curve(1.0, 2.0), entry.published)


@pytest.mark.usefixtures("nothing_here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_needs_something_is_skipped_without_it(path: Path) -> None:
    entry = entries.read_entry(path)
    needy = {
        name: source
        for name, source in entry.ours.items()
        if any(set(need) - {"package"} for need in source.needs)
    }
    for name, found in runner.made(replace(entry, ours=needy, checks=())).items():
        assert isinstance(found, str), name
        assert found


IDENTITIES = (
    "k-deltas", "k-fig10", "k-table7", "r-calibration", "r-fig1", "r-prompts", "w-eq2", "w-eq3",
    "w-prompts",
)  # fmt: skip


@pytest.mark.parametrize("name", IDENTITIES)
def test_identities_hold(name: str) -> None:
    rows = runner.judged(*runner.entries([name]))
    assert {row["verdict"] for row in rows if row["series"]} == {"OK"}


def test_needs_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.DATA, str(tmp_path))
    monkeypatch.setenv(needs.MODELS_FOLDER, str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("RAG_SOURCEBIAS_CACHE", str(tmp_path / "cache"))
    needs.hub_answers.cache_clear()
    wanted = [
        {"data": "nq320k"},
        {"model": "ANCE"},
        {"any model": ["BERM", "TAS-B"]},
        {"package": "no_such_module"},
        {"missing": "nobody has it"},
    ]
    reasons = needs.unmet(wanted)
    assert reasons[0].startswith("data set nq320k: no folder of that name in RAG_SOURCEBIAS_DATA")
    assert reasons[1].endswith("base-ance-firstp) is not here and HF_HUB_OFFLINE is set")
    assert reasons[2:] == [
        "none of the models BERM, TAS-B is here",
        "the package no_such_module is not installed",
        "nobody has it",
    ]
    for folder in ("nq320k", "ANCE", "BERM"):
        (tmp_path / folder).mkdir()
    assert needs.unmet(wanted[:3]) == []
    assert needs.unmet([{"data": "crowdrag-rewrites"}, {"package": "json"}]) == []
    assert "no address of it is known" in needs.unmet([{"data": "scifact"}])[0]
    with pytest.raises(SystemExit, match="no need of the kind 'colour'; there are data, model"):
        needs.unmet([{"colour": "red"}])


def test_a_model_is_there_once_a_hub_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.MODELS_FOLDER, raising=False)
    monkeypatch.setattr(needs, "downloaded", lambda name: False)
    monkeypatch.setattr(needs, "hub_answers", lambda: True)
    assert needs.found_model("TAS-B") == "sentence-transformers/msmarco-distilbert-base-tas-b"
    assert needs.found_model("BERM") is None
    assert needs.unmet([{"model": "BERM"}])[0].startswith("model BERM: no checkpoint of it")


@pytest.mark.parametrize(
    ("values", "verdict"), [((1, -2), "OK"), ((-1, -2), "FAIL"), ((1, 0.5), "OKish")]
)
def test_signs(values, verdict) -> None:
    found = checks.signs(curve(*values), positive=[0], negative=[1], okish=0.6)
    assert found[0] == verdict


def test_signs_ask_only_the_x_they_name() -> None:
    assert checks.signs(curve(5, -5), negative=[1])[0] == "OK"
    assert checks.signs(curve(5, -5), negative=["other"])[0] == "FAIL"
    wrong = curve(5, 2, lower=(1.0, -1.0), upper=(9.0, 5.0))
    assert checks.signs(wrong, negative=[1])[0] == "OKish"
    assert checks.signs(wrong, negative=[0])[0] == "FAIL"


def test_level_reads_intervals() -> None:
    assert checks.level(curve(2, lower=(-1.0,), upper=(5.0,)))[0] == "OK"
    assert checks.level(curve(2, lower=(1.0,), upper=(5.0,)), okish=3)[0] == "OKish"
    assert checks.level(curve(2, lower=(1.0,), upper=(5.0,)))[0] == "FAIL"


def test_bounds() -> None:
    assert checks.within(curve(1, 2), low=1, high=2)[0] == "OK"
    assert checks.within(curve(1, 2), low=1.5, okish=0.5)[0] == "OKish"
    assert checks.within(curve(1, 2), high=1.5, okish=0.4)[0] == "FAIL"
    theirs = curve(3, 3)
    assert checks.no_more(curve(3, 9), theirs, of=[0])[0] == "OK"
    assert checks.no_more(curve(3, 9), theirs, of=[1], okish=6)[0] == "OKish"
    assert checks.no_less(curve(2, 9), theirs, of=[0, 1])[0] == "FAIL"
    assert checks.no_less(curve(2, 9), theirs, of=["x"])[0] == "FAIL"


def test_extremes() -> None:
    series = curve(5, 1, 9, 7)
    assert checks.largest(series, of=[3, 2])[0] == "OK"
    assert checks.largest(series, of=[2, 0], okish=1)[0] == "OKish"
    assert checks.smallest(series, of=[2])[0] == "FAIL"
    assert checks.smallest(series, of=[0], among=[0, 2])[0] == "OK"
    assert checks.lowest_is(series, one_of=[1, 2])[0] == "OK"
    assert checks.lowest_is(series, one_of=[0], okish_rank=2)[0] == "OKish"
    assert checks.lowest_is(series, one_of=[2], okish_rank=2)[0] == "FAIL"


def test_near_and_covers() -> None:
    theirs = curve(100, 200)
    assert checks.near(curve(101, 198), theirs, tolerance=1, okish=2)[0] == "OK"
    assert checks.near(curve(110, 198), theirs, tolerance=1, okish=2)[0] == "FAIL"
    held = curve(90, 190, lower=(80.0, 150.0), upper=(110.0, 195.0))
    assert checks.covers(held, theirs, okish=1) == ("OKish", "1 of 2 held")
    assert checks.covers(curve(90, 190), theirs)[0] == "FAIL"


def test_a_failure_is_known_only_with_its_reason(tmp_path: Path) -> None:
    text = ENTRY.replace("says: it changes sign}}", "says: it changes sign, because: noise}}")
    entry = entries.read_entry(write_entry(tmp_path, text))
    write_ours(tmp_path, x=[0, 1, 2], y=[1, 5, 64])
    rows = runner.judged(entry, results=tmp_path)
    assert rows[1]["verdict"] == "FAIL"
    assert rows[1]["because"] == "noise"
    assert runner.shown(rows[1]).endswith("Known to fail: noise")
    assert "because" not in rows[2]


def test_tables_hold_both_sides() -> None:
    entry = {
        "published": {"theirs": {"x": ["a", "b"], "y": [1, -2.5]}},
        "ours": {
            "here": {"x": ["b", "c"], "y": [3, 4], "lower": [2, 3], "upper": [4, 5]},
            "elsewhere": {"x": list(range(40)), "y": list(range(40))},
            "gone": {"why": "no data"},
        },
    }
    lines = tables.table(entry).splitlines()
    assert lines[0] == "| | published: theirs | ours: here |"
    assert lines[2:5] == ["| a | 1 |  |", "| b | -2.5 | 3 [2, 4] |", "| c |  | 4 [3, 5] |"]
    assert "12 of 40 rows." in lines
    assert lines[-1] == "- not made: gone: no data"


def test_the_page_is_made_from_the_stored_results() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert list(record["entries"]) == [path.stem for path in FILES]
    assert PAGE.read_text(encoding="utf-8") == tables.page(record)
    unexplained = [r for r in record["rows"] if r["verdict"] == "FAIL" and "because" not in r]
    assert unexplained == []


def test_stored_verdicts_follow_from_the_stored_series() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    for entry in runner.entries():
        ours = {
            name: found["why"] if "why" in found else entries.Series.of(found)
            for name, found in record["entries"][entry.id]["ours"].items()
        }
        known = [row["verdict"] for row in record["rows"] if row["entry"] == entry.id]
        made = [
            checks.verdict(check, ours[name], entry.published)[0]
            for check in entry.checks
            for name in check.series
            if not check.needs and not isinstance(ours[name], str)
        ]
        assert [verdict for verdict in known if verdict != "SKIPPED"] == made, entry.id


@pytest.mark.usefixtures("nothing_here")
def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, sheet = tmp_path / "reproduce.json", tmp_path / "page.md"
    only = ["--only", "k-fig8", "k-deltas", "--brief", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["run.py", *only, "--page", str(sheet)])
    assert runner.main() == 0
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [row["verdict"] for row in rows]
    assert "### k-deltas" in sheet.read_text(encoding="utf-8")
    redrawn = tmp_path / "again.md"
    monkeypatch.setattr(
        sys, "argv", ["run.py", "--redraw", "--output", str(output), "--page", str(redrawn)]
    )
    assert runner.main() == 0
    assert redrawn.read_text(encoding="utf-8") == sheet.read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["run.py", "--list"])
    assert runner.main() == 0
    told = capsys.readouterr().out
    assert "k-fig9: [K]" in told
    assert "nq-utd, BM25: not here: data set nq-utd" in told
