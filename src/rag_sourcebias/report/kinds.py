"""Which package renders which kind of report."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

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

__all__ = ["renderer"]

_PACKAGES = {
    SkewReport: "rag_sourcebias.report",
    StyleReport: "rag_sourcebias.report.style",
    AnswerBiasReport: "rag_sourcebias.report.answers",
    DebiasReport: "rag_sourcebias.report.debias",
    ExplainReport: "rag_sourcebias.report.explanation",
    JudgedReport: "rag_sourcebias.report.judged",
    PairReport: "rag_sourcebias.report.pairs",
}
#: Reports that are data; the others render themselves.
_DOCUMENTS = (PairReport, ExplainReport, JudgedReport, AnswerBiasReport, DebiasReport, StyleReport)


def renderer(report: object, output: Literal["html", "markdown", "terminal"]) -> Any:  # noqa: ANN401
    """Return the module that renders a report; loaded now, as most runs need one kind only.

    Raises
    ------
    DataError
        If the object is no report.
    """
    package = _PACKAGES.get(type(report))
    if package is None:
        raise DataError(
            f"a {type(report).__name__} is not a report; expected one of "
            f"{', '.join(kind.__name__ for kind in _PACKAGES)}"
        )
    if type(report) in _DOCUMENTS:
        return SimpleNamespace(to_html=_html, to_markdown=_markdown, print_report=_print)
    return import_module(f"{package}.{output}")


def _document(report: object, *, lines: bool = True) -> Any:  # noqa: ANN401 - loaded when needed
    return import_module(_PACKAGES[type(report)]).document(visible_report(report, lines=lines))


def _html(report: object) -> str:
    return html(_document(report))


def _markdown(report: object) -> str:
    return markdown(_document(report))


def _print(report: object, console: Console) -> None:
    terminal(_document(report, lines=False), console)
