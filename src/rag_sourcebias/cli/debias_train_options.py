"""Options of ``debias train`` and ``debias search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

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
Scale = Annotated[
    float,
    typer.Option(help="Factor on the similarities in the debias term.", rich_help_panel=LOSS),
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
Epochs = Annotated[
    int | None, typer.Option(help="Passes over the pairs. \\[default: 1]", rich_help_panel=RUN)
]
Steps = Annotated[
    int | None,
    typer.Option(help="Optimiser steps, instead of epochs.", rich_help_panel=RUN),
]
BatchSize = Annotated[int, typer.Option(help="Pairs in a step.", rich_help_panel=RUN)]
LearningRate = Annotated[
    float, typer.Option(help="Peak; falls to 0 at the end.", rich_help_panel=RUN)
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
Resume = Annotated[
    bool,
    typer.Option(help="Go on from checkpoints of the same command.", rich_help_panel=RUN),
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
