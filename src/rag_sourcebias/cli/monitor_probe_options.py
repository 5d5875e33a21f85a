"""Options of ``monitor probe``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_ASKED, _ROUNDS = "What is asked", "Rounds"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder of a paired corpus: queries whose relevant documents exist twice.",
        show_default=False,
    ),
]
Sample = Annotated[
    bool, typer.Option("--sample", help="The bundled sample.", rich_help_panel=_ASKED)
]
Split = Annotated[str, typer.Option(help="Of the folder.", rich_help_panel=_ASKED)]
OtherSource = Annotated[
    str | None,
    typer.Option(help="Source held against human, where there are several."),
]
Ask = Annotated[
    str | None,
    typer.Option(
        help="module:name of your application: a LangChain or LlamaIndex retriever, or a "
        "function from a query to document ids, best first.",
        rich_help_panel=_ASKED,
    ),
]
Retriever = Annotated[
    str | None,
    typer.Option(
        help="bm25, dense:<model> or chroma:<model> instead: indexes the folder's documents.",
        rich_help_panel=_ASKED,
    ),
]
IdKey = Annotated[
    str | None,
    typer.Option(
        help="Where the id stands in the metadata of what is returned.", rich_help_panel=_ASKED
    ),
]
Measure = Annotated[str, typer.Option(help="Such as NDCG@5.")]
Points = Annotated[
    Path | None,
    typer.Option(
        help="Append to this file, and go on from it; monitor serve --canary shows it.",
        rich_help_panel=_ROUNDS,
    ),
]
PerRound = Annotated[int, typer.Option(help="Queries in a round.", rich_help_panel=_ROUNDS)]
Every = Annotated[
    str | None,
    typer.Option(
        help="Time between rounds: 30s, 5m, 1h. Without it one round is run.",
        rich_help_panel=_ROUNDS,
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(help="Stop after so many rounds; or run until Ctrl-C.", rich_help_panel=_ROUNDS),
]
Reference = Annotated[
    float, typer.Option(help="Relative Δ, in percent, that no alarm is raised for.")
]
Collection = Annotated[str, typer.Option(help="Value of the label collection.")]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON a round.")]
