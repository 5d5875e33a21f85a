"""Tables that may only fall: code by folder, ignored contracts, imports by name, public names.

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

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "rag_sourcebias"
INTEGRATIONS = ROOT / "integrations" / "rag_sourcebias_integrations"

#: AST nodes by folder; "." is what lies beside the folders of the core.
NODES = {
    "answers": 14086,
    "core": 13330,
    "debias": 23207,
    "explain": 10513,
    "infer": 19387,
    "io": 18713,
    "judged": 40790,
    "llm": 4189,
    "measure": 5657,
    "monitor": 37752,
    "neural": 12472,
    "observe": 6319,
    "pairs": 21943,
    "report": 15195,
    "retrieval": 7683,
    "source": 20020,
    "style": 14970,
    "tagging": 14480,
    "terminal": 2911,
    "testing": 3005,
    ".": 4610,
    "integrations": 33792,
}
NODES_PER_STATEMENT = 8.5
IGNORED_CONTRACTS = 2
IMPORTS_BY_NAME = 10
PUBLIC_NAMES = 185
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
