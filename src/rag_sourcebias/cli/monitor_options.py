"""Options of the monitor commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_WATCH, _WHICH, _SERVE = "What is watched", "Which retrievals", "Serving"

Log = Annotated[Path, typer.Argument(help="File of an EventLog.", show_default=False)]
Recorded = Annotated[
    Path,
    typer.Argument(
        help="File of an EventLog, folder of its Parquet archive, or a TREC run (with --tags).",
        show_default=False,
    ),
]
By = Annotated[str, typer.Option(help="source or style.", rich_help_panel=_WATCH)]
Baseline = Annotated[
    str,
    typer.Option(
        help="What shares are held against: reference:N (the first N observations, frozen) · "
        "pool:K (all candidates of the query, of which K are shown) · "
        "shares:human=0.5,llm:gpt-4o=0.5 · tags:FILE (shares of a corpus in a file of tags) · "
        "store:chroma:FOLDER (shares in a store) · none.",
        rich_help_panel=_WATCH,
    ),
]
ConfidenceLevel = Annotated[
    float,
    typer.Option(
        help="No false alarm ever, however often you look, with this probability for each set of "
        "labels.",
        rich_help_panel=_WATCH,
    ),
]
Changes = Annotated[
    int | None,
    typer.Option(
        help="Watch for changes, too: observations between false alarms of change, on average.",
        rich_help_panel=_WATCH,
    ),
]
SplitBy = Annotated[
    str,
    typer.Option(
        help="Labels whose values are watched separately, with commas between.",
        rich_help_panel=_WATCH,
    ),
]
Together = Annotated[
    str | None,
    typer.Option(
        help="Retrievals that are no independent observations: query (equal queries within an "
        "hour count once), or the name of a label such as session.",
        rich_help_panel=_WATCH,
    ),
]
TagErrors = Annotated[
    str | None,
    typer.Option(
        help="Sensitivity and specificity of the detector of a source, beside human: "
        "llm:gpt-4o=0.9,0.95. Corrected shares are shown beside the raw ones.",
        rich_help_panel=_WATCH,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--label", help="Only with this label: key=value.", rich_help_panel=_WHICH),
]
Since = Annotated[
    str | None,
    typer.Option(
        help="From this time on: 2026-11-21T10:00, or 90m, 24h, 7d ago.", rich_help_panel=_WHICH
    ),
]
Until = Annotated[str | None, typer.Option(help="Before this time.", rich_help_panel=_WHICH)]
Tags = Annotated[
    Path | None,
    typer.Option(help="Tags of the documents of a run: tags.tsv.", rich_help_panel=_WHICH),
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen at; any but a loopback address needs a token.",
        rich_help_panel=_SERVE,
    ),
]
Port = Annotated[int, typer.Option(help="0 takes a free one.", rich_help_panel=_SERVE)]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="File with the token that readers must give; or set RAG_SOURCEBIAS_TOKEN.",
        rich_help_panel=_SERVE,
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        help="Further name under which readers may ask, behind a proxy.",
        rich_help_panel=_SERVE,
    ),
]
PerAddress = Annotated[
    int,
    typer.Option(
        "--connections-per-address",
        help="Most connections of one address; of more, the one that has waited longest is "
        "closed. Behind a proxy all readers have its address.",
        rich_help_panel=_SERVE,
    ),
]
State = Annotated[
    Path | None,
    typer.Option(
        help="File that keeps tests and alarms over restarts.  \\[default: LOG.monitor.json]",
        show_default=False,
        rich_help_panel=_SERVE,
    ),
]
StartAnew = Annotated[
    bool,
    typer.Option(
        "--start-anew", help="Forget the state kept and read the log anew.", rich_help_panel=_SERVE
    ),
]
Webhook = Annotated[
    str | None,
    typer.Option(
        help="POST alarms to this URL; RAG_SOURCEBIAS_WEBHOOK_SECRET signs them.",
        rich_help_panel=_SERVE,
    ),
]
Canary = Annotated[
    Path | None,
    typer.Option(help="File that monitor probe writes; shown, too.", rich_help_panel=_SERVE),
]
