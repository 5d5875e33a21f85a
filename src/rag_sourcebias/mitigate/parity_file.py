"""A fitted parity calibration as a JSON file."""

from __future__ import annotations

from typing import get_args

from rag_sourcebias.errors import CalibrationError, DataError
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.fitted import read_fitted, write_fitted
from rag_sourcebias.mitigate.parity import ParityCalibration, ParityForm

__all__ = ["read_parity", "write_parity"]

_KIND = "parity calibration"
_SCHEMA_VERSION = 1


def write_parity(calibration: ParityCalibration, path: PathLike) -> None:
    """Write a calibration as JSON; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    write_fitted(calibration, path, kind=_KIND, version=_SCHEMA_VERSION)


def read_parity(path: PathLike, *, encoder: str | None = None) -> ParityCalibration:
    """Read what :func:`write_parity` wrote.

    Parameters
    ----------
    encoder : str, optional
        Fingerprint of the encoder in use.

    Raises
    ------
    CalibrationError
        If it was fitted on scores of another encoder.
    DataError
        If the file is missing, is not JSON, or holds no complete calibration.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    found = read_fitted(ParityCalibration, path, kind=_KIND, version=_SCHEMA_VERSION)
    if found.form not in get_args(ParityForm):
        raise DataError(f"{path}: unknown form {found.form!r}; expected {get_args(ParityForm)}")
    if {len(found.maps), len(found.gaps), len(found.n_pairs)} != {len(found.sources)}:
        raise DataError(f"{path}: expected one map, gap and number of pairs for each source")
    if encoder is not None and encoder != found.encoder:
        raise CalibrationError(
            f"{path} was fitted on scores of the encoder {found.encoder!r}; the one in use is "
            f"{encoder!r}. Fit it again on scores of that one"
        )
    return found
