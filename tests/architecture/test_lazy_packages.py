"""Packages whose names are loaded when first used hold what their stubs say."""

from __future__ import annotations

import ast
import pkgutil
import re
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import pytest

import rag_sourcebias

ROOT = Path(rag_sourcebias.__file__).parent
LAZY = sorted(
    ".".join(("rag_sourcebias", *stub.parent.relative_to(ROOT).parts))
    for stub in ROOT.rglob("__init__.pyi")
)


def told(name: str) -> dict[str, str]:
    """Name and module of each public object, as type checkers read it."""
    stub = Path(str(import_module(name).__file__)).with_suffix(".pyi")
    return {
        alias.name: f"{name}.{node.module}"
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("name", LAZY)
def test_each_name_is_found_where_type_checkers_look(name: str) -> None:
    package = import_module(name)
    assert set(package.__all__) == set(told(name)) <= set(dir(package))
    for public, home in told(name).items():
        # a former module of that name, once imported, takes its place and wraps it
        found = unwrap(getattr(package, public))
        assert found is unwrap(getattr(import_module(home), public))


@pytest.mark.parametrize("name", LAZY)
def test_no_name_is_that_of_a_submodule(name: str) -> None:
    """Importing the sub-module would put it in the place of the name."""
    package = import_module(name)
    assert not {part.name for part in pkgutil.iter_modules(package.__path__)} & set(told(name))


def test_each_name_of_the_root_is_documented_and_some_test_is_about_it() -> None:
    public = {name: getattr(rag_sourcebias, name) for name in told("rag_sourcebias")}
    del public["__version__"]
    assert [name for name, found in public.items() if not found.__doc__] == []
    tests = Path(__file__).parents[1]
    words = {word for file in tests.rglob("*.py") for word in re.findall(r"\w+", file.read_text())}
    assert set(public) <= words


def test_one_thing_has_one_public_name() -> None:
    homes: dict[str, list[str]] = {}
    for package in LAZY:
        for public, home in told(package).items():
            homes.setdefault(f"{home}.{public}", []).append(package)
    assert {home: packages for home, packages in homes.items() if len(packages) > 1} == {}
    assert len(told("rag_sourcebias")) <= 61


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"rag_sourcebias.core attribute Corpora"):
        import_module("rag_sourcebias.core").Corpora  # noqa: B018


def test_there_are_at_most_250_public_names() -> None:
    """What a user can import, without an underscore, from a module of the reference."""
    integrations = ROOT.parents[1] / "integrations" / "rag_sourcebias_integrations"
    names = {f"{name}.{public}" for name in LAZY for public in told(name)}
    for file in (*integrations.glob("*/__init__.py"), ROOT / "testing" / "contract.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        listed = [n for n in tree.body if isinstance(n, ast.Assign) and "__all__" in ast.dump(n)]
        defined = [n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        found = ast.literal_eval(listed[0].value) if listed else defined
        names |= {f"{file}.{public}" for public in found if not public.startswith("_")}
    assert 200 < len(names) <= 250
