"""docs/upstream.md says what its results say, and the comparison behind it sees what changed."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmark_modules import load

ROOT = Path(__file__).parents[2]
(run,) = load("upstream", "run")
page = run.page

FOUND = json.loads((ROOT / "benchmarks" / "results" / "upstream.json").read_text("utf-8"))
PAGE = (ROOT / "docs" / "upstream.md").read_text(encoding="utf-8")


def test_the_page_is_made_of_the_results() -> None:
    assert page(FOUND) == PAGE, "run python benchmarks/upstream/run.py --page"


def test_retrievals_were_observed_and_broken_adapters_noticed() -> None:
    rows = FOUND["tested"]["suites"]
    assert sum(sum(r["modes"]["everything"]["retrievals"].values()) for r in rows.values()) > 100
    assert any(r["modes"].get("broken", {}).get("n_different") for r in rows.values())
    assert not any(map(run.unnoticed, rows.values()))


@pytest.mark.parametrize(
    "on", [{"a": "failed", "b": "skipped"}, {"b": "skipped"}, {"a": "skipped", "b": "skipped"}]
)
def test_an_outcome_that_changes_or_is_missing_is_a_difference(on: dict[str, str]) -> None:
    off = {"a": "passed", "b": "skipped"}
    assert run.changed(off, on, set()) == ["a"]
    assert run.changed(off, on, {"a"}) == []
    assert run.changed(off, off | {"c": "passed"}, set()) == ["c"]


def test_only_a_difference_that_comes_again_is_certain() -> None:
    runs = {"off": {"t.py::a": "passed", "t.py::b": "passed"}, "everything": {"t.py::a": "failed"}}
    runs["everything"]["t.py::b"] = "passed"
    place = SimpleNamespace(run=lambda suite, mode, files: {"outcomes": runs[mode]})
    on = {
        "outcomes": {"t.py::a": "failed", "t.py::b": "failed"},
        "tracebacks": {"t.py::a": "t.py:1: in a\nE   assert 0 == 2"},
    }
    found = run.differences(place, None, "everything", list(runs["off"]), runs["off"], on)
    assert [(row["test"], row["again"]) for row in found] == [("t.py::a", True), ("t.py::b", False)]
    assert found[0]["error"] == "E   assert 0 == 2"
