"""Dataclasses to plain JSON values and back, and the software that a stored report names."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin

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
        if cls._versioned is not None:
            what, version = cls._versioned
            found = data.get("schema_version")
            if found != version:
                raise UnsupportedVersionError(
                    f"{what} schema version {found!r} cannot be read; this release reads version "
                    f"{version}"
                )
        return from_plain(cls, data)


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any field of any report type
    """Return ``value`` as plain values for JSON, NaN as None."""
    from msgspec import to_builtins

    return _without_nan(to_builtins(value, enc_hook=_plain, str_keys=True))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return what msgspec does not know as something that it knows."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return value.stored()


def _without_nan(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def from_plain(cls: type[T], data: Any, *, where: str = "") -> T:  # noqa: ANN401
    """Read a dataclass that :func:`to_plain` wrote.

    Parameters
    ----------
    where : str
        What holds it, for the message.

    Raises
    ------
    DataError
        If a field is missing or has the wrong shape; the message names its path.
    """
    from msgspec import ValidationError, convert

    try:
        return convert(data, cls, dec_hook=_typed)
    except ValidationError as error:
        text = str(error).replace("`", "'").replace("$.", "")
        raise DataError(f"{where}: {text}" if where else text) from error


def _typed(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Return plain values as a type that msgspec does not know."""
    if get_origin(kind) is not np.ndarray:
        return kind.from_stored(value)
    if not isinstance(value, list):
        raise TypeError(f"Expected `array`, got `{type(value).__name__}`")
    return np.array(value, dtype=get_args(get_args(kind)[1])[0])


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


def timestamp() -> str:
    """Return the time now, as reports state it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment() -> dict[str, str]:
    """Versions of the packages in use, and the machine."""
    found = {"rag-sourcebias": __version__, "python": platform.python_version()}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            found[package] = _version(package)
    found["machine"] = f"{platform.system()} {platform.machine()}"
    found["cores"] = str(os.cpu_count())
    return found
