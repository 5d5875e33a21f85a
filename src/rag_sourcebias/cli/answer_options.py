"""Options of ``audit answers``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_DATA, _SCORES, _ADJUSTMENT, _STATISTICS = "Data", "Scores", "Adjustment", "Statistics"

AnswersFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Table (CSV, TSV, JSON lines, Parquet) or JSON array with question, system, answer, "
        "reference and correct, or answer_<system> and judge_<system>. Also .gz; several files "
        "where each holds one system.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What stands between alternative wordings in one cell of references, such as /.",
        rich_help_panel=_DATA,
    ),
]
Encoders = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder",
        help="Score = cosine of reference and answer by this sentence-transformers name or "
        "path[,dtype=…,max_length=…,batch_size=…,device=…]; repeatable, to compare several.",
        rich_help_panel=_SCORES,
    ),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        help="Column of scores that the table holds already (of ragas, for example), instead of "
        "--encoder; repeatable.",
        rich_help_panel=_SCORES,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Correct is a score of at least this. Default: the one that separates correct from "
        "wrong answers best.",
        rich_help_panel=_SCORES,
    ),
]
Adjust = Annotated[
    bool,
    typer.Option(
        help="Also compute the score without the part that style explains.",
        rich_help_panel=_ADJUSTMENT,
    ),
]
FitOn = Annotated[
    Path | None,
    typer.Option(
        help="Learn the adjustment from these answers, not by cross-fitting. Form as FILE.",
        rich_help_panel=_ADJUSTMENT,
    ),
]
Folds = Annotated[
    int,
    typer.Option(help="Groups of questions of the cross-fitting.", rich_help_panel=_ADJUSTMENT),
]
Labels = Annotated[
    int | None,
    typer.Option(
        help="Show what intervals of human correctness so many labels per system give, drawn from "
        "those there are. Default: all there are.",
        rich_help_panel=_STATISTICS,
    ),
]
TextStatistics = Annotated[
    bool,
    typer.Option(
        help="Also describe the answers: words, BLEU, METEOR, ROUGE-L against the reference.",
        rich_help_panel=_STATISTICS,
    ),
]
