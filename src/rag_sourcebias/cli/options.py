"""Options of the audit commands, named once."""

from pathlib import Path
from typing import Annotated

import typer

_DATA, _RETRIEVAL, _STATISTICS = "Data", "Retrieval", "Statistics"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per source "
        "(same _id = same document rewritten).",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: 160 human passages and their LLM rewrites.",
        rich_help_panel=_DATA,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        help="A bundled data set by name; rag-sourcebias start lists them.", rich_help_panel=_DATA
    ),
]
Split = Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)]
Depth = Annotated[int, typer.Option(min=1, help="Documents per query.", rich_help_panel=_RETRIEVAL)]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of cached embeddings and scores; an interrupted audit goes on from it.",
        rich_help_panel=_RETRIEVAL,
    ),
]
BaselineSource = Annotated[
    str,
    typer.Option(help="Source that the others are compared with.", rich_help_panel=_STATISTICS),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_STATISTICS)]
Seed = Annotated[int, typer.Option(rich_help_panel=_STATISTICS)]
JsonFile = Annotated[
    str | None, typer.Option("--json", help="Write the figures as JSON here; - prints them.")
]
ReportFolder = Annotated[
    Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
]
