"""What an audit found, for people: terminal, Markdown, HTML.

``print_report`` lives in :mod:`rag_sourcebias.report.terminal`. ``write_report`` takes every kind
of report; the other functions here are of source audits.
"""

from __future__ import annotations

from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.html import to_html
from rag_sourcebias.report.markdown import to_markdown
from rag_sourcebias.report.verdicts import Verdict, verdicts
from rag_sourcebias.report.write import write_report

__all__ = ["Verdict", "headline", "to_html", "to_markdown", "verdicts", "write_report"]
