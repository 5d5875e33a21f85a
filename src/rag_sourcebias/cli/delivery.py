"""What becomes of a finished report: a table, and a folder if one was asked for."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.cli.console import err, out
from rag_sourcebias.io.reports import Report
from rag_sourcebias.report import write_report
from rag_sourcebias.report.terminal import print_report

__all__ = ["deliver"]


def deliver(report: Report, folder: Path | None) -> None:
    """Print a report and write it, or say how it can be written."""
    print_report(report, out)
    if folder is None:
        err.print("add --report <folder> for the full report (HTML, Markdown, JSON)")
        return
    for kind, path in write_report(report, folder).items():
        err.print(f"{kind}: {path}", highlight=False, soft_wrap=True)
