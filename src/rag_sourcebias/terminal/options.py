"""Options that commands of several capabilities have, named once."""

from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.llm.ask import Prices

_DATA, _RETRIEVAL, _STATISTICS = "Data", "Retrieval", "Statistics"
_MODEL, _COST = "Model", "Cost"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per source "
        "(same _id = same document rewritten).",
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
DatasetName = Annotated[
    str | None,
    typer.Option(
        help="A bundled data set by name; rag-sourcebias start lists them.", rich_help_panel=_DATA
    ),
]
Split = Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)]
Depth = Annotated[int, typer.Option(min=1, help="Documents per query.", rich_help_panel=_RETRIEVAL)]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of cached embeddings and scores; an interrupted audit goes on from it.",
        rich_help_panel=_RETRIEVAL,
    ),
]
BaselineSource = Annotated[
    str,
    typer.Option(help="Source that the others are compared with.", rich_help_panel=_STATISTICS),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_STATISTICS)]
Seed = Annotated[int, typer.Option(rich_help_panel=_STATISTICS)]
JsonFile = Annotated[
    str | None, typer.Option("--json", help="Write the figures as JSON here; - prints them.")
]
ReportFolder = Annotated[
    Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
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
Timeout = Annotated[
    float, typer.Option(help="Seconds a server may be silent.", rich_help_panel=_MODEL)
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests at once.", rich_help_panel=_MODEL)]

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


def prices_of(
    price_in: float | None, price_out: float | None, most: float | None, *, currency: str = "USD"
) -> Prices | None:
    """Return the prices of tokens, None where there are none."""
    if price_in is None and price_out is None:
        if most is not None:
            raise DataError("--max-cost needs --price-in and --price-out")
        return None
    return Prices(prompt=price_in or 0.0, completion=price_out or 0.0, currency=currency)
