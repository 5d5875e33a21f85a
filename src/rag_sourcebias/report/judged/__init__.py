"""What a judged evaluation found, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.judged.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.judged.headline import headline
from rag_sourcebias.report.judged.html import to_html
from rag_sourcebias.report.judged.markdown import to_markdown
from rag_sourcebias.report.judged.wording import sentence

__all__ = ["headline", "sentence", "to_html", "to_markdown"]
