"""Reports as JSON files."""

from __future__ import annotations

import json

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io.files import PathLike, read_lines, write_atomic
from rag_sourcebias.types import SkewReport
from rag_sourcebias.types.judged import JudgedReport

__all__ = ["read_report_json", "write_report_json"]


def write_report_json(report: SkewReport | JudgedReport, path: PathLike) -> None:
    """Write a report as strict JSON (NaN as null), compressed if the name ends in ``.gz``.

    Raises
    ------
    DataError
        If the report holds an infinite number, which JSON cannot carry, or the folder is missing.
    """
    try:
        text = json.dumps(
            report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except ValueError as error:
        raise DataError(f"the report cannot be written as JSON to {path}: {error}") from error
    write_atomic(path, text + "\n")


def read_report_json(path: PathLike) -> SkewReport | JudgedReport:
    """Read a report of either kind that :func:`write_report_json` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not a report.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    text = "\n".join(line for _, line in read_lines(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}); expected a report") from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise DataError(
            f"{path} is not a report: it is JSON without a schema_version; "
            "expected a file written by write_report_json"
        )
    # Only the report of a judged evaluation says of which kind it is.
    kind: type[SkewReport | JudgedReport] = JudgedReport if "kind" in data else SkewReport
    name = "judged" if "kind" in data else "skew"
    try:
        return kind.from_dict(data)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{path}: {error}") from error
    except (ValueError, TypeError) as error:  # DataError is a ValueError
        raise DataError(f"{path} is not a complete {name} report: {error}") from error
