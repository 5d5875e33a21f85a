"""What a mitigation changed in skew and quality, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.debias.terminal`.
"""

from __future__ import annotations

from rag_sourcebias.report.debias.headline import headline
from rag_sourcebias.report.debias.html import to_html
from rag_sourcebias.report.debias.markdown import to_markdown
from rag_sourcebias.report.debias.verdicts import DebiasVerdict, verdicts

__all__ = ["DebiasVerdict", "headline", "to_html", "to_markdown", "verdicts"]
