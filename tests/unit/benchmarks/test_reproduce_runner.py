"""The runner of ``benchmarks/reproduce``: entries, checks, and where our figures come from."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, TagTable

FOLDER = Path(__file__).parents[3] / "benchmarks" / "reproduce"
MODULES = ("entries", "checks", "run", "tables", "controls", "printed", "broken", "needs")


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


entries, checks, runner, tables, controls, printed, broken, needs = load()
evidence = sys.modules["evidence"]
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
  - {{check: rises, grade: sign only, series: [curve], control: values in reverse order,
     says: it rises, tolerance: 5, okish: 13}}
  - {{check: changes_sign, grade: sign only, series: [curve], control: unspoilt,
     says: it changes sign}}
  - {{check: close, grade: identity, series: [curve], control: each value one cell further,
     says: near theirs, to: theirs, tolerance: 1, okish: 10}}
  - {{check: close, grade: same data and model, series: [], says: on their data,
     skip: the data cannot be had}}
controls:
  unspoilt: {{file: ours.json, at: [curves, theirs]}}
"""


def curve(*values, **more):
    return entries.Series(tuple(range(len(values))), tuple(map(float, values)), **more)


def write_entry(folder: Path, text: str = ENTRY, name: str = "fig") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text.format(id=name), encoding="utf-8")
    return path


def write_ours(folder: Path, **series) -> None:
    curves = {"1": series, "theirs": {"x": [0, 1, 2], "y": [-30.0, 5.0, 60.0]}}
    (folder / "ours.json").write_text(json.dumps({"curves": curves}), encoding="utf-8")


THEIRS = (1, 2, 3)
ASKED = [
    # check, its parameters, values, verdict
    ("rises", {"tolerance": 5, "okish": 13}, (-12, 20, 15), "OK"),
    ("rises", {"tolerance": 5, "okish": 13}, (-12, 20, 14), "OKish"),
    ("rises", {"tolerance": 5, "okish": 13}, (-12, 20, 6), "FAIL"),
    ("rises", {"tolerance": 5, "okish": 13}, (7, 7, 7), "FAIL"),
    ("changes_sign", {"tolerance": 3}, (-1, 4, 2), "OK"),
    ("changes_sign", {"tolerance": 3}, (-9, 4, -2), "OKish"),
    ("changes_sign", {"tolerance": 3}, (-9, 4, -4), "FAIL"),
    ("crosses_zero", {}, (-10, -5, 15), "OK"),
    ("crosses_zero", {"last_x": 1}, (-10, -5, 15), "FAIL"),
    ("crosses_zero", {}, (-5, 5, -5), "FAIL"),
    ("keeps", {"tolerance": 2, "okish": 5}, (50, 49, 51), "OK"),
    ("keeps", {"tolerance": 2, "okish": 5}, (50, 48.5, 51), "OKish"),
    ("keeps", {"tolerance": 2, "okish": 5}, (50, 47, 51), "FAIL"),
    ("same_order", {"theirs": THEIRS}, (10, 20, 30), "OK"),
    ("same_order", {"theirs": THEIRS, "okish": 1}, (10, 30, 20), "OKish"),
    ("same_order", {"theirs": THEIRS, "okish": 1}, (30, 20, 10), "FAIL"),
    ("same_order", {"theirs": THEIRS, "okish": 1}, (7, 7, 7), "FAIL"),
    ("signs", {"positive": [0], "negative": [1]}, (1, -2), "OK"),
    ("signs", {"positive": [0], "negative": [1]}, (1, 0), "FAIL"),
    ("signs", {"negative": [1]}, (5, -5), "OK"),
    ("within", {"low": 1, "high": 2}, (1, 2), "OK"),
    ("within", {"low": 1.5, "okish": 0.5}, (1, 2), "OKish"),
    ("within", {"high": 1.5, "okish": 0.4}, (1, 2), "FAIL"),
    ("no_more", {"theirs": (3, 3), "of": [0]}, (3, 9), "OK"),
    ("no_more", {"theirs": (3, 3), "of": [1], "okish": 6}, (3, 9), "OKish"),
    ("no_less", {"theirs": (3, 3), "of": [0, 1]}, (2, 9), "FAIL"),
    ("largest", {"of": [3, 2]}, (5, 1, 9, 7), "OK"),
    ("largest", {"of": [2, 0], "okish": 1}, (5, 1, 9, 7), "OKish"),
    ("largest", {"of": [0]}, (4, 4, 4, 4), "FAIL"),
    ("smallest", {"of": [2]}, (5, 1, 9, 7), "FAIL"),
    ("smallest", {"of": [0], "among": [0, 2]}, (5, 1, 9, 7), "OK"),
    ("lowest_is", {"one_of": [1, 2]}, (5, 1, 9, 7), "OK"),
    ("lowest_is", {"one_of": [0], "okish_rank": 2}, (5, 1, 9, 7), "OKish"),
    ("lowest_is", {"one_of": [0], "okish_rank": 2}, (4, 4, 4, 4), "FAIL"),
    ("near", {"theirs": (100, 200), "tolerance": 1, "okish": 2}, (101, 198), "OK"),
    ("near", {"theirs": (100, 200), "tolerance": 1, "okish": 2}, (110, 198), "FAIL"),
]


