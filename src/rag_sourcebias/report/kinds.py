"""Every kind of report as a document, and the document in every output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.version_0_1 import changed_verdicts
from rag_sourcebias.report.format import changed
from rag_sourcebias.report.html import html
from rag_sourcebias.report.text import markdown, terminal
from rag_sourcebias.types import (
    AnswerBiasReport,
    DebiasReport,
    JudgedReport,
    PairReport,
    SkewReport,
    StyleReport,
)
from rag_sourcebias.types.explain_report import ExplainReport
from rag_sourcebias.types.names import visible

if TYPE_CHECKING:
    from rich.console import Console

    from rag_sourcebias.report.blocks import Document

__all__ = ["document_of", "print_report", "to_html", "to_markdown", "visible_report"]

T = TypeVar("T")

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
    shown = visible_report(report, lines=lines)
    # Loaded now: most runs need one kind only.
    found: Document = import_module(f"rag_sourcebias.report.{module}").document(shown)
    older = changed(changed_verdicts(shown))
    return replace(found, warnings=(*older, *found.warnings)) if older else found


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


def visible_report(report: T, *, lines: bool = True) -> T:
    """Return the report with control characters, overrides and surrogates written out everywhere.

    Once for all of it, before anything is drawn: lengths of names, keys and texts then agree in
    every view, and no view has to know where a text came from.

    Parameters
    ----------
    report : a report of any kind
    lines : bool
        Leave line ends and tabs, which excerpts have and which pages show as blanks.

    Returns
    -------
    report
        The same object where there is nothing to write out, as nearly always.
    """
    return cast("T", _visible(report, lines))


def _visible(value: Any, lines: bool) -> Any:  # noqa: ANN401 - any field of any report
    if isinstance(value, str):
        return visible(value, lines=lines)
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new = {name: _visible(item, lines) for name, item in old.items()}
        changed = {name: item for name, item in new.items() if item is not old[name]}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        pairs = {_visible(key, lines): _visible(item, lines) for key, item in value.items()}
        same = all(map(is_, (*value, *value.values()), (*pairs, *pairs.values())))
        return value if same else pairs
    if isinstance(value, tuple | list):
        items = [_visible(item, lines) for item in value]
        return value if all(map(is_, value, items)) else type(value)(items)
    return value
