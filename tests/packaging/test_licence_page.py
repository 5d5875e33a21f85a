"""docs/licences.md and its table list what is installed as it is pinned, and mark copyleft."""

import csv
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
with (ROOT / "docs" / "evidence" / "licences.csv").open(encoding="utf-8", newline="") as table:
    _, *ROWS = csv.reader(table)


def pins() -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def test_versions_are_the_pinned_ones() -> None:
    pinned = pins()
    assert len(ROWS) > 100
    listed = {canonicalize_name(name): version.partition("+")[0] for name, version, *_ in ROWS}
    assert {n: v for n, v in listed.items() if pinned.get(n) != v} == {}, (
        "run python benchmarks/packaging/licences.py"
    )


def test_direct_dependencies_are_listed() -> None:
    requirements = distribution("rag-sourcebias").requires or []
    names = {canonicalize_name(re.split(r"[\s\[<>=!~;(]", r, maxsplit=1)[0]) for r in requirements}
    there = set()
    for name in names - {"rag-sourcebias"}:
        try:
            distribution(name)
        except PackageNotFoundError:
            continue
        there.add(name)
    assert there - {canonicalize_name(name) for name, *_ in ROWS} == set()


def test_everyone_declares_a_licence_and_copyleft_is_marked() -> None:
    assert [name for name, _, licence, _ in ROWS if licence.startswith("not declared")] == []
    marked = re.findall(r"^- \*\*([\w.-]+)\*\*", PAGE, flags=re.MULTILINE)
    assert marked == [name for name, _, licence, _ in ROWS if re.search("GPL|MPL", licence)]


def test_what_the_wheel_bundles_is_there() -> None:
    places = re.findall(r"^\| .+ \| .+ \| `(.+)` \|$", PAGE, flags=re.MULTILINE)
    assert len(places) == 4
    assert [p for p in places if not (ROOT / "src" / "rag_sourcebias" / p).is_file()] == []
