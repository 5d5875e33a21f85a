"""Which package renders which kind of report."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types import (
    AnswerBiasReport,
    DebiasReport,
    JudgedReport,
    PairReport,
    SkewReport,
    StyleReport,
)
from rag_sourcebias.types.explain_report import ExplainReport

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
    return import_module(f"{package}.{output}")
