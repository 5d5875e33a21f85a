"""Options of the tag commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

_STORE, _TAGGERS, _WRITING = "Store", "Taggers, in order of trust", "Writing"

Store = Annotated[
    str,
    typer.Option(
        help="chroma:FOLDER · chroma:http://host:8000 · corpus:FOLDER or corpus:FILE.jsonl (a BEIR "
        "corpus, only read).",
        rich_help_panel=_STORE,
    ),
]
Collection = Annotated[
    str | None,
    typer.Option(help="Collection, where the store holds several.", rich_help_panel=_STORE),
]
Sidecar = Annotated[
    Path | None,
    typer.Option(
        help="Keep the tags in this file (.sqlite, .jsonl) and leave the store as it is.",
        rich_help_panel=_STORE,
    ),
]
ReportSidecar = Annotated[
    Path | None,
    typer.Option(help="Read the tags from this file, not the store.", rich_help_panel=_STORE),
]
Provenance = Annotated[
    bool,
    typer.Option(
        "--provenance",
        help="Read what documents declare: IPTC digitalSourceType, AI-Disclosure, C2PA.",
        rich_help_panel=_TAGGERS,
    ),
]
Rules = Annotated[
    Path | None,
    typer.Option(
        help="YAML file of rules on metadata, URL host, id and text.", rich_help_panel=_TAGGERS
    ),
]
IdPattern = Annotated[
    str | None,
    typer.Option(
        help="Regex on ids with some of the named groups pair_id, source or model, style; auto "
        "reads d17#human and d17@llm:gpt-4o.",
        rich_help_panel=_TAGGERS,
    ),
]
Detectors = Annotated[
    list[Path] | None,
    typer.Option(
        "--detector",
        help="Folder that rag-sourcebias tag fit wrote, for what the others do not know; "
        "repeatable (one for sources, one for styles).",
        rich_help_panel=_TAGGERS,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Count and show examples only.", rich_help_panel=_WRITING),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace the tags that other taggers wrote; they are kept in a backup.",
        rich_help_panel=_WRITING,
    ),
]
Backup = Annotated[
    Path | None,
    typer.Option(
        help="JSONL file for the tags that --overwrite replaces (default: beside the store).",
        rich_help_panel=_WRITING,
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Also write the numbers to this JSON file.")
]
