"""What a style audit found, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.style.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.style.headline import headline
from rag_sourcebias.report.style.html import to_html
from rag_sourcebias.report.style.markdown import to_markdown

__all__ = ["headline", "to_html", "to_markdown"]
