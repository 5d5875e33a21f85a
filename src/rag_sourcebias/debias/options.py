"""Options of the commands of ``debias``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Options that the commands of ``debias`` share, named once.


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
EncoderOption = Annotated[
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


# Options of ``debias train`` and ``debias search``.


LOSS, RUN, SEARCH = "The loss", "The training run", "The search"

Weight = Annotated[
    float,
    typer.Option(
        min=0,
        help="Of the debias term. Over-correction comes early: at 1 human texts may be favoured as "
        "much as LLM texts were. debias search --over weight finds it.",
        rich_help_panel=LOSS,
    ),
]
Reduction = Annotated[
    str,
    typer.Option(
        help="sum (over the pairs of a batch, as in the paper) or mean (as in its code); the same "
        "weight means batch-size times less under mean.",
        rich_help_panel=LOSS,
    ),
]
HingeTarget = Annotated[
    str,
    typer.Option(
        help="human (do not prefer rewrites: the paper's hinge), parity (prefer neither) or llm.",
        rich_help_panel=LOSS,
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        help="Ranking loss beside it: mnrl, cached-mnrl (large batches in little memory), or "
        "margin-mse and cosine, which hold the ranking where the untrained model has it.",
        rich_help_panel=LOSS,
    ),
]
Negatives = Annotated[
    int,
    typer.Option(
        help="Hard negatives per pair and source, mined with the untrained model; 0 leaves the "
        "other documents of a batch.",
        rich_help_panel=RUN,
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        help="Tokens after which training texts are cut (faster); the written model keeps its own.",
        rich_help_panel=RUN,
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="auto (bf16 or fp16 on a GPU, float32 on the CPU), float32, bf16 or fp16.",
        rich_help_panel=RUN,
    ),
]
TrainingSeed = Annotated[
    int,
    typer.Option(
        help="Of the order of pairs, negatives and dropout, and of resampling in the report.",
        rich_help_panel=RUN,
    ),
]
EvalEvery = Annotated[
    int | None,
    typer.Option(
        help="Steps between measurements of skew for the history; each encodes the first judged "
        "corpus anew. \\[default: start and end]",
        rich_help_panel=RUN,
    ),
]
CheckpointEvery = Annotated[
    int,
    typer.Option(
        help="Steps between checkpoints; an interrupted training goes on from the last.",
        rich_help_panel=RUN,
    ),
]
Over = Annotated[
    str,
    typer.Option(
        help="strength (of a projection), offset (share of a calibration) or weight (of the "
        "debias term: trains a model per weight and seed).",
        rich_help_panel=SEARCH,
    ),
]
Values = Annotated[
    str | None,
    typer.Option(
        help="Numbers separated by commas; 0, the model as it is, is added. \\[default: "
        "0,0.25,0.5,0.75,1 for strength, and 1.25 for offset; 0,0.003,0.01,0.03 for weight]",
        rich_help_panel=SEARCH,
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        help="Trainings per weight, at least 3: results must hold for new seeds.",
        rich_help_panel=SEARCH,
    ),
]
Training = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=VALUE,…",
        help="Settings of every training, as in debias train, such as "
        "max_steps=200,batch_size=32,learning_rate=1e-5. With --over weight.",
        rich_help_panel=SEARCH,
    ),
]
SearchOutput = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="Model folder to write (a JSON file with --over offset); must not exist. Nothing is "
        "written if no value keeps quality.",
        show_default=False,
    ),
]
