"""Reports in every output, as a reader meets them."""

from __future__ import annotations

from rag_sourcebias.report.document import Document
from rag_sourcebias.report.render import Report, markdown, page, visible_report


def document_of(report: Report, *, lines: bool = True) -> Document:
    return visible_report(report, lines=lines).page()


def to_html(report: Report) -> str:
    return page(document_of(report))


def to_markdown(report: Report) -> str:
    return markdown(document_of(report))
