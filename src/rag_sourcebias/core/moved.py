"""Names of version 0.1 that are elsewhere now: they work, with a warning that says where."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False  # importing typing takes longer than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@cache
def _table() -> dict[str, dict[str, str | list[str]]]:
    """Former modules, their names, and the full path of each object now.

    Where another object is to be used from now on, its path comes second.
    """
    import json  # with this file every import of the package begins: a former name alone pays
    from importlib.resources import files

    text = files("rag_sourcebias").joinpath("core", "moved.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, str | list[str]]] = json.loads(text)
    return found


def moved_names(module: str, current: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Return a ``__getattr__`` (PEP 562) that also finds what version 0.1 had under a module.

    Parameters
    ----------
    module : str
    current : callable, optional
        The ``__getattr__`` of the names that the module has today.
    """

    def load(name: str) -> Any:  # noqa: ANN401 - any public object
        try:
            if current is not None:
                return current(name)
        except AttributeError:
            if name.startswith("_"):
                raise
        home = None if name.startswith("_") else _table().get(module, {}).get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path, use = (home, home) if isinstance(home, str) else home
        warnings.warn(f"{module}.{name} is deprecated; use {use}", DeprecationWarning, stacklevel=2)
        where, _, attribute = path.rpartition(".")
        return getattr(import_module(where), attribute)

    return load


class _FormerNamesake(ModuleType):
    """A former module with the name of a function of today, in whose place an import puts it."""

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        where, _, attribute = str(_table()[self.__name__]["__call__"]).rpartition(".")
        found: Callable[..., Any] = getattr(import_module(where), attribute)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self.__wrapped__(*args, **kwargs)


class _FormerModules:
    """Finds modules of version 0.1 that are gone, as modules that know where each name is."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        known = fullname.startswith("rag_sourcebias") and fullname in _table()
        return ModuleSpec(fullname, self, is_package=True) if known else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = moved_names(module.__name__)
        if "__call__" in _table()[module.__name__]:
            module.__class__ = _FormerNamesake


sys.meta_path.append(_FormerModules())  # asked last: modules of today come first
