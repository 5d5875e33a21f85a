"""What griffe must be told so that docstrings agree with the signatures that they describe."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(attr|class|data|exc|func|meth|mod):`(~?)\.?([\w.]+)`")
NAMED = {"parameters", "raises", "attributes", "returns", "yields"}


class Signed(griffe.Extension):
    """Read defaults and types off the signature, and make links of the roles."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: object) -> None:
        """Visit every object of a package once its classes have their ``__init__``."""
        if pkg.name.startswith("rag_sourcebias"):
            visit(pkg, loader)


def visit(obj: griffe.Object, loader: griffe.GriffeLoader) -> None:
    """Correct the docstrings of an object and of what it holds."""
    if obj.docstring:
        obj.docstring.value = ROLE.sub(lambda role: link(role, obj, loader), obj.docstring.value)
        for section in obj.docstring.parsed:
            if section.kind.value in NAMED:
                agree(section.value, getattr(obj, "parameters", griffe.Parameters()))
            if section.kind is griffe.DocstringSectionKind.raises:
                for row in section.value:
                    name_errors(row, loader)
    for member in obj.members.values():
        if not member.is_alias:
            visit(member, loader)


def agree(rows: list[Any], signature: griffe.Parameters) -> None:
    """Give each of several names in one row of a docstring its own type and default.

    Griffe gives all of them those of the first, and reads the first of some choices as the default.
    A list of types is shown without the brackets of a tuple.
    """
    types = [parameter.annotation for parameter in signature]
    for row in rows:
        if isinstance(row, griffe.DocstringParameter) and row.name in signature:
            if any(row.annotation is one for one in types):
                row.annotation = signature[row.name].annotation
            row.value = signature[row.name].default
        if isinstance(row.annotation, griffe.ExprTuple):
            row.annotation.implicit = True


def name_errors(row: griffe.DocstringRaise, loader: griffe.GriffeLoader) -> None:
    """Let errors be found that a module raises through others, without importing them."""
    core = loader.modules_collection.members.get("rag_sourcebias")
    if core is None:
        return
    several = isinstance(row.annotation, griffe.ExprTuple)
    for name in row.annotation.elements if several else (row.annotation,):
        if isinstance(name, griffe.ExprName) and name.name in core["core.errors"].members:
            name.parent = core["core.errors"]


def link(role: re.Match[str], obj: griffe.Object, loader: griffe.GriffeLoader) -> str:
    """Return a role as code, which links to what it names if that has a place in the reference."""
    kind, short, target = role.groups()
    path = target if target.startswith("rag_sourcebias") else resolved(target, obj)
    try:
        found = loader.modules_collection[path]
        path = found.final_target.path if found.is_alias else found.path
    except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
        pass
    n_shown = 2 if kind in {"attr", "meth"} else 1
    said = target if kind == "mod" and not short else ".".join(target.split(".")[-n_shown:])
    return f'<autoref optional identifier="{path}">`{said}`</autoref>'


def resolved(name: str, obj: griffe.Object) -> str:
    """Return the path of a name as the code around a docstring would read it."""
    first, _, rest = name.partition(".")
    for scope in (obj, obj.parent):
        if isinstance(scope, griffe.Class) and first in scope.inherited_members:
            return f"{scope.path}.{name}"
    try:
        return obj.resolve(first) + (f".{rest}" if rest else "")
    except griffe.NameResolutionError:
        return name
