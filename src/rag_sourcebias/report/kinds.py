"""Every kind of report as a document, and the document in every output."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.rendering import html, markdown, terminal
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types import (
    AnswerBiasReport,
    DebiasReport,
    JudgedReport,
    PairReport,
    SkewReport,
    StyleReport,
)
from rag_sourcebias.types.explain_report import ExplainReport

if TYPE_CHECKING:
    from rich.console import Console

    from rag_sourcebias.report.blocks import Document

__all__ = ["document_of", "print_report", "to_html", "to_markdown"]

_MODULES = {
    SkewReport: "skew",
    StyleReport: "style",
    AnswerBiasReport: "answers",
    DebiasReport: "debias",
    ExplainReport: "explanation",
    JudgedReport: "judged",
    PairReport: "pairs",
}


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
    module = _MODULES.get(type(report))
    if module is None:
        raise DataError(
            f"a {type(report).__name__} is not a report; expected one of "
            f"{', '.join(kind.__name__ for kind in _MODULES)}"
        )
    # Loaded now: most runs need one kind only.
    found: Document = import_module(f"rag_sourcebias.report.{module}").document(
        visible_report(report, lines=lines)
    )
    return found


def to_html(report: object) -> str:
    """Return a report of any kind as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    DataError
        If the object is no report.
    """
    return html(document_of(report))


def to_markdown(report: object) -> str:
    """Return a report of any kind as GitHub-flavoured Markdown, ending in a newline.

    Raises
    ------
    DataError
        If the object is no report.
    """
    return markdown(document_of(report))


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
    terminal(document_of(report, lines=False), console)
