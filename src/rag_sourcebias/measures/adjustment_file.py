"""A fitted style adjustment as a JSON file."""

from __future__ import annotations

import math

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.fitted import read_fitted, write_fitted
from rag_sourcebias.measures.answer_adjustment import StyleAdjustment

__all__ = ["read_adjustment", "write_adjustment"]

_KIND = "style adjustment"
_SCHEMA_VERSION = 1


def write_adjustment(adjustment: StyleAdjustment, path: PathLike) -> None:
    """Write an adjustment; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    write_fitted(adjustment, path, kind=_KIND, version=_SCHEMA_VERSION)


def read_adjustment(path: PathLike) -> StyleAdjustment:
    """Read what :func:`write_adjustment` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or holds no complete adjustment.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    found = read_fitted(StyleAdjustment, path, kind=_KIND, version=_SCHEMA_VERSION)
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
