"""Options of the judge commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_DATA, _MODEL, _ASKING, _COST = "What to judge", "Model", "How to ask", "Cost"
_WORKERS = "Where to ask from"
_COLUMNS = "Columns (found by their usual names)"

Runs = Annotated[
    list[Path] | None,
    typer.Option(help="TREC run whose first documents are judged; repeatable.",
                 rich_help_panel=_DATA),
]  # fmt: skip
Depth = Annotated[
    int, typer.Option(min=1, help="Documents per query of a run.", rich_help_panel=_DATA)
]
PairsOfQrels = Annotated[
    Path | None,
    typer.Option(
        "--qrels",
        help="Also judge the pairs that people judged (needed for NDCG, MAP, MRR, Recall).",
        rich_help_panel=_DATA,
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(
        help="Queries: id and text, as JSON lines (BEIR), TSV, CSV or Parquet.",
        rich_help_panel=_DATA,
    ),
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        help="Documents: id and text, likewise, or a BEIR folder; repeatable.",
        rich_help_panel=_DATA,
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use queries and texts of the bundled sample (160 queries, 320 passages).",
        rich_help_panel=_DATA,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Judge only the first so many, to try.", rich_help_panel=_DATA),
]
AnswersFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, JSON lines or Parquet with question, reference and answer.",
    ),
]
QuestionColumn = Annotated[str | None, typer.Option("--question", rich_help_panel=_COLUMNS)]
ReferenceColumn = Annotated[
    str | None,
    typer.Option("--reference", help="Right answer, or a list of such.", rich_help_panel=_COLUMNS),
]
AnswerColumn = Annotated[str | None, typer.Option("--answer", rich_help_panel=_COLUMNS)]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="File to write: .tsv, .csv or .jsonl (also .gz); a second one with the status of "
        "every item stands beside it.",
    ),
]
Failures = Annotated[
    str,
    typer.Option(
        help="Pairs without a judgment: leave-out, lowest or highest (grade). Two runs with the "
        "last two bound what they could change.",
        rich_help_panel=_ASKING,
    ),
]
FAILURES = ("leave-out", "lowest", "highest")
Model = Annotated[
    str,
    typer.Option(
        help="openai:<name> (any OpenAI-compatible server), local:smollm2 or local:<path or hub "
        "name>.",
        rich_help_panel=_MODEL,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="OPENAI_BASE_URL",
        help="Server, such as http://localhost:8000/v1. The key comes from OPENAI_API_KEY, or user "
        "and password from the address: they are shown and stored nowhere.",
        rich_help_panel=_MODEL,
    ),
]
Api = Annotated[
    str,
    typer.Option(
        help="chat, or completions (exact label log-probabilities where the server echoes).",
        rich_help_panel=_MODEL,
    ),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds a server may be silent.", rich_help_panel=_MODEL)
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests at once.", rich_help_panel=_MODEL)]
MODES = ("scoring", "votes", "verbalised")
Mode = Annotated[
    str,
    typer.Option(
        help="scoring (log-probabilities of the grades), votes (share of sampled answers) or "
        "verbalised (the distribution it states).",
        rich_help_panel=_ASKING,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        help="dl (4 grades), robust04 (3 grades), correctness (2 grades) or a text file with "
        "{query} and {passage}, or {question}, {reference} and {answer}.",
        rich_help_panel=_ASKING,
    ),
]
GradeNames = Annotated[
    str,
    typer.Option(
        help="With a prompt of your own: how each grade is written, the lowest first.",
        rich_help_panel=_ASKING,
    ),
]
Votes = Annotated[int, typer.Option(min=1, help="Samples per item.", rich_help_panel=_ASKING)]
Temperature = Annotated[
    float | None,
    typer.Option(
        help="Of sampling (1; verbalised 0); with scoring it flattens (above 1) or sharpens.",
        rich_help_panel=_ASKING,
    ),
]
Smoothing = Annotated[
    float,
    typer.Option(help="Weight of the uniform distribution mixed in.", rich_help_panel=_ASKING),
]
MaxChars = Annotated[
    int | None,
    typer.Option(
        min=1, help="Cut passages and answers after so many characters.", rich_help_panel=_ASKING
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder where answers are kept; the same command goes on from it and never asks "
        "twice.",
        rich_help_panel=_COST,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local, or ray: chunks of items are asked by all workers of a Ray cluster, each with "
        "so many requests at once. The judgments are the same.",
        rich_help_panel=_WORKERS,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Workers of --engine ray; one per core by default.", rich_help_panel=_WORKERS
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster to use: host:port of its head node, or auto; by default one is started "
        "on this machine.",
        rich_help_panel=_WORKERS,
    ),
]
PriceIn = Annotated[
    float | None,
    typer.Option("--price-in", help="Price of a million tokens read.", rich_help_panel=_COST),
]
PriceOut = Annotated[
    float | None,
    typer.Option("--price-out", help="Price of a million tokens written.", rich_help_panel=_COST),
]
MaxCost = Annotated[
    float | None,
    typer.Option(help="Ask nothing more once this is spent.", rich_help_panel=_COST),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Only count requests and cost.", rich_help_panel=_COST),
]
