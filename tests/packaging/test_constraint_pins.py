"""What is installed is what was tested: pins of every requirement, and the page of licences."""

import csv
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
OURS = canonicalize_name(PROJECT["project"]["name"])


def pins(file: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        name, equal, version = text.partition("==")
        assert equal, f"{file}: {line!r} is no exact pin"
        assert canonicalize_name(name) not in found, f"{file}: {name} is pinned twice"
        found[canonicalize_name(name)] = version
    return found


def written() -> list[tuple[str, Requirement]]:
    """Requirements of the package, its extras and its groups, with where they stand."""
    lists = {"dependencies": PROJECT["project"]["dependencies"], **EXTRAS, **GROUPS}
    return [
        (where, requirement)
        for where, entries in lists.items()
        for entry in entries
        if isinstance(entry, str)
        and canonicalize_name((requirement := Requirement(entry)).name) != OURS
    ]


@pytest.mark.parametrize(("where", "requirement"), written(), ids=str)
def test_requirement_has_a_pin_that_it_admits(where: str, requirement: Requirement) -> None:
    pinned = pins("constraints.txt").get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{requirement} of {where} has no pin in constraints.txt"
    assert requirement.specifier.contains(pinned, prereleases=True), (where, pinned)


def test_lowest_pins_lie_within_the_bounds() -> None:
    lowest = pins("constraints-lowest.txt")
    bounds = {canonicalize_name(r.name): r.specifier for _, r in written()}
    assert lowest
    assert {n: v for n, v in lowest.items() if n not in bounds or v not in bounds[n]} == {}


def test_everything_is_in_the_extra_all() -> None:
    (entry,) = EXTRAS["all"]
    assert Requirement(entry).extras == set(EXTRAS) - {"all"}


def installed_below(name: str, extras: set[str], seen: dict[tuple[str, str], None]) -> None:
    """Collect what is installed of the dependencies of a distribution, and theirs."""
    for entry in requires(name) or ():
        wanted = Requirement(entry)
        marker, below = wanted.marker, canonicalize_name(wanted.name)
        if marker and not any(marker.evaluate({"extra": e}) for e in (extras or {""})):
            continue
        key = (below, ",".join(sorted(wanted.extras)))
        if key in seen:
            continue
        try:
            requires(below)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        seen[key] = None
        installed_below(below, set(wanted.extras), seen)


def test_what_dependencies_bring_along_is_pinned_too() -> None:
    seen: dict[tuple[str, str], None] = {}
    installed_below(OURS, set(EXTRAS), seen)
    missing = {name for name, _ in seen} - set(pins("constraints.txt")) - {OURS}
    assert missing == set(), "no pin in constraints.txt"


# docs/licences.md and its table list what is installed as it is pinned, and mark copyleft


PAGE = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")


with (ROOT / "docs" / "evidence" / "licences.csv").open(encoding="utf-8", newline="") as table:
    _, *ROWS = csv.reader(table)


def test_versions_are_the_pinned_ones() -> None:
    pinned = pins("constraints.txt")
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
