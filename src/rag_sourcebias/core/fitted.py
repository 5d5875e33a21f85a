"""Something fitted, as a JSON file that says what it is."""

import json
from pathlib import Path
from typing import Any

from rag_sourcebias.core.codec import T, from_plain, to_plain
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.files import PathLike, check_file, sound, write_atomic


def write_fitted(fitted: Any, path: PathLike, *, kind: str, version: int) -> None:  # noqa: ANN401
    """Write a dataclass; numbers are read back exactly.

    Parameters
    ----------
    kind : str
        What it is, such as ``"style adjustment"``.
    version : int
        Of its fields.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    data = {"kind": kind.replace(" ", "_"), "schema_version": version, **to_plain(fitted)}
    write_atomic(path, json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read_fitted(cls: type[T], path: PathLike, *, kind: str, version: int) -> T:
    """Read what :func:`write_fitted` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or holds nothing of that kind or not all of it.
    UnsupportedVersionError
        If it was written by a release with other fields.
    """
    check_file(path)
    with sound(path, f"the JSON of a {kind}"):
        data = json.loads(Path(path).read_text("utf-8"))
    if not isinstance(data, dict) or data.get("kind") != kind.replace(" ", "_"):
        raise DataError(f"{path} is no {kind}; expected a file that this library wrote")
    if data.get("schema_version") != version:
        raise UnsupportedVersionError(
            f"{path}: {kind} of schema version {data.get('schema_version')!r}; this release reads "
            f"version {version}"
        )
    with sound(path, f"a complete {kind}"):
        return from_plain(cls, data)
