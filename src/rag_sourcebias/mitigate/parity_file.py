"""A fitted parity calibration as a JSON file."""

from __future__ import annotations

import json
from typing import get_args

from rag_sourcebias.errors import CalibrationError, DataError, UnsupportedVersionError
from rag_sourcebias.io.files import PathLike, read_lines, write_atomic
from rag_sourcebias.mitigate.parity import ParityCalibration, ParityForm
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["read_parity", "write_parity"]

_KIND = "parity_calibration"
_SCHEMA_VERSION = 1


def write_parity(calibration: ParityCalibration, path: PathLike) -> None:
    """Write a calibration as JSON; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    data = {"kind": _KIND, "schema_version": _SCHEMA_VERSION, **to_plain(calibration)}
    write_atomic(path, json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


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
    try:
        data = json.loads("\n".join(line for _, line in read_lines(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not JSON ({error}); expected a parity calibration") from error
    if not isinstance(data, dict) or data.get("kind") != _KIND:
        raise DataError(f"{path} is no parity calibration; expected a file of write_parity")
    if data.get("schema_version") != _SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"{path}: parity calibration of schema version {data.get('schema_version')!r}; this "
            f"release reads version {_SCHEMA_VERSION}"
        )
    try:
        found = from_plain(ParityCalibration, data)
    except (ValueError, TypeError) as error:  # DataError is a ValueError
        raise DataError(f"{path} is not a complete parity calibration: {error}") from error
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
