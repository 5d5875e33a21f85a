"""Which adapters are installed, and which of them an object is for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points

__all__ = ["ADAPTER_GROUP", "CALLABLE", "candidates", "installed", "roots", "type_name"]

ADAPTER_GROUP = "rag_sourcebias.adapters"
CALLABLE = "callable"
"""Name of the adapter for functions."""


def installed() -> tuple[EntryPoint, ...]:
    """Return the adapters that installed packages offer, by name."""
    return tuple(sorted(entry_points(group=ADAPTER_GROUP), key=lambda entry: entry.name))


def candidates(obj: object, found: tuple[EntryPoint, ...]) -> Iterator[EntryPoint]:
    """Yield the adapters for an object, by the packages of its classes."""
    by_name = {entry.name: entry for entry in found}
    if isinstance(obj, str):
        names = [obj.strip().lower().replace("-", "_")]
    else:
        names = [name for name in roots(obj) if name in by_name]
        if not names and callable(obj):  # a framework's callable is no plain function
            names = [CALLABLE]
    for name in names:
        if name in by_name:
            yield by_name[name]


def roots(obj: object) -> tuple[str, ...]:
    """Return the top-level packages of an object's classes, its own first."""
    names = (base.__module__.partition(".")[0] for base in type(obj).__mro__)
    return tuple(dict.fromkeys(names))


def type_name(obj: object) -> str:
    """Return the name of an object's class as a message shows it."""
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
