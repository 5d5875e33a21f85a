"""Tables that may only fall: code by folder, public names, and what hides who depends on whom.

A folder that replaces others takes over their numbers. A number is raised only together with a
line in CONTRIBUTING that says for what.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from arrows import Arrow, arrows, circles, layers, our_files, upward

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "rag_sourcebias"
INTEGRATIONS = ROOT / "integrations" / "rag_sourcebias_integrations"

#: AST nodes by folder; "." is what lies beside the folders of the core.
NODES = {
    "answers": 11182,
    "core": 14152,
    "debias": 21184,
    "explain": 9308,
    "infer": 22400,
    "intake": 19061,
    "judged": 25093,
    "llm": 3238,
    "measure": 8785,
    "monitor": 22916,
    "neural": 11055,
    "observe": 20581,
    "pairs": 20936,
    "report": 11698,
    "retrieval": 9303,
    "source": 23121,
    "style": 12091,
    "tagging": 13238,
    "terminal": 3191,
    "testing": 3057,
    ".": 4401,
    "integrations": 28143,
}
NODES_PER_STATEMENT = 8.5
IGNORED_CONTRACTS = 0
IMPORTS_BY_NAME = 5
PUBLIC_NAMES = 155
#: Arrows that point upwards, and files that reach one another.
UPWARD_ARROWS = 0
FILES_IN_CIRCLES = 0
#: Imports of our own modules inside functions: of the training that loads torch, and an adapter's.
LATE_IMPORTS = 2
#: A number that fell by more than this share is lowered in the table, so that it cannot rise again.
SLACK = 0.03


class Counts(NamedTuple):
    """What one walk over a file counts."""

    nodes: int
    statements: int
    imports_by_name: int


def counts(tree: ast.AST) -> Counts:
    """Count nodes but for Load and Store marks and annotations; and imports that hide a door."""
    nodes, statements, by_name = 0, 0, 0
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.expr_context):
            continue
        nodes += 1
        statements += isinstance(node, ast.stmt)
        by_name += isinstance(node, ast.Call) and called(node) in ("import_module", "__import__")
        for name in node._fields:
            value = getattr(node, name, None)
            if name in ("annotation", "returns"):
                continue
            if isinstance(value, list):
                left.extend(child for child in value if isinstance(child, ast.AST))
            elif isinstance(value, ast.AST):
                left.append(value)
    # annotations hold no statements and no calls that import
    return Counts(nodes, statements, by_name)


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def total(parts: Iterable[Counts]) -> Counts:
    return Counts(*map(sum, zip(*parts, strict=True)))


@cache
def folders() -> dict[str, Counts]:
    """Return the counts of each folder."""
    found: dict[str, list[Counts]] = {}
    for root in (CORE, INTEGRATIONS):
        for path in sorted(root.rglob("*.py")):
            part = path.relative_to(root).parts[0] if len(path.relative_to(root).parts) > 1 else "."
            name = "integrations" if root == INTEGRATIONS else part
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found.setdefault(name, []).append(counts(tree))
    return {name: total(parts) for name, parts in found.items()}


def ignored_contracts() -> int:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return sum(len(contract.get("ignore_imports", ())) for contract in contracts)


def public_names() -> int:
    lines = [
        line
        for stub in (ROOT / "src").rglob("__init__.pyi")
        for line in stub.read_text(encoding="utf-8").splitlines()
    ]
    return sum(bool(re.search(r"\bimport \S+ as \S+", line)) for line in lines)


def too_many(now: int, allowed: int) -> bool:
    return now > allowed


def is_slack(now: int, allowed: int) -> bool:
    return allowed > now * (1 + SLACK) + 20


def test_no_folder_grows() -> None:
    now = {name: found.nodes for name, found in folders().items()}
    assert set(now) == set(NODES), "a new folder takes over the numbers of those it replaces"
    assert {name: n for name, n in now.items() if too_many(n, NODES[name])} == {}


def test_tables_are_lowered_where_code_went() -> None:
    now = {name: found.nodes for name, found in folders().items()}
    slack = {name: n for name, n in now.items() if is_slack(n, NODES[name])}
    assert slack == {}, "lower these numbers"


def test_statements_are_not_packed() -> None:
    found = total(folders().values())
    assert found.nodes / found.statements <= NODES_PER_STATEMENT


def test_no_door_is_hidden() -> None:
    assert total(folders().values()).imports_by_name <= IMPORTS_BY_NAME
    assert ignored_contracts() <= IGNORED_CONTRACTS
    assert public_names() <= PUBLIC_NAMES


@cache
def found_arrows() -> set[Arrow]:
    return arrows(our_files())


def test_imports_point_downwards() -> None:
    assert len(upward(found_arrows(), layers())) <= UPWARD_ARROWS


def test_files_do_not_import_in_circles() -> None:
    assert sum(map(len, circles(found_arrows()))) <= FILES_IN_CIRCLES


def test_imports_stand_at_the_top() -> None:
    assert sum(arrow.late for arrow in found_arrows()) <= LATE_IMPORTS


SMALL_HOUSE = {
    "rag_sourcebias.core.data": "",
    "rag_sourcebias.intake.files": "from rag_sourcebias.core.data import Run",
    "rag_sourcebias.intake": "",
    "rag_sourcebias.intake.pyi": "from .files import read as read",
    "rag_sourcebias.style.audit": "from rag_sourcebias.intake import read",
}


@pytest.mark.parametrize(
    ("importer", "text", "expected"),
    [
        ("core.data", "", (0, 0, 0)),
        ("core.data", "from rag_sourcebias.intake.files import read", (1, 2, 0)),
        ("core.data", "from rag_sourcebias.intake import read", (1, 2, 0)),
        ("core.data", "if TYPE_CHECKING:\n    import rag_sourcebias.intake.files", (1, 2, 0)),
        ("core.data", "def f():\n    from rag_sourcebias.intake import files", (1, 2, 1)),
        ("core.data", "def f():\n    import_module('rag_sourcebias.style.audit')", (1, 3, 1)),
        ("core.data", "FILES = importlib.import_module('rag_sourcebias.intake.files')", (1, 2, 1)),
        ("pairs.audit", "from rag_sourcebias.style.audit import measure", (1, 0, 0)),
        ("style.page", "from rag_sourcebias.style.audit import measure", (0, 0, 0)),
    ],
)
def test_which_arrows_are_seen(importer: str, text: str, expected: tuple[int, int, int]) -> None:
    found = arrows({**SMALL_HOUSE, f"rag_sourcebias.{importer}": text})
    in_circles = sum(map(len, circles(found)))
    late = sum(arrow.late for arrow in found)
    assert (len(upward(found, layers())), in_circles, late) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x: int = 1", (4, 1, 0)),
        ("def f(a: int) -> str:\n    return a", (6, 2, 0)),
        ("x = 1 if y else 2", (7, 1, 0)),
        ("importlib.import_module('a.b')", (6, 1, 1)),
    ],
)
def test_what_is_counted(source: str, expected: tuple[int, int, int]) -> None:
    assert counts(ast.parse(source)) == expected


def test_growth_and_slack_are_seen() -> None:
    assert too_many(101, 100)
    assert is_slack(100, 130)
    assert not is_slack(100, 101)
