"""Options of ``explain``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_WHAT, _HOW = "What is looked at", "How"

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
        rich_help_panel=_WHAT,
    ),
]
Split = Annotated[
    str, typer.Option(help="Split of the judgments that are used.", rich_help_panel=_WHAT)
]
Encoder = Annotated[
    str,
    typer.Option(
        help="The model whose vectors are looked at: a sentence-transformers name or "
        "path[,batch_size=…,device=…], or none to compare the texts only.",
        rich_help_panel=_WHAT,
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        help="Source to compare with the baseline, such as llm:gpt-4o; repeatable. \\[default: all "
        "that have pairs]",
        rich_help_panel=_WHAT,
    ),
]
BaselineSource = Annotated[
    str, typer.Option(help="Source of the originals.", rich_help_panel=_WHAT)
]
Perplexities = Annotated[
    list[str] | None,
    typer.Option(
        help="Language model that reads the texts: causal:smollm2 (the packaged one), "
        "causal:<path> or masked:<path> (BERT and the like: [K]'s pseudo-perplexity); repeatable. "
        "\\[default: none; with smollm2 a pair takes about half a second]",
        rich_help_panel=_WHAT,
    ),
]
PerplexityPairs = Annotated[
    int,
    typer.Option(min=2, help="Pairs of each source that it reads.", rich_help_panel=_WHAT),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Pairs of each source, drawn at random, those relevant to a judged query first. "
        "\\[default: all]",
        rich_help_panel=_WHAT,
    ),
]
Map = Annotated[
    str,
    typer.Option(
        "--map",
        help="pca, tsne or umap (for pictures only: their distances mean little).",
        rich_help_panel=_HOW,
    ),
]
Centre = Annotated[
    bool,
    typer.Option(
        "--centre",
        help="Subtract each source's mean vector before spectra are compared.",
        rich_help_panel=_HOW,
    ),
]
Normalise = Annotated[
    bool,
    typer.Option(
        "--normalise",
        help="Scale vectors to length 1 before spectra are compared.",
        rich_help_panel=_HOW,
    ),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_HOW)]
Seed = Annotated[int, typer.Option(rich_help_panel=_HOW)]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of cached vectors and perplexities; an interrupted run goes on from it.",
        rich_help_panel=_HOW,
    ),
]
ReportFolder = Annotated[
    Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
]
