"""``debias``: make a model indifferent to who wrote a text, and prove what that changed."""

from __future__ import annotations

import typer

from rag_sourcebias.cli.debias_calibrate import calibrate
from rag_sourcebias.cli.debias_compare import compare
from rag_sourcebias.cli.debias_project import project
from rag_sourcebias.cli.debias_search import search
from rag_sourcebias.cli.debias_train import train

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="""Make a model indifferent to who wrote a text, and prove what that changed.

    Each command ends in a before/after report: skew, quality with paired tests, and on which data.

        rag-sourcebias debias project my-data --encoder all-MiniLM-L6-v2 --output my-model
    """,
)
app.command()(project)
app.command()(calibrate)
app.command()(train)
app.command()(search)
app.command()(compare)
