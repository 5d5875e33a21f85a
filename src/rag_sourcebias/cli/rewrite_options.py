"""Options of ``rewrite``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_DATA, _MODEL, _WRITING, _COST = "What is rewritten", "Model", "How it writes", "Cost"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder with your documents: corpus.jsonl or corpus/human.jsonl and, where you "
        "have them, queries.jsonl and qrels/<split>.tsv. Sources other than human are left out.",
        show_default=False,
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Rewrite the 160 human passages of the bundled sample.",
        rich_help_panel=_DATA,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Only the first so many documents, with their judgments and queries.",
        rich_help_panel=_DATA,
    ),
]
UntaggedAsHuman = Annotated[
    bool,
    typer.Option(
        "--untagged-as-human",
        help="Documents without a source were written by people (you vouch for it).",
        rich_help_panel=_DATA,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="Folder to write. The same command goes on with what it holds; other models and "
        "prompts are added to it.",
        show_default=False,
    ),
]
Model = Annotated[
    str,
    typer.Option(
        help="openai:<name> (any OpenAI-compatible server), local:smollm2 or local:<path or hub "
        "name>.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Api = Annotated[
    str,
    typer.Option(
        help="chat, or completions (the bare prompt, for models without a chat format).",
        rich_help_panel=_MODEL,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        help="Name of the model in source tags, llm:<name>.",
        rich_help_panel=_MODEL,
        show_default="the model's",
    ),
]
Prompts = Annotated[
    list[str] | None,
    typer.Option(
        help="rewrite (Dai et al. 2024) · rephrase (their nine of Table 7) · styles (the nine of "
        "Cao 2025) · names such as style-3,rephrase-1 · FILE.yaml with name: template · "
        "'name=your template with {text}'; repeatable. One source each.",
        rich_help_panel=_WRITING,
        show_default="rewrite",
    ),
]
MaxTokens = Annotated[
    int,
    typer.Option(
        min=1,
        help="Longest rewrite; one that reaches it lacks its end and is left out.",
        rich_help_panel=_WRITING,
    ),
]
Temperature = Annotated[
    float,
    typer.Option(help="0 takes the likeliest words; Cao used 0.5.", rich_help_panel=_WRITING),
]
Seed = Annotated[int, typer.Option(rich_help_panel=_WRITING)]
Currency = Annotated[str, typer.Option(help="Of the prices.", rich_help_panel=_COST)]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only count requests, tokens and cost; nothing is asked, no key is needed.",
        rich_help_panel=_COST,
    ),
]
Check = Annotated[
    bool,
    typer.Option(help="Afterwards, check that rewrites say what their originals say."),
]
ReportFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the whole report of the check: the worst pairs side by side (HTML, "
        "Markdown, JSON).",
        show_default=False,
    ),
]
