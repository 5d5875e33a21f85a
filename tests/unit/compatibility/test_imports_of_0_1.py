"""What version 0.1 documented can be imported: as it was, or with a warning that says from where.

``tests/data/version_0_1/imports.py`` collected the names, and the entry points.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
import warnings
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_sourcebias.core import moved

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "version_0_1"
IMPORTS: dict[str, list[str]] = json.loads((DATA / "imports.json").read_text("utf-8"))
ENTRY_POINTS: dict[str, dict[str, str]] = json.loads(
    (DATA / "entry_points.json").read_text("utf-8")
)
NEEDS = {
    "rag_sourcebias_integrations.chroma": "chromadb",
    "rag_sourcebias_integrations.langchain": "langchain_core",
    "rag_sourcebias_integrations.llama_index": "llama_index.core",
    "rag_sourcebias_integrations.opentelemetry": "opentelemetry",
    "rag_sourcebias_integrations.prometheus": "prometheus_client",
    "rag_sourcebias_integrations.ragas": "ragas",
}
#: Names that are gone: no verdict rests on them any more.
REMOVED = {
    "rag_sourcebias.explain.geometry.source_direction",
    "rag_sourcebias.inference.mean_differences",
    "rag_sourcebias.inference.queries_needed",
    "rag_sourcebias.inference.sign_flip_test",
    "rag_sourcebias.intervals.clopper_pearson_interval",
    "rag_sourcebias.judges.audit_labels",
    "rag_sourcebias.measures.delta_ndsr",
    "rag_sourcebias.report.verdicts.Elsewhere",
    "rag_sourcebias.types.judgments.LabelBounds",
}
_USE = re.compile(r"; use (rag_sourcebias[\w.]+)$")


def resolved(path: str) -> Any:
    """Return the object, or the module, of a full path."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except AttributeError as error:
        try:
            found = import_module(path)
        except ModuleNotFoundError:
            raise error from None
    # a former module stands where an import put it, and calls the function of its name
    return inspect.unwrap(found) if isinstance(found, ModuleType) and callable(found) else found


def complaint(module: str, name: str) -> str | None:
    """Say what is wrong with a documented import; None if nothing is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scope: dict[str, Any] = {}
            exec(f"from {module} import {name}", scope)
        except ImportError as error:
            return f"{module}.{name}: {error}"
    said = {str(w.message) for w in caught if "rag_sourcebias" in str(w.message)}
    if not said:
        return None
    kinds = {w.category for w in caught if str(w.message) in said}
    told = _USE.search(next(iter(said)))
    if len(said) > 1 or kinds != {DeprecationWarning} or told is None:
        return (
            f"{module}.{name}: expected one DeprecationWarning that ends in '; use …', got {said}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            new = resolved(told[1])
        except (ImportError, AttributeError, Warning) as error:
            return f"{module}.{name}: {told[1]} cannot be imported: {error}"
    if new is scope[name]:
        return None
    return f"{module}.{name}: {told[1]} is another object"


def require(module: str) -> None:
    for package, needed in NEEDS.items():
        if module == package or module.startswith(f"{package}."):
            pytest.importorskip(needed)


@pytest.mark.parametrize("module", IMPORTS)
def test_documented_names_can_be_imported(module: str) -> None:
    require(module)
    promised = (name for name in IMPORTS[module] if f"{module}.{name}" not in REMOVED)
    found = (complaint(module, name) for name in promised)
    assert [text for text in found if text] == []


@pytest.mark.parametrize("name", sorted(REMOVED))
def test_removed_names_are_really_gone(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert attribute in IMPORTS[module]
    assert complaint(module, attribute)


@pytest.mark.parametrize("file", ["inputs.py", "readings.py"])
def test_files_are_read_by_documented_names(file: str) -> None:
    """They run with the code of version 0.1 and of today."""
    used = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse((DATA / file).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rag_sourcebias")
        for alias in node.names
    ]
    assert used
    assert [f"{module}.{name}" for module, name in used if name not in IMPORTS[str(module)]] == []


@pytest.mark.parametrize(
    ("home", "wrong"),
    [
        (None, "cannot import name"),
        ("rag_sourcebias.Run", None),
        (["rag_sourcebias.Run", "rag_sourcebias.Nothing"], "no attribute"),
        (["rag_sourcebias.Run", "rag_sourcebias.Qrels"], "another object"),
        (["rag_sourcebias.Run", "the manual"], "expected one Deprecation"),
    ],
)
def test_imports_that_do_not_keep_the_promise_are_seen(
    home: Any, wrong: str | None, monkeypatch: Any
) -> None:
    table = {"rag_sourcebias.former": {} if home is None else {"Run": home}}
    monkeypatch.setattr(moved, "_table", lambda: table)
    found = complaint("rag_sourcebias.former", "Run")
    sys.modules.pop("rag_sourcebias.former", None)
    assert (found is None) if wrong is None else (wrong in str(found))


@pytest.mark.parametrize("name", ["audit", "instrument"])
def test_a_function_with_the_name_of_a_former_module_can_be_called(name: str) -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore'); import inspect, rag_sourcebias as rsb\n"
        f"before = rsb.{name}\n"
        f"import rag_sourcebias.{name}\n"
        f"assert inspect.signature(rsb.{name}) == inspect.signature(before)\n"
        f"try: rsb.{name}(nothing=1)\n"
        "except (TypeError, ValueError) as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = {"audit": "there is no setting 'nothing'", "instrument": "instrument()"}
    assert done.stdout.startswith(expected[name])


def test_entry_points_keep_their_groups_and_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    now = {"console_scripts": project["scripts"], **project["entry-points"]}
    gone = [
        f"{group}: {name}"
        for group, entries in ENTRY_POINTS.items()
        for name in entries
        if name not in now.get(group, {})
    ]
    assert gone == []


@pytest.mark.parametrize("group", ENTRY_POINTS)
def test_entry_points_load_what_they_did(group: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    now = {"console_scripts": project["scripts"], **project["entry-points"]}[group]
    for name, before in ENTRY_POINTS[group].items():
        target = now[name]
        require(target.partition(":")[0])
        loaded = metadata.EntryPoint(name, target, group).load()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert metadata.EntryPoint(name, before, group).load() is loaded
