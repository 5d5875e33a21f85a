"""Every figure in README and docs is the one in its result file."""

import json
import sys
from pathlib import Path

import pytest
from benchmark_modules import load

ROOT = Path(__file__).parents[2]
(claims,) = load(".", "claims")
PAGES = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in claims.pages()}


def problems(text: str, *rows: str) -> list[str]:
    table = "\n".join(["<!-- figures", *rows, "-->"]) if rows else ""
    return [found.what for found in claims.check("page.md", f"{text}\n\n{table}\n")]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one result file."""
    rows = [{"name": "a", "k": 1, "value": 2.0}, {"name": "b", "k": 1, "value": -0.5}]
    found = {"rows": rows, "ends": [0.25, -1, 1.5], "text": "34 bytes each", "share": {"a": 0.5}}
    (tmp_path / "made.json").write_text(json.dumps(found), encoding="utf-8")
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    claims.result.cache_clear()
    yield
    claims.result.cache_clear()


@pytest.mark.parametrize("page", PAGES)
def test_pages_say_what_their_results_say(page: str) -> None:
    found = claims.check(page, PAGES[page])
    assert found == [], "run python benchmarks/claims.py:\n" + "\n".join(map(str, found))


def test_the_command_fails_on_drift_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    for page, text in PAGES.items():
        (tmp_path / page).write_text(text, encoding="utf-8")
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["claims.py", "--check"])
    assert claims.main() == 0
    text = PAGES["README.md"]
    mark = next(m for m in claims.MARK.finditer(text) if m["name"] == "observing")
    drifted = text[: mark.start("shown")] + "0.1 %" + text[mark.end("shown") :]
    (tmp_path / "README.md").write_text(drifted, encoding="utf-8")
    capsys.readouterr()
    assert claims.main() == 1
    line = text.count("\n", 0, mark.start()) + 1
    said = f"README.md:{line}: observing: '0.1 %' in the text, {mark['shown']!r} in the result"
    assert capsys.readouterr().out == f"{said}\n"
    monkeypatch.setattr(sys, "argv", ["claims.py"])
    assert claims.main() == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "loose",
    ["0.851", ".85", "−0.5", "12 %", "12%", "[3, 9]", "[−1.5, 2]", "12×", "3 × as fast", "4 ms",
     "11 µs", "3 times", "659 MB", "`0.851`", "| 0.5 |", "**7.1**", "(0.3)", "at 62 %", "93 % of"],
)  # fmt: skip
@pytest.mark.parametrize("page", ["README.md", "docs/debias.md"])
def test_a_loose_figure_is_seen(page: str, loose: str) -> None:
    lines = PAGES[page].split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("## "))
    lines[at + 1 : at + 1] = ["", f"It gives {loose} here.", ""]
    (found,) = claims.check(page, "\n".join(lines))
    assert found.line == at + 3
    assert found.what.endswith("is not generated from a result")


@pytest.mark.parametrize(
    "fence",
    [
        "```\nfound 0.763\n```",
        "```console\n$ run --k 0.5\n0.763\n```",
        "```python\nf(0.5)  # 0.763\n```",
    ],
)
def test_output_in_a_fence_is_a_figure(fence: str) -> None:
    assert problems(f"Look:\n\n{fence}\n") == ["'0.763' is not generated from a result"]


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ("made > rows > name=a > value | {:.1f}", "2.0"),
        ("made > rows > 1 > value | {:+.2f}", "−0.50"),
        ("made > rows > name~b & k=1 > value ÷ made > rows > name=a > value | {:.0%}", "−25 %"),
        ("made > rows > * > value > mean | {:.2f}", "0.75"),
        ("made > rows > * k=1 > value > min | {}", "−0.5"),
        ("made > ends | {:.2f} [{:.1f}, {:.1f}]", "0.25 [−1.0, 1.5]"),
        ("made > text > re (\\d+) bytes > ×2 | {:.0f}", "68"),
        ("made > share > * > max | {:.1f}", "0.5"),
        ("made > share | {a:.1f}", "0.5"),
        ("made > text | {}", "34 bytes each"),
    ],
)
def test_paths_lead_to_values(row: str, shown: str) -> None:
    assert problems(f"It is <!--=x-->{shown}<!--/-->.", f"x | {row}") == []
    wrong = problems("It is <!--=x-->9.99<!--/-->.", f"x | {row}")
    assert wrong == [f"x: '9.99' in the text, {shown!r} in the result"]


def test_pages_written_whole_are_named() -> None:
    """They are held to their results by tests of their own."""
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert there >= set(claims.WRITTEN)
    scripts = [c.partition(" ")[0] for n, c in claims.WRITTEN.items() if c and n in there]
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_the_coverage_page_is_made_of_its_results() -> None:
    (study,) = load("coverage", "run")
    where, at = ROOT / "benchmarks" / "results", ROOT / "docs" / "coverage.md"
    found, real, figures = study.read(where)
    written = at.read_text(encoding="utf-8")
    page = study.page.page(found, real, figures, folder=where, at=at)
    tables = study.page.tables(found, real, figures, folder=where)
    evidence = sys.modules["evidence"]
    assert evidence.unlike(at, page, tables) == [], "run python benchmarks/claims.py"
    assert len(written.split()) <= 1_800
    found["bars"][0]["value"] = 0.1234
    assert study.page.page(found, real, figures, folder=where, at=at) != written


def test_the_validity_page_is_made_of_its_results() -> None:
    (study,) = load("validity", "run")
    at = ROOT / "docs" / "validity.md"
    changed = sys.modules["evidence"].unlike(at, study.written(), {"validity": study.table()})
    assert changed == [], "run python benchmarks/claims.py"
    assert len(at.read_text(encoding="utf-8").split()) <= 1_800
