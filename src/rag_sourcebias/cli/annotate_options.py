"""Options of the annotate commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_DATA, _DRAW, _SHEETS = "Pairs", "What is asked of whom", "Sheets"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder with corpus/<source>.jsonl per source (same _id = same document "
        "rewritten) and, where you have them, queries.jsonl and qrels/<split>.tsv.",
        show_default=False,
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
Split = Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)]
OtherSource = Annotated[
    str | None,
    typer.Option(
        help="LLM source, such as llm:gpt-4o; needed where there are several.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
BaselineSource = Annotated[
    str, typer.Option(help="Source that the other is compared with.", rich_help_panel=_DATA)
]
MinGrade = Annotated[
    int, typer.Option(min=1, help="Lowest grade that is relevant.", rich_help_panel=_DATA)
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="Folder of the sheets, to be handed out; the key is written beside it.",
        show_default=False,
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--n",
        min=1,
        help="Pairs with their query, drawn at random.",
        rich_help_panel=_DRAW,
        show_default="50, as Dai et al. 2024",
    ),
]
Annotators = Annotated[
    str,
    typer.Option(
        help="How many, or names separated by commas, which name the files.",
        rich_help_panel=_DRAW,
    ),
]
Overlap = Annotated[
    float,
    typer.Option(
        help="Share of the pairs that every annotator judges; only these tell agreement.",
        rich_help_panel=_DRAW,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="relevance, quality, content, author, separated by commas.",
        rich_help_panel=_DRAW,
        show_default="relevance,quality; without queries quality",
    ),
]
Seed = Annotated[int, typer.Option(help="Of the draw and the orders.", rich_help_panel=_DRAW)]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="csv (spreadsheets), html (one page that works offline) or both.",
        rich_help_panel=_SHEETS,
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        help="File that un-blinds the sheets.",
        rich_help_panel=_SHEETS,
        show_default="<output>.key.json",
    ),
]
Title = Annotated[str, typer.Option(help="On the page.", rich_help_panel=_SHEETS)]
Instructions = Annotated[
    str, typer.Option(help="On the page; do not name the sources.", rich_help_panel=_SHEETS)
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace sheets that are there, and the answers on them.",
        rich_help_panel=_SHEETS,
    ),
]

Sheets = Annotated[
    list[Path],
    typer.Argument(
        help="Filled sheets: CSV, JSON downloaded from pages, or a folder with such.",
        show_default=False,
    ),
]
KeyToRead = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="The key.",
        show_default="<folder>.key.json beside the one folder given",
    ),
]
MinAnswers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Pairs with fewer answers are left out.",
        show_default="3, or all annotators",
    ),
]
ConfidenceLevel = Annotated[float, typer.Option()]
ReadSeed = Annotated[int, typer.Option("--seed", help="Of the bootstrap.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", help="Write the figures as JSON here; - prints them.")
]
