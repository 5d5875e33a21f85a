"""What an audit found, for people: terminal, Markdown, HTML.

``write_report``, ``print_report``, ``to_html`` and ``to_markdown`` take every kind of report; the
other functions here are of source audits.
"""

from __future__ import annotations

from rag_sourcebias.report.kinds import print_report, to_html, to_markdown
from rag_sourcebias.report.skew_words import Verdict, headline, verdicts
from rag_sourcebias.report.write import write_report

__all__ = [
    "Verdict",
    "headline",
    "print_report",
    "to_html",
    "to_markdown",
    "verdicts",
    "write_report",
]
