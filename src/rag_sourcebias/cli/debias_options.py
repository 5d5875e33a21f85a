"""Options that the commands of ``debias`` share, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

FIT, JUDGE = "What it is fitted on", "What it is judged on"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder with corpus/<source>.jsonl per source (same _id = same document "
        "rewritten), queries.jsonl and qrels/<split>.tsv.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: 160 human passages and their LLM rewrites.",
        rich_help_panel=FIT,
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="The model: a sentence-transformers name or path[,batch_size=…,device=…].",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Model folder to write; must not exist.", show_default=False
    ),
]
Split = Annotated[
    str,
    typer.Option(
        help="Split whose judged pairs are used (both versions of a relevant document).",
        rich_help_panel=FIT,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(
        help="LLM source to fit on, such as llm:gpt-4o; needed where the corpus has several.",
        rich_help_panel=FIT,
    ),
]
BaselineSource = Annotated[
    str, typer.Option(help="Source that the other is compared with.", rich_help_panel=FIT)
]
Unseen = Annotated[
    bool,
    typer.Option(
        "--unseen",
        help="Leave the pairs out that the judged data judge: the report is then on documents "
        "that nothing was fitted on.",
        rich_help_panel=FIT,
    ),
]
Judge = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="FOLDER[:SPLIT]",
        help="Data for the before/after report; repeatable. Without a split: test, else dev. "
        "Default: the same folder's dev split, else test.",
        rich_help_panel=JUDGE,
    ),
]
Cutoffs = Annotated[
    str,
    typer.Option(
        help="Cutoffs k of NDCG; 5 (skew) and 10 (quality) are added.", rich_help_panel=JUDGE
    ),
]
Target = Annotated[
    float, typer.Option(help="Relative Δ@5 aimed at, in percent.", rich_help_panel=JUDGE)
]
Tolerance = Annotated[
    float,
    typer.Option(help="Points around the target that count as reached.", rich_help_panel=JUDGE),
]
Margin = Annotated[
    float,
    typer.Option(
        help="Largest loss of NDCG@10 accepted, as a share; tested, on the human documents alone, "
        "on the LLM's alone and on both.",
        rich_help_panel=JUDGE,
    ),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=JUDGE)]
Seed = Annotated[int, typer.Option(help="Of resampling.", rich_help_panel=JUDGE)]
ReportFolder = Annotated[
    Path | None,
    typer.Option(help="Folder for report.html, report.md and report.json.", rich_help_panel=JUDGE),
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Folder of cached embeddings; an interrupted command goes on from it."),
]
Method = Annotated[
    str,
    typer.Option(
        help="pca (leading directions of the differences), mean (one direction) or leace (mean "
        "difference taken out with the least change).",
        rich_help_panel=FIT,
    ),
]
Directions = Annotated[
    int | None,
    typer.Option(
        min=1, help="Directions taken out; 4 for pca, always 1 otherwise.", rich_help_panel=FIT
    ),
]
Sides = Annotated[
    str,
    typer.Option(
        help="both (queries too: works with every caller of encode) or documents.",
        rich_help_panel=FIT,
    ),
]
Form = Annotated[
    str,
    typer.Option(
        help="offset (one number per source) or quantiles (a rising curve, for a gap that changes "
        "with the score).",
        rich_help_panel=FIT,
    ),
]
AllPairs = Annotated[
    bool,
    typer.Option(
        "--all-pairs",
        help="Use every pair of the corpus, whatever the judgments; needs neither queries nor "
        "qrels.",
        rich_help_panel=FIT,
    ),
]
Strength = Annotated[
    float,
    typer.Option(help="0 leaves vectors as they are, 1 removes all.", rich_help_panel=FIT),
]
CalibrationFile = Annotated[
    Path,
    typer.Option("--output", "-o", help="JSON file to write; must not exist.", show_default=False),
]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="BEFORE AFTER…",
        help="Models by name or path[,dtype=…,max_length=…,batch_size=…,device=…]; the first one "
        "is what the others are compared with.",
        show_default=False,
    ),
]
CompareJudge = Annotated[
    list[str],
    typer.Option(
        "--judge",
        metavar="FOLDER[:SPLIT]",
        help="Data to compare on; repeatable. Without a split: test, else dev.",
        rich_help_panel=JUDGE,
        show_default=False,
    ),
]
Calibrations = Annotated[
    list[Path] | None,
    typer.Option(
        help="File of debias calibrate, put on the first model as one more system; repeatable."
    ),
]
FittedOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FOLDER[:SPLIT]",
        help="What the models were fitted on, so that pairs they have seen are counted; a folder "
        "alone means all its pairs. Repeatable.",
    ),
]
