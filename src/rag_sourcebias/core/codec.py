"""Dataclasses to plain JSON values and back, and the software that a stored report names."""

from __future__ import annotations

import math
import os
import platform
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from rag_sourcebias._version import __version__
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError

T = TypeVar("T")


class Stored:
    """A dataclass that can be stored as plain JSON values and read again.

    One that says what it is called and its schema version is read in this version only.
    """

    __slots__ = ()
    _versioned: ClassVar[tuple[str, int] | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing or has the wrong shape.
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        if cls._versioned is None:
            return from_plain(cls, data)
        what, version = cls._versioned
        return from_versioned(cls, data, version=version, what=what)


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any field of any report type
    """Return ``value`` as JSON-ready plain values: what it ``stored()`` returns, if it has that."""
    if hasattr(value, "stored"):
        return to_plain(value.stored())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _floats(value) if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _floats(array: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401 - nested lists of any depth
    if array.ndim > 1:
        return [_floats(row) for row in array]
    return [None if math.isnan(v) else v for v in array.astype(np.float64).tolist()]


def from_plain(cls: type[T], data: Any, *, where: str = "") -> T:  # noqa: ANN401
    """Read a dataclass that :func:`to_plain` wrote.

    Raises
    ------
    DataError
        If a field is missing or has the wrong shape; the message names its path.
    """
    if not isinstance(data, Mapping):
        raise DataError(f"{where or cls.__name__}: expected an object, found {type(data).__name__}")
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for part in fields(cast("Any", cls)):
        path = f"{where}.{part.name}" if where else part.name
        if part.name in data:
            values[part.name] = _read(hints[part.name], data[part.name], path)
        elif part.default is MISSING and part.default_factory is MISSING:
            raise DataError(f"field {path!r} is missing")
    return cls(**values)


def from_versioned(cls: type[T], data: Mapping[str, Any], *, version: int, what: str) -> T:
    """Read a report that :func:`to_plain` wrote.

    Raises
    ------
    UnsupportedVersionError
        If its ``schema_version`` is another one.
    """
    found = data.get("schema_version")
    if found != version:
        raise UnsupportedVersionError(
            f"{what} schema version {found!r} cannot be read; this release reads version {version}"
        )
    return from_plain(cls, data)


def _read(hint: Any, value: Any, path: str) -> Any:  # noqa: ANN401
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        none = value is None and type(None) in args
        return None if none else _read(next(a for a in args if a is not type(None)), value, path)
    if origin is np.ndarray:
        return np.array(_expect(list, value, path), dtype=get_args(args[1])[0])
    if hasattr(hint, "from_stored"):
        return hint.from_stored(value, path)
    if is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value, where=path)
    if origin is tuple:
        return tuple(
            _read(args[0], item, f"{path}[{i}]")
            for i, item in enumerate(_expect(list, value, path))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {k: _read(args[1], v, f"{path}.{k}") for k, v in _expect(dict, value, path).items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        if value not in [member.value for member in hint]:
            raise DataError(
                f"field {path!r}: {value!r} is none of {[member.value for member in hint]}"
            )
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(hint, value, path) if hint in (str, int, bool, float) else value


def _expect(kind: type[T], value: Any, path: str) -> T:  # noqa: ANN401
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise DataError(f"field {path!r}: expected {kind.__name__}, found {value!r:.80}")


# Only what was imported can have influenced the numbers.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "bm25s": "bm25s",
    "Stemmer": "PyStemmer",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
    "chromadb": "chromadb",
    "langchain_core": "langchain-core",
    "llama_index.core": "llama-index-core",
    "sklearn": "scikit-learn",
    "openai": "openai",
    "pyarrow": "pyarrow",
}


@cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def environment() -> dict[str, str]:
    """Versions of the packages in use, and the machine."""
    found = {"rag-sourcebias": __version__, "python": platform.python_version()}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            found[package] = _version(package)
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found
