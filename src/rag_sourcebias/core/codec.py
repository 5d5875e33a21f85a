"""Dataclasses to plain JSON values and back, arrays included.

One codec for every report type: a dataclass becomes a mapping of its fields, an array a list
(NaN as null), a tuple a list. Reading follows the declared field types.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, Self, TypeVar

import numpy as np

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError

T = TypeVar("T")


class Stored:
    """A dataclass that can be stored as plain JSON values and read again."""

    __slots__ = ()

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
        """
        return from_plain(cls, data)


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any field of any report type
    """Return ``value`` as JSON-ready plain values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            return _floats(value)
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


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
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(typing.cast("Any", cls)):
        path = f"{where}.{field.name}" if where else field.name
        if field.name in data:
            values[field.name] = _read(hints[field.name], data[field.name], path)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
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
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _read(next(a for a in args if a is not type(None)), value, path)
    if origin is np.ndarray:
        dtype = typing.get_args(args[1])[0]
        return np.array(_expect(list, value, path), dtype=dtype)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value, where=path)
    if origin is tuple:
        items = _expect(list, value, path)
        return tuple(_read(args[0], item, f"{path}[{i}]") for i, item in enumerate(items))
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
