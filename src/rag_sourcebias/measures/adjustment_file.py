"""A fitted style adjustment as a JSON file."""

from __future__ import annotations

import json
import math

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io.files import PathLike, read_lines, write_atomic
from rag_sourcebias.measures.answer_adjustment import StyleAdjustment
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["read_adjustment", "write_adjustment"]

_KIND = "style_adjustment"
_SCHEMA_VERSION = 1


def write_adjustment(adjustment: StyleAdjustment, path: PathLike) -> None:
    """Write an adjustment; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    data = {"kind": _KIND, "schema_version": _SCHEMA_VERSION, **to_plain(adjustment)}
    write_atomic(path, json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read_adjustment(path: PathLike) -> StyleAdjustment:
    """Read what :func:`write_adjustment` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or holds no complete adjustment.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    try:
        data = json.loads("\n".join(line for _, line in read_lines(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not JSON ({error}); expected a style adjustment") from error
    if not isinstance(data, dict) or data.get("kind") != _KIND:
        raise DataError(f"{path} is no style adjustment; expected a file of write_adjustment")
    if data.get("schema_version") != _SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"{path}: style adjustment of schema version {data.get('schema_version')!r}; this "
            f"release reads version {_SCHEMA_VERSION}"
        )
    try:
        found = from_plain(StyleAdjustment, data)
    except (ValueError, TypeError) as error:  # DataError is a ValueError
        raise DataError(f"{path} is not a complete style adjustment: {error}") from error
    wanted = 1 + len(found.knots) + len(found.covariates)
    if found.coefficients.shape != (wanted,):
        raise DataError(
            f"{path}: {found.coefficients.size} coefficients; expected {wanted}, one for the "
            "length, each knot and each covariate"
        )
    numbers = (found.shortest, found.longest, found.center, *found.knots, *found.coefficients)
    if not all(math.isfinite(number) for number in numbers):
        raise DataError(f"{path} holds a number that is missing or not finite")
    return found
