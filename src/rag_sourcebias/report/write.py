"""A finished report in a folder, all of it or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.reports import Report, write_report_json
from rag_sourcebias.report.kinds import renderer

__all__ = ["write_report"]

_FORMATS = ("json", "md", "html")


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = _FORMATS,
) -> dict[str, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into a folder.

    Everything is rendered before the first byte is written, and written beside the folder before
    it is moved there: an interrupted call leaves no half-written file. Files of the folder that
    do not belong to a report stay.

    Parameters
    ----------
    report : report
        A SkewReport, StyleReport, AnswerBiasReport, DebiasReport, ExplainReport, JudgedReport or
        PairReport.
    folder : path
        Created, with its parents, if missing.
    formats : sequence of {"json", "md", "html"}
        All three by default.

    Returns
    -------
    dict of str to Path
        The file of each format.

    Raises
    ------
    MissingExtraError
        If HTML is asked for and jinja2 or matplotlib is not installed.
    DataError
        If a format is unknown, or ``folder`` is a file or cannot be written.
    """
    unknown = [f for f in formats if f not in _FORMATS]
    if unknown or not formats:
        raise DataError(f"unknown report formats {unknown}; choose from {list(_FORMATS)}")
    texts = {kind: _render(report, kind) for kind in formats if kind != "json"}
    target = Path(folder)
    names = {kind: f"report.{kind}" for kind in formats}
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; a report needs a folder")
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        # A sibling lies on the same file system, where moving a file is one step.
        work = target.absolute().with_name(f".{target.absolute().name}.{secrets.token_hex(4)}")
        work.mkdir()
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    try:
        if "json" in names:
            write_report_json(report, work / names["json"])
        for kind, text in texts.items():
            (work / names[kind]).write_text(text, encoding="utf-8", newline="\n")
        target.mkdir(exist_ok=True)
        for name in names.values():
            (work / name).replace(target / name)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {kind: target / name for kind, name in names.items()}


def _render(report: Report, kind: str) -> str:
    if kind == "html":
        return str(renderer(report, "html").to_html(report))
    return str(renderer(report, "markdown").to_markdown(report))
