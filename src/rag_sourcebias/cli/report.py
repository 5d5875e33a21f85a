"""``report``: show or re-render a finished report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.cli.console import out
from rag_sourcebias.cli.delivery import deliver
from rag_sourcebias.io import read_report_json
from rag_sourcebias.report.kinds import print_report

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Show or re-render a finished report.")


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="A report.json.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for a fresh report.html, report.md, report.json.")
    ] = None,
) -> None:
    """Print a report.json as a table; with --to, render its pages again."""
    report = read_report_json(path)
    if to is None:
        print_report(report, out)
    else:
        deliver(report, to)
