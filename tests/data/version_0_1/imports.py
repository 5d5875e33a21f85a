"""Collect the documented imports of a source tree into ``imports.json``.

Documented are the names of the packages of the API reference, those that it says to import from a
module, and every import in the README, pages, notebooks, changelog, docstrings and entry points::

    python tests/data/version_0_1/imports.py TREE
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import types
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.) ?", re.MULTILINE)
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(rag_sourcebias[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(rag_sourcebias[\w.]*))",
    re.MULTILINE,
)
Found = dict[str, set[str]]


def use(tree: Path) -> None:
    """Import the library from a tree, and from nowhere else."""
    sys.path[:0] = [str(tree / "src"), str(tree / "integrations"), str(tree / "tests" / "support")]
    for name in ("rag_sourcebias", "rag_sourcebias_integrations"):
        file = Path(str(import_module(name).__file__)).resolve()
        if not file.is_relative_to(tree.resolve()):
            raise SystemExit(f"{name} is imported from {file}, not from {tree}")


def reference(tree: Path) -> dict[str, Any]:
    """Return the constants of the script that writes the API reference."""
    file = tree / "docs" / "_site" / "reference.py"
    sys.modules["mkdocs_gen_files"] = types.ModuleType("mkdocs_gen_files")
    constants: dict[str, Any] = {"__file__": str(file), "__name__": "reference"}
    exec(compile(file.read_text("utf-8").split("\ndef write(")[0], str(file), "exec"), constants)
    return constants


def exported(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of what the pages of the reference document."""
    site = reference(tree)
    for package in ("rag_sourcebias", *site["PACKAGES"]):
        names = getattr(import_module(package), "__all__", None)
        if names is not None:
            yield from ((package, name) for name in names)
            continue
        for file in site["source"](package).parent.glob("[!_]*.py"):  # a page with all modules
            module = f"{package}.{file.stem}"
            yield from ((module, name) for name in import_module(module).__all__)
    for package, modules in site["UNEXPORTED"].items():
        for module, names in modules.items():
            yield from ((f"rag_sourcebias.{package}.{module}", name) for name in names.split())


def texts(tree: Path) -> Iterator[str]:
    """Yield every text that may show an import."""
    for pattern in PAGES:
        for file in tree.glob(pattern):
            yield file.read_text("utf-8")
    for file in (tree / "docs" / "notebooks").rglob("*"):
        if file.suffix == ".ipynb":
            for cell in json.loads(file.read_text("utf-8"))["cells"]:
                yield "".join(cell["source"])
        elif file.suffix in (".py", ".md"):
            yield file.read_text("utf-8")
    for file in (*tree.glob("src/**/*.py"), *tree.glob("integrations/**/*.py")):
        yield from docstrings(file)


def docstrings(file: Path) -> Iterator[str]:
    """Yield the docstrings of a module."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import in a text; the name is empty for a module."""
    for found in _IMPORT.finditer(_PROMPT.sub("", text)):
        module, names, alone = found.groups()
        if alone:
            yield alone.rstrip("."), ""
            continue
        listed = re.sub(r"#.*", "", names.strip("()")).replace("\n", ",").split(",")
        cleaned = (name.partition(" as ")[0].strip() for name in listed)
        yield from ((module, name) for name in cleaned if name.isidentifier())


def entry_points(tree: Path) -> dict[str, dict[str, str]]:
    """Return the entry points of ``pyproject.toml`` by group."""
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]
    return {"console_scripts": project["scripts"], **project["entry-points"]}


def collected(tree: Path) -> dict[str, list[str]]:
    """Return names by module, all of which the tree has."""
    found: Found = defaultdict(set)
    pairs = [*exported(tree), *(pair for text in texts(tree) for pair in shown(text))]
    pairs += [
        (module, name)
        for group in entry_points(tree).values()
        for module, _, name in (target.partition(":") for target in group.values())
    ]
    for module, name in pairs:
        found[module].update([name] if name else [])
    for module, names in found.items():
        there = import_module(module)
        for name in sorted(names):
            if not hasattr(there, name):
                import_module(f"{module}.{name}")
    return {module: sorted(found[module]) for module in sorted(found)}


def main(tree: Path) -> None:
    """Write both files."""
    use(tree)
    for name, content in (("imports", collected(tree)), ("entry_points", entry_points(tree))):
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
