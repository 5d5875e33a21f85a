"""Options of ``tag fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_COLUMNS = "Columns"

LabelledPath = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, JSON lines or Parquet with text and label, or a folder with "
        "corpus/<source>.jsonl per source (same _id = same document rewritten)."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write the detector to.")]
Target = Annotated[str, typer.Option(help="source or style.")]
TextColumn = Annotated[
    str | None, typer.Option(rich_help_panel=_COLUMNS, help="Default: text, contents, …")
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_COLUMNS,
        help="Default: source (human or llm:<model>), style, or label. Rows without a label are "
        "left out.",
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_COLUMNS,
        help="What documents are about: pair, topic, prompt. Those of one group are never split "
        "between learning and testing. Default: pair_id, group, topic, …, if there.",
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(rich_help_panel=_COLUMNS, help="Default: doc_id, id, … or rows.")
]
OneLlm = Annotated[
    bool,
    typer.Option("--one-llm", help="Only tell human from LLM: every llm:<model> becomes llm:any."),
]
MaxError = Annotated[
    float,
    typer.Option(help="Wrong tags wanted at most, as a share; what is less sure is left unknown."),
]
Seed = Annotated[int, typer.Option(help="Of the folds.")]
