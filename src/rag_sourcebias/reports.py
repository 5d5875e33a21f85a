"""A finished report in a folder: its figures first, then the pages that show them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rag_sourcebias.answers.legacy_report import AnswerBiasReport
from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.core.names import visible
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.explain.legacy_report import ExplainReport
from rag_sourcebias.io.files import PathLike, read_json, sound, write_atomic
from rag_sourcebias.judged.legacy_report import JudgedReport
from rag_sourcebias.pairs.report import PairReport
from rag_sourcebias.report import render
from rag_sourcebias.report.files import visible_report, without_texts
from rag_sourcebias.report.render import failure_text
from rag_sourcebias.report.report import Report as Rebuilt
from rag_sourcebias.source.report import SkewReport
from rag_sourcebias.style.legacy_report import StyleReport

if TYPE_CHECKING:
    from rich.console import Console

    from rag_sourcebias.report.document import Document


# Reports as JSON files.


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


def write_report_json(report: Report, path: PathLike) -> None:
    r"""Write a report as strict JSON (NaN as null), compressed if the name ends in ``.gz``.

    Control characters, lone surrogates and direction overrides are written as ``\uXXXX``: any
    report can be encoded, and the file can be looked at in a terminal.

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
    write_atomic(path, visible(text) + "\n")


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


# Every kind of report in every output.


def document_of(report: object, *, lines: bool = True) -> Document:
    """Return everything there is to say about a report of any kind.

    Parameters
    ----------
    lines : bool
        Keep line ends and tabs in texts; where not, they are written out, as for a terminal.

    Raises
    ------
    DataError
        If the object is no report.
    """
    if not isinstance(report, Rebuilt):
        raise DataError(
            f"a {type(report).__name__} is not a report; expected one of "
            f"{', '.join(kind.__name__ for _, kind in _KINDS.values())}"
        )
    return visible_report(report, lines=lines).page()


def to_html(report: object) -> str:
    """Return a report of any kind as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    DataError
        If the object is no report.
    """
    return render.page(document_of(report))


def to_markdown(report: object) -> str:
    """Return a report of any kind as GitHub-flavoured Markdown, ending in a newline.

    Raises
    ------
    DataError
        If the object is no report.
    """
    return render.markdown(document_of(report))


def print_report(report: object, console: Console) -> None:
    """Print a report of any kind: headline, findings and warnings.

    Parameters
    ----------
    report : report
    console : rich.console.Console
        Its width decides how many columns stand side by side.

    Raises
    ------
    DataError
        If the object is no report.
    """
    render.terminal(document_of(report, lines=False), console)


# A finished report in a folder: its figures first, then the pages that show them.


_logger = logging.getLogger("rag_sourcebias.report")
_DRAW = {"md": to_markdown, "html": to_html}
_PAGES = tuple(_DRAW)
_FORMATS = ("json", *_PAGES)


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = _FORMATS,
    texts: bool = True,
) -> dict[str, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into a folder.

    ``report.json``, which holds every figure, is written before anything is drawn; each file is
    there complete or not at all. A page that cannot be written costs that page: a warning is
    logged, and the page is not among the files returned. Files of the folder that do not belong
    to a report stay.

    Parameters
    ----------
    report : report
        A SkewReport, StyleReport, AnswerBiasReport, DebiasReport, ExplainReport, JudgedReport or
        PairReport.
    folder : path
        Created, with its parents, if missing.
    formats : sequence of {"json", "md", "html"}
        All three by default.
    texts : bool
        Keep the texts of the few cases that matter most; without them, ids and numbers stay.

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
    if (unknown := [f for f in formats if f not in _FORMATS]) or not formats:
        raise DataError(f"unknown report formats {unknown}; choose from {list(_FORMATS)}")
    report = report if texts else without_texts(report)
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
        write_report_json(report, staged)
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
            figures, remedy = target / "report.json", ""
            if figures.is_file():
                command = f"rag-sourcebias start {figures} --report {target}"
                remedy = f"; {figures} is complete, and '{command}' draws it"
            _logger.warning("%s was not written (%s)%s", file, failure_text(error), remedy)
    if failures and required and not written:
        first = failures[0]
        if isinstance(first, SourceBiasError):
            raise first
        raise DataError(f"no page was written: {failure_text(first)}") from first
    return written


def _made(folder: str | os.PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; a report needs a folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    return target
