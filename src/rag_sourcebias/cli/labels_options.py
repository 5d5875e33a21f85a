"""Options of the labels commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

Run = Annotated[Path | None, typer.Option(help="TREC run.")]
RunNeeded = Annotated[Path, typer.Option(help="TREC run.")]
JudgeLabels = Annotated[
    Path | None, typer.Option(help="The judge's label distributions of its documents.")
]
JudgeLabelsNeeded = Annotated[
    Path, typer.Option(help="The judge's label distributions of its documents.")
]
Measure = Annotated[str, typer.Option(help="DCG@k or P@k.")]
PilotQrels = Annotated[Path | None, typer.Option(help="Human judgments there are already.")]
HalfWidth = Annotated[float | None, typer.Option(help="Wanted: the estimate ± this.")]
Number = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--budget",
        min=1,
        help="Documents to label, those judged already (--qrels) included.",
    ),
]
NumberNeeded = Annotated[
    int,
    typer.Option(
        "-n",
        "--budget",
        min=1,
        help="Documents to label, those judged already (--qrels) included.",
    ),
]
Target = Annotated[str, typer.Option(help="population (queries like these) or pool (these).")]