@pytest.mark.parametrize(("kind", "asked", "values", "verdict"), ASKED)
def test_checks(kind, asked, values, verdict) -> None:
    given = {k: curve(*v) if k == "theirs" else v for k, v in asked.items()}
    assert getattr(checks, kind)(curve(*values), **given)[0] == verdict


def test_no_crossing_with_an_interval_that_holds_zero_cannot_be_told() -> None:
    series = curve(-10, -2, lower=(-15.0, -7.0), upper=(-5.0, 3.0))
    assert checks.crosses_zero(series)[0] == "CANNOT TELL"
    assert checks.crosses_zero(curve(-10, -5, 15))[1] == "between 1 and 2, linearly at 1.25"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_papers_have_the_shapes_that_are_asked_of_us(path: Path) -> None:
    entry = entries.read_entry(path)
    assert [row for row in runner.published(entry) if row["verdict"] == "FAIL"] == []


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


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((0.1, 9), "OK"), ((-1, 9), "CANNOT TELL"), ((-9, 1), "CANNOT TELL"), ((-9, -0.1), "FAIL")],
)
def test_signs_by_interval(ends, verdict) -> None:
    """The side of the value decides nothing where its interval holds 0."""
    series = curve(sum(ends) / 2, -4, lower=(ends[0], -6.0), upper=(ends[1], -2.0))
    asked = {"positive": [0], "negative": [1], "interval": True}
    assert checks.signs(series, **asked)[0] == verdict
    assert checks.signs(replace(series, lower=None, upper=None), **asked)[0] == "CANNOT TELL"
    turned = entries.Series((0, 1), (-4.0, series.y[0]), (-6.0, ends[0]), (-2.0, ends[1]))
    assert checks.changes_sign(turned, interval=True)[0] == verdict


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((-1, 4), "OK"), ((1, 4), "OK"), ((-1, 6), "CANNOT TELL"), ((1, 6), "FAIL"), ((6, 9), "FAIL")],
)
def test_level_is_alike_within_the_margin(ends, verdict) -> None:
    series = curve(sum(ends) / 2, lower=ends[:1], upper=ends[1:])
    assert checks.level(series, margin=5, interval=True)[0] == verdict


@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.94, 0.97), "OK"), ((0.9, 0.97), "CANNOT TELL"), ((0.8, 0.9), "FAIL")]
)
def test_a_bound_by_interval(ends, verdict) -> None:
    series = curve(0.95, lower=ends[:1], upper=ends[1:])
    assert checks.within(series, low=0.93, interval=True)[0] == verdict


def check_of(kind: str, grade: str = "sign only", **parameters):
    return entries.Check(kind, entries.Grade(grade), ("ours",), "", "", parameters)


