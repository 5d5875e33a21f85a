"""``report``: show or re-render a finished report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rag_sourcebias.cli.console import deliver, out, writes_report
from rag_sourcebias.io.samples import list_datasets
from rag_sourcebias.reports import print_report, read_report_json

# ``datasets``: what can be audited without preparing data.


def datasets() -> None:
    """List the bundled samples and the named public sets, and how to get each."""
    table = Table(title="Data sets for --dataset", title_justify="left")
    for column in ("name", "documents", "queries", "licence", "what it is", "how to get it"):
        table.add_column(
            column,
            justify="right" if column in ("documents", "queries") else "left",
            overflow="fold",
        )
    for info in list_datasets():
        table.add_row(
            info.name,
            "" if info.n_documents is None else f"{info.n_documents:,}",
            "" if info.n_queries is None else f"{info.n_queries:,}",
            info.license,
            info.description,
            info.how,
        )
    out.print(table)


# ``report``: show or re-render a finished report.


app = typer.Typer(no_args_is_help=True, help="Show or re-render a finished report.")


@app.command()
@writes_report
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
