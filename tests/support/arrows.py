"""Which of our files imports which: arrows, those that point upwards, and circles."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CORE, ADAPTERS = "rag_sourcebias", "rag_sourcebias_integrations"
BY_NAME = ("import_module", "__import__")


class Arrow(NamedTuple):
    """One file imports another; late is an import inside a function."""

    importer: str
    imported: str
    late: bool


def our_files() -> dict[str, str]:
    """Return the source of each module, and of each stub of a package that loads names late."""
    found = {}
    for root in (ROOT / "src", ROOT / "integrations"):
        for path in sorted((*root.rglob("*.py"), *root.rglob("__init__.pyi"))):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            found[f"{name}.pyi" if path.suffix == ".pyi" else name] = path.read_text("utf-8")
    return found


def arrows(files: Mapping[str, str]) -> set[Arrow]:
    """Return every import of one of the files by another, wherever in the file it stands."""
    homes = {name: dict(homes_in(name, text)) for name, text in files.items() if is_stub(name)}
    found = set()
    for name, text in files.items():
        if is_stub(name):
            continue
        for imported, late in imports(ast.parse(text)):
            target = imported if imported in files else imported.rpartition(".")[0]
            public = imported.rpartition(".")[2]
            target = homes.get(f"{target}.pyi", {}).get(public, target)
            if target in files and target != name:
                found.add(Arrow(name, target, late))
    return found


def is_stub(name: str) -> bool:
    return name.endswith(".pyi")


def homes_in(stub: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the public names of a stub with the modules that define them."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.name, f"{stub.removesuffix('.pyi')}.{node.module}"


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield each import, ``package.module`` or ``package.module.name``, and whether it is late."""
    left = [(tree, False)]
    while left:
        node, late = left.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", late) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in BY_NAME:
            yield from ((name, True) for name in texts_of(node.args))
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        left.extend((child, late) for child in ast.iter_child_nodes(node))


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def texts_of(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def layers() -> list[set[str]]:
    """Return the rows of the house from the top, as the contract of the import checker has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (rows,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [{part.strip() for part in row.split("|")} for row in rows]


def upward(found: Iterable[Arrow], rows: Sequence[set[str]]) -> set[Arrow]:
    """Return the arrows to a row above, or to a neighbour in the same row.

    Folders with a colon between them count as one: both hold what is handed over.
    """
    top, bottom = -1, len(rows)
    row_of = {
        folder.strip(): (i, part)
        for i, row in enumerate(rows)
        for part in row
        for folder in part.split(":")
    }
    row_of |= {"": (top, ""), "__main__": (top, "__main__"), "_version": (bottom, "_version")}

    def place(module: str) -> tuple[int, str]:
        package, _, rest = module.partition(".")
        part = rest.partition(".")[0]
        return (top, package) if package == ADAPTERS else row_of[part]

    wrong = set()
    for arrow in found:
        (row, part), (other_row, other) = place(arrow.importer), place(arrow.imported)
        if other_row < row or (other_row == row and other != part and row != top):
            wrong.add(arrow)
    return wrong


def circles(found: Iterable[Arrow]) -> list[set[str]]:
    """Return the sets of files each of which reaches every other one by imports."""
    reached: dict[str, set[str]] = {}
    for arrow in found:
        reached.setdefault(arrow.importer, set()).add(arrow.imported)
    for ends in reached.values():
        new = set(ends)
        while new:
            new = {end for name in new for end in reached.get(name, ())} - ends
            ends.update(new)
    rings = []
    for name, ends in reached.items():
        ring = {other for other in ends if name in reached.get(other, ())}
        if name in ends and ring not in rings:
            rings.append(ring)
    return rings
