"""Names of a package that are loaded when first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]], public: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping of str to sequence of str
        Sub-module, relative to the package, and the names it holds.
    public : sequence of str
        What ``dir`` lists.
    """
    where = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:  # noqa: ANN401 - any public object
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return load, lambda: list(public)
