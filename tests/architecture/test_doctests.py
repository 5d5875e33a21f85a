"""Examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rag_sourcebias
import rag_sourcebias_integrations

NAMES = [
    info.name
    for package in (rag_sourcebias, rag_sourcebias_integrations)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("__main__")
]


@pytest.mark.parametrize("name", NAMES)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [
        test
        for name in NAMES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) >= 5
