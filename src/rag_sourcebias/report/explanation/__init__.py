"""What distinguishes sources for an encoder, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.explanation.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.explanation.findings import Finding, findings
from rag_sourcebias.report.explanation.headline import headline
from rag_sourcebias.report.explanation.html import to_html
from rag_sourcebias.report.explanation.markdown import to_markdown

__all__ = ["Finding", "findings", "headline", "to_html", "to_markdown"]
