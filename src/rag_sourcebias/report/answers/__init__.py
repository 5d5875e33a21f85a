"""What an audit of correctness scores found, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.answers.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.answers.headline import headline
from rag_sourcebias.report.answers.html import to_html
from rag_sourcebias.report.answers.markdown import to_markdown
from rag_sourcebias.report.answers.verdicts import AnswerVerdict, verdicts

__all__ = ["AnswerVerdict", "headline", "to_html", "to_markdown", "verdicts"]