def test_chance_is_the_share_of_orders_that_pass() -> None:
    five = curve(5, 1, 9, 7, 3)
    assert checks.chance(check_of("largest", of=[2]), five, {}) == pytest.approx(1 / 5)
    two = check_of("largest", of=[2, 3], okish=1)
    assert checks.chance(two, five, {}) == pytest.approx(1 - 3 / 10)
    many = check_of("lowest_is", one_of=[1])
    assert checks.chance(many, curve(*range(20)), {}) == pytest.approx(1 / 20, abs=0.02)
    assert checks.chance(check_of("signs", positive=[0, 1, 8]), five, {}) == 1 / 4
    assert checks.chance(check_of("within", low=0), five, {}) is None
    by_interval = check_of("signs", "other data, interval excludes zero", positive=[0])
    assert checks.chance(by_interval, five, {}) is None


def test_a_check_is_made_on_its_control_too(tmp_path: Path) -> None:
    entry = entries.read_entry(write_entry(tmp_path))
    write_ours(tmp_path, x=[0, 1, 2], y=[-31, 5.5, 64])
    rows = runner.judged(entry, results=tmp_path)
    assert [row["control"]["is"] for row in rows[:3]] == [
        "values in reverse order",
        "unspoilt",
        "each value one cell further",
    ]
    assert [row["control"]["verdict"] for row in rows[:3]] == ["FAIL", "OK", "FAIL"]
    assert [runner.broken(row) for row in rows] == [False, True, False, False]
    assert "BROKEN" in runner.shown(rows[1])
    assert rows[0]["chance"] == pytest.approx(1 / 6)


def test_shuffled_sources_keep_every_pair() -> None:
    tags = [
        (f"{i}{s}", DocTags(source=s, pair_id=str(i))) for i in range(40) for s in ("human", "llm")
    ]
    corpus = Corpus(texts=tuple(d for d, _ in tags), tags=TagTable.from_tags([*tags]))
    shuffled = broken.with_shuffled_sources(corpus)
    assert shuffled.texts == corpus.texts
    codes = shuffled.tags.source_codes.reshape(40, 2)
    assert (np.sort(codes, axis=1) == [0, 1]).all()
    assert 8 < (codes[:, 0] == 0).sum() < 32


def test_the_page_is_made_from_the_stored_results() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert list(record["entries"]) == [path.stem for path in FILES]
    assert evidence.unlike(PAGE, tables.page(record), tables.tables(record)) == []
    assert len(PAGE.read_text(encoding="utf-8").split()) <= 1500
    unexplained = [r for r in record["rows"] if r["verdict"] == "FAIL" and "because" not in r]
    assert unexplained == []


def test_every_check_that_was_made_rejects_its_control() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    made = [row for row in record["rows"] if row["verdict"] != "SKIPPED"]
    assert [row for row in made if "control" not in row or runner.broken(row)] == []


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
    lines = capsys.readouterr().out.splitlines()
    assert [line[:12].strip() for line in lines] == [row["verdict"] for row in rows]
    assert "## What failed" in sheet.read_text(encoding="utf-8")
    assert "k-deltas" in (tmp_path / "evidence" / "reproduction.csv").read_text(encoding="utf-8")
    redrawn = tmp_path / "again.md"
    monkeypatch.setattr(
        sys, "argv", ["run.py", "--redraw", "--output", str(output), "--page", str(redrawn)]
    )
    assert runner.main() == 0
    assert redrawn.read_text(encoding="utf-8") == sheet.read_text(encoding="utf-8")


@pytest.mark.usefixtures("nothing_here")
def test_an_update_keeps_what_is_stored_of_other_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "reproduce.json"
    here = ["--brief", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "k-deltas", "w-eq2", *here])
    assert runner.main() == 0
    record = json.loads(output.read_text(encoding="utf-8"))
    record["entries"]["w-eq2"]["ours"]["library"]["y"] = [55.0, 55.0, 54.0]
    output.write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "k-deltas", "--update", *here])
    assert runner.main() == 1
    updated = json.loads(output.read_text(encoding="utf-8"))
    assert list(updated["entries"]) == [path.stem for path in FILES]
    assert "w-eq2" in updated["kept"]
    assert "k-deltas" not in updated["kept"]
    verdicts = {row["entry"]: row["verdict"] for row in updated["rows"]}
    assert (verdicts["k-deltas"], verdicts["w-eq2"], verdicts["w-eq3"]) == ("OK", "FAIL", "SKIPPED")
