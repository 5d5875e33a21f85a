"""Import a framework, or say how to install it."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rag_sourcebias.core.errors import DataError, MissingExtraError, import_extra
from rag_sourcebias.core.protocols import Encoder

require = import_extra


def require_kind(obj: object, kind: Any, expected: str) -> None:  # noqa: ANN401 - a class or several
    """Refuse an object of another kind.

    Raises
    ------
    DataError
    """
    if not isinstance(obj, kind):
        raise DataError(f"an object of type {type(obj).__qualname__} is no {expected}")


def require_encoder(encoder: object) -> None:
    """Refuse what is no encoder.

    Raises
    ------
    DataError
    """
    require_kind(
        encoder,
        Encoder,
        "encoder; expected one with name, fingerprint, settings, encode_queries and "
        "encode_documents, such as rag_sourcebias.neural.SentenceEncoder",
    )


def taggers_of(given: Any) -> tuple[Any, ...]:  # noqa: ANN401 - one tagger or several
    """Return one tagger, or several, as several.

    Raises
    ------
    DataError
        If there is none, or one cannot be called.
    """
    found = (given,) if callable(given) else tuple(given)
    if not found or not all(map(callable, found)):
        raise DataError(f"{given!r:.80}: no taggers; expected one function or several")
    return found


@cache  # reads a file; what raises is tried again
def outside(package: str, *, extra: str, at_least: str, below: str) -> str:
    """Return what is to be said of a distribution that is too old or too new; "" for others.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        found = version(package)
    except PackageNotFoundError as error:
        raise MissingExtraError(
            package=package, extra=extra, feature=f"instrumenting {package}"
        ) from error
    if _numbers(found) < _numbers(at_least):
        return (
            f"{package} {found} is too old; rag-sourcebias works with {at_least} or newer: "
            f"pip install -U '{package}>={at_least}'"
        )
    if below and _numbers(found) >= _numbers(below):
        return f"{package} {found} is newer than what rag-sourcebias was tested with (<{below})"
    return ""


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; pre-release marks are ignored."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+", maxsplit=1)[0])[:3])
