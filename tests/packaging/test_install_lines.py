"""What pages tell people to install is what pip understands."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def understood(wanted: str) -> bool:
    """A requirement, or this checkout with extras that it has; older pips take no "name @ ."."""
    if found := re.fullmatch(r"\.(?:\[([a-z,-]+)\])?", wanted):
        return set((found[1] or "all").split(",")) <= {*EXTRAS}
    try:
        named = Requirement(wanted)
    except InvalidRequirement:
        return False
    return named.name != "rag-sourcebias" and named.url is None


@pytest.mark.parametrize(
    "page", ["README.md", "docs/index.md", "docs/quick-start.md", "docs/ragas.md"]
)
def test_install_lines(page: str) -> None:
    lines = re.findall(r"^\$ pip install (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.M)
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        options = {"-c", *(words[i + 1] for i, word in enumerate(words[:-1]) if word == "-c")}
        assert all(understood(word) for word in words if word not in options), line


def test_what_is_not_understood() -> None:
    assert not understood("rag-sourcebias[report] @ .")
    assert not understood(".[no-such-extra]")


def told(text: str) -> set[str]:
    """What a sentence says the core needs, under the names of the registry."""
    (names,) = re.findall(r"core needs(?: little\*\*:)?\s+([^.]+)\.", " ".join(text.split()))
    words = re.split(r",? and |, ", names.partition("; extras")[0].partition(", everything")[0])
    return {word.strip().lower().replace("-", "_") for word in words}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "CHANGELOG.md"])
def test_what_the_core_needs_is_told_as_it_is(page: str) -> None:
    needed = {Requirement(line).name.lower().replace("-", "_") for line in PROJECT["dependencies"]}
    text = (
        (ROOT / page)
        .read_text(encoding="utf-8")
        .replace("The core needs little**: ", "The core needs ")
    )
    assert told(text[text.index("core needs") - 4 :]) == needed


def test_a_package_that_nobody_told_of_is_seen() -> None:
    assert told("the core needs numpy and scipy; extras add the rest.") == {"numpy", "scipy"}
