"""A finished report in a folder: its figures first, then the pages that show them."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, SourceBiasError
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.io.reports import Report, write_report_json
from rag_sourcebias.report.blocks import plain
from rag_sourcebias.report.html import failure_text
from rag_sourcebias.report.kinds import document_of, to_html, to_markdown

__all__ = ["write_figures", "write_pages", "write_report"]

_logger = logging.getLogger("rag_sourcebias.report")
_DRAW = {"md": to_markdown, "html": to_html}
_PAGES = tuple(_DRAW)
_FORMATS = ("json", *_PAGES)


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = _FORMATS,
) -> dict[str, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into a folder.

    ``report.json``, which holds every figure and what is said of them, is written before anything
    is drawn; each file is there complete or not at all. A page that cannot be written costs that
    page: a warning is logged, and the page is not among the files returned. Files of the folder
    that do not belong to a report stay.

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
        The file of each format that was written.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed and HTML is all that was asked for.
    DataError
        If a format is unknown, ``folder`` is a file or cannot be written, or none of the pages
        asked for could be and ``report.json`` was not.
    """
    unknown = [f for f in formats if f not in _FORMATS]
    if unknown or not formats:
        raise DataError(f"unknown report formats {unknown}; choose from {list(_FORMATS)}")
    pages = [kind for kind in formats if kind != "json"]
    written = {"json": write_figures(report, folder, pages)} if "json" in formats else {}
    written |= write_pages(report, folder, pages, required=not written)
    return {kind: written[kind] for kind in formats if kind in written}


def write_figures(
    report: Report, folder: str | os.PathLike[str], pages: Sequence[str] = _PAGES
) -> Path:
    """Write ``report.json``, and take away the pages that are about to be drawn anew.

    So no page of an earlier report ever lies beside the figures of a later one.

    Raises
    ------
    DataError
        If the folder is a file or cannot be written.
    """
    target = _made(folder)
    file, staged = target / "report.json", target / f".report.{secrets.token_hex(4)}.json"
    try:
        write_report_json(report, staged, document=_said(report))
        for kind in pages:
            with contextlib.suppress(OSError):  # a folder of that name is no page of ours
                (target / f"report.{kind}").unlink()
        staged.replace(file)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        staged.unlink(missing_ok=True)
    return file


def write_pages(
    report: Report,
    folder: str | os.PathLike[str],
    pages: Sequence[str] = _PAGES,
    *,
    required: bool = False,
) -> dict[str, Path]:
    """Write the pages that can be drawn; log each that cannot.

    Parameters
    ----------
    required : bool
        Raise the first error where no page could be written.
    """
    target = _made(folder)
    written: dict[str, Path] = {}
    failures: list[Exception] = []
    for kind in pages:
        file = target / f"report.{kind}"
        try:
            write_atomic(file, _DRAW[kind](report))
            written[kind] = file
        except Exception as error:  # noqa: BLE001 - drawing costs no result, whatever happens
            failures.append(error)
            _logger.warning("%s was not written (%s)%s", file, failure_text(error), _remedy(target))
    if failures and required and not written:
        first = failures[0]
        if isinstance(first, SourceBiasError):
            raise first
        raise DataError(f"no page was written: {failure_text(first)}") from first
    return written


def _said(report: Report) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = plain(document_of(report))
    except Exception as error:  # noqa: BLE001 - what is said of figures costs no figure
        _logger.warning("report.json holds no document (%s)", failure_text(error))
        return None
    return found


def _remedy(target: Path) -> str:
    figures = target / "report.json"
    if not figures.is_file():
        return ""
    command = f"rag-sourcebias report show {figures} --to {target}"
    return f"; {figures} is complete, and '{command}' draws it"


def _made(folder: str | os.PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; a report needs a folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    return target
