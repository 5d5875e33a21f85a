"""What pages write as code is there: names of the library, of its files, tests and options."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["CONTRIBUTING.md", "README.md", "RELEASING.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Tests and settings of others, and metrics, whose names are put together.
ELSEWHERE = {
    "upstream.md": ("rust_", "test_"),
    "RELEASING.md": ("HF_",),
    "log-faults.md": ("rag_sourcebias_",),
}
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def known() -> set[str]:
    """Every word of the sources, and every name of a file."""
    found: set[str] = set()
    folders = ("src", "integrations", "tests", "benchmarks", "docs/_site", ".ci")
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if "results" in path.parts or path == Path(__file__):
                continue
            found.update(path.name.split("."))
            if path.suffix in {".py", ".pyi", ".html", ".js", ".css", ".yml", ".yaml", ".toml"}:
                found.update(NAME.findall(path.read_text("utf-8")))
    for name in ("pyproject.toml", "Makefile"):
        found.update(NAME.findall((ROOT / name).read_text("utf-8")))
    return found | {name.lower() for name in found if name.isupper()}


def unknown(text: str, names: set[str]) -> set[str]:
    """Names with an underscore, or of a class, that are nowhere."""
    written = {name for code in CODE.findall(text) for name in NAME.findall(code)}
    return {n for n in written - names if "_" in n or re.match(r"[A-Z][a-z]+[A-Z]", n)}


@pytest.fixture(scope="module")
def names() -> set[str]:
    return known()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).name)
def test_pages_name_what_is_there(page: str | Path, names: set[str]) -> None:
    path = ROOT / page
    elsewhere = ELSEWHERE.get(path.name, ())
    gone = unknown(path.read_text("utf-8"), names)
    assert {n for n in gone if not n.startswith(elsewhere or ("\0",))} == set()


def test_a_name_that_is_nowhere_is_found(names: set[str]) -> None:
    gone = "`correct_relative_delta_of` and `SkewedNowhere.of(x)`, `score_run`"
    assert unknown(gone, names) == {"correct_relative_delta_of", "SkewedNowhere"}
