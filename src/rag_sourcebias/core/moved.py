"""Names of version 0.1 that live elsewhere now: they work, with a warning that says where."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.resources import files
from types import ModuleType
from typing import Any

_PACKAGE = "rag_sourcebias"


@cache
def _table() -> dict[str, dict[str, str]]:
    """Old modules, the names they had, and the module that has each of them now."""
    text = files(_PACKAGE).joinpath("core", "moved.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = json.loads(text)
    return found


def moved_names(module: str, current: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Return a ``__getattr__`` (PEP 562) that also finds names of version 0.1.

    Parameters
    ----------
    module : str
    current : callable, optional
        The ``__getattr__`` of the names that the module has today.
    """

    def load(name: str) -> Any:  # noqa: ANN401 - any public object
        if current is not None:
            try:
                return current(name)
            except AttributeError:
                if name.startswith("__"):
                    raise
        home = _table().get(module, {}).get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is {home}.{name} since version 0.2; the old name goes with 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(home), name)

    return load


class _OldModules(MetaPathFinder, Loader):
    """Finds modules of version 0.1 that are gone, as modules that know where each name is."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Find a module of version 0.1 that is gone."""
        if not fullname.startswith(f"{_PACKAGE}.") or fullname not in _table():
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Give it what finds its names."""
        module.__doc__ = "A module of version 0.1; its names are elsewhere now."
        module.__dict__["__getattr__"] = moved_names(module.__name__)
        module.__dict__["__all__"] = list(_table()[module.__name__])


# Asked last: today's modules are found before.
sys.meta_path.append(_OldModules())
