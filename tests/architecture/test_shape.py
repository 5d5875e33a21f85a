"""Function sizes, exported names and what may not stand in the tree."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import rag_sourcebias
import rag_sourcebias_integrations

ROOT = Path(__file__).parents[2]
MODULES = [
    path for folder in ("src", "integrations") for path in sorted((ROOT / folder).rglob("*.py"))
]
NAMES = [
    info.name
    for package in (rag_sourcebias, rag_sourcebias_integrations)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_functions_fit_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} ({size} lines)"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := code_lines(node)) > 60
    ]
    assert long == []


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring; a signature declares, with its options."""
    docstring = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    last = (node.body[0].end_lineno or 0) if docstring else node.body[0].lineno - 1
    return (node.end_lineno or last) - last


@pytest.mark.parametrize("name", NAMES)
def test_exported_names_exist_once(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is None:
        return
    assert [n for n in exported if not hasattr(module, n)] == []
    assert len(set(exported)) == len(exported)


def test_no_public_module_is_an_empty_shell() -> None:
    empty = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if path.name != "__init__.py" and lines(path) < 3
    ]
    assert empty == []


def test_version_and_changelog_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {rag_sourcebias.__version__}" in changelog


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w…]+/)+\w+\.py)`", text))
    homes = (ROOT, ROOT / "src/rag_sourcebias", ROOT / "integrations/rag_sourcebias_integrations")
    assert len(named) > 10
    missing = [
        name
        for name in sorted(named)
        if not any((home / name.replace("integrations/…/", "")).is_file() for home in homes)
    ]
    assert missing == []
