"""Packages whose names are loaded when first used hold what they say, under names of their own."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest

LAZY = (
    "rag_sourcebias",
    "rag_sourcebias.audit",
    "rag_sourcebias.io",
    "rag_sourcebias.measures",
    "rag_sourcebias.retrieval",
    "rag_sourcebias.types",
)


def imported(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Name and module of each import."""
    return {
        alias.name: node.module or ""
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("name", LAZY)
def test_each_name_is_found_where_type_checkers_look(name: str) -> None:
    package = import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    told = imported(node for block in tree.body if isinstance(block, ast.If) for node in block.body)
    loaded = {name: home for home, names in package._HOMES.items() for name in names}
    assert {public: f"{name}.{home}" for public, home in loaded.items()} == told
    assert set(package.__all__) - set(imported(tree.body)) == set(loaded)
    assert dir(package) == sorted(package.__all__)
    for public, home in told.items():
        assert getattr(package, public) is getattr(import_module(home), public)


@pytest.mark.parametrize("name", LAZY)
def test_no_name_is_that_of_a_submodule(name: str) -> None:
    """Importing the sub-module would put it in the place of the name."""
    package = import_module(name)
    lazy = {name for names in package._HOMES.values() for name in names}
    assert not {part.name for part in pkgutil.iter_modules(package.__path__)} & lazy


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"'rag_sourcebias.types' has no attribute 'Corpora'"):
        import_module("rag_sourcebias.types").Corpora  # noqa: B018
