"""``datasets``: what can be audited without preparing data."""

from __future__ import annotations

from rich.table import Table

from rag_sourcebias.cli.console import out
from rag_sourcebias.io import list_datasets

__all__ = ["datasets"]


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
