"""What was found about a paired corpus, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.pairs.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.pairs.headline import headline
from rag_sourcebias.report.pairs.html import to_html
from rag_sourcebias.report.pairs.markdown import to_markdown

__all__ = ["headline", "to_html", "to_markdown"]
