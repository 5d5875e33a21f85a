"""Reports as JSON files."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, read_json, write_atomic
from rag_sourcebias.types import (
    AnswerBiasReport,
    DebiasReport,
    ExplainReport,
    JudgedReport,
    PairReport,
    SkewReport,
    StyleReport,
)
from rag_sourcebias.types.names import visible

__all__ = ["Report", "read_document_json", "read_report_json", "write_report_json"]

Report: TypeAlias = (
    SkewReport | StyleReport | AnswerBiasReport | DebiasReport | ExplainReport | JudgedReport
    | PairReport
)  # fmt: skip

_KINDS: dict[str | None, tuple[str, type[Report]]] = {
    None: ("skew", SkewReport),  # the first kind there was: it does not say so
    "style": ("style", StyleReport),
    "answers": ("answer", AnswerBiasReport),
    "debias": ("debias", DebiasReport),
    "explain": ("explain", ExplainReport),
    "items": ("judged", JudgedReport),
    "pairs": ("pair", PairReport),
    "ranking": ("judged", JudgedReport),
}


def write_report_json(
    report: Report, path: PathLike, *, document: Mapping[str, Any] | None = None
) -> None:
    r"""Write a report as strict JSON (NaN as null), compressed if the name ends in ``.gz``.

    Control characters, lone surrogates and direction overrides are written as ``\uXXXX``: any
    report can be encoded, and the file can be looked at in a terminal.

    Parameters
    ----------
    report : report
    path : path
    document : mapping, optional
        What is said of it, as plain values. It is added under ``document``, as JSON that is
        deflated (zlib) and written in base64: what is said of a small report is longer than it.

    Raises
    ------
    DataError
        If the report holds an infinite number, which JSON cannot carry, or the folder is missing.
    """
    plain = report.to_dict()
    if document is not None:
        said = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        plain = {**plain, "document": base64.b64encode(zlib.compress(said, 9)).decode()}
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise DataError(f"the report cannot be written as JSON to {path}: {error}") from error
    write_atomic(path, visible(text) + "\n")


def read_document_json(path: PathLike) -> dict[str, Any] | None:
    """Read what is said of a report: sections of blocks as plain values.

    None where the file has no document, as those of version 0.1.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or its document is damaged.
    """
    data = read_json(path, "the JSON of a report")
    if not isinstance(data, dict) or "document" not in data:
        return None
    try:
        found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(data["document"])))
    except (TypeError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: the document is damaged ({error}); write it again") from error
    return found


def read_report_json(path: PathLike) -> Report:
    """Read a report of any kind that :func:`write_report_json` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not a report.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    data = read_json(path, "the JSON of a report")
    if not isinstance(data, dict) or "schema_version" not in data:
        raise DataError(
            f"{path} is not a report: it is JSON without a schema_version; "
            "expected a file written by write_report_json"
        )
    given = data.get("kind")
    if not isinstance(given, str | None) or given not in _KINDS:
        known = ", ".join(repr(kind) for kind in _KINDS if kind)
        raise DataError(f"{path}: report of kind {given!r} is unknown; there are {known}")
    name, kind = _KINDS[given]
    with sound(path, f"a complete {name} report", names_file=False):
        return kind.from_dict(data)
