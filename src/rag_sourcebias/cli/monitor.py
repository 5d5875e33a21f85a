"""``monitor``: retrieval skew in production, from the log that an application keeps."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.cli import monitor_options as opt
from rag_sourcebias.cli import monitor_probe, monitor_replay, monitor_serve
from rag_sourcebias.cli.console import json_text, out
from rag_sourcebias.cli.monitor_settings import read_labels
from rag_sourcebias.instrument import hash_query, read_key
from rag_sourcebias.monitor.log.erasing import erase_events
from rag_sourcebias.monitor.log.reading import LogSummary, log_summary
from rag_sourcebias.monitor.rules import write_rules

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="""Watch in production which sources and styles get the ranks.

    Your application keeps a log (one line, see the README); these commands read it, from another
    process and at any time.
    """,
)
app.command("serve")(monitor_serve.serve)
app.command("replay")(monitor_replay.replay)
app.command("probe")(monitor_probe.probe)


@app.command()
def summary(log: opt.Log, *, json: opt.Json = False) -> None:
    """Say what a log holds: how many retrievals, since when, from where, and what was lost."""
    found = log_summary(log)
    if json:
        out.file.write(json_text(_plain(found)))
        return
    lines = [
        f"{found.n_kept:,} retrievals kept of {found.n_written:,} written",
        f"from {_time(found.since)} to {_time(found.until)}",
        f"labels: {_sets(found)}",
        f"sources: {_names(source for source, _ in found.tags)}",
        f"styles: {_names(style for _, style in found.tags)}",
        *_beside(found),
        f"lost: {dict(found.dropped) or 'nothing'}",
    ]
    for line in lines:
        out.print(line, highlight=False, markup=False, soft_wrap=True)


_MOST_SETS = 50


def _sets(found: LogSummary) -> str:
    shown = ", ".join(str(dict(labels)) for labels in found.labels[:_MOST_SETS])
    more = len(found.labels) - _MOST_SETS
    return f"{shown} and {more:,} more" if more > 0 else shown or "none"


def _beside(found: LogSummary) -> list[str]:
    """Return lines on what is not as it should be, and on labels that are kept apart."""
    lines = []
    if found.event_labels:
        names = ", ".join(f"{name} of {n:,}" for name, n in found.event_labels.items())
        lines.append(f"kept with each retrieval, not counted by: {names}")
    if found.overflowed:
        names = ", ".join(
            f"{name or 'labels with ever new names'} in {n:,} retrievals"
            for name, n in found.overflowed.items()
        )
        lines.append(f"too many values, counted as 'other': {names}")
    if found.odd_sources:
        names = ", ".join(f"{name} ({n:,} documents)" for name, n in found.odd_sources.items())
        lines.append(f"sources that are neither human nor llm:<model>: {names}")
    if found.bad_tags:
        lines.append(f"tags that could not be read, and are unknown: {found.bad_tags:,}")
    return lines


def _names(found: object) -> str:
    names = {name or "untagged" for name in found}  # type: ignore[attr-defined]
    return ", ".join(sorted(names)) or "none"


def _time(at: float | None) -> str:
    if at is None:
        return "–"
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def _plain(found: LogSummary) -> dict[str, object]:
    return {
        "n_written": found.n_written,
        "n_kept": found.n_kept,
        "since": found.since,
        "until": found.until,
        "dropped": dict(found.dropped),
        "labels": [dict(labels) for labels in found.labels],
        "tags": [{"source": source, "style": style} for source, style in found.tags],
        "event_labels": dict(found.event_labels),
        "overflowed": dict(found.overflowed),
        "odd_sources": dict(found.odd_sources),
        "bad_tags": found.bad_tags,
    }


@app.command()
def forget(
    log: opt.Log,
    *,
    label: Annotated[
        str,
        typer.Option(help="Whose retrievals: key=value, such as session=abc.", show_default=False),
    ],
    archive: Annotated[
        Path | None, typer.Option(help="Folder of the log's Parquet archive.", show_default=False)
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="State file of monitor serve; beside the log by default.", show_default=False
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="Key under which the log hashes values of this label (hashed_labels).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Delete the retrievals with a label from a log, so that their bytes are gone.

    The log is rewritten; it may be written meanwhile, but stop monitor serve first. Counts over
    time stay, without the value.
    """
    ((name, value),) = (read_labels([label]) or {}).items()
    if key_file is not None:
        value = hash_query(value, key=read_key(key_file))
    kept = state or log.with_name(f"{log.name}.monitor.json")
    n = erase_events(log, {name: value}, archive=archive, state=kept)
    out.print(f"{n:,} retrievals deleted", highlight=False)


@app.command()
def rules(
    folder: Annotated[Path, typer.Argument(help="Folder for the files.", show_default=False)],
    *,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there.")
    ] = False,
) -> None:
    """Write alert rules for Prometheus and a dashboard for Grafana."""
    for path in write_rules(folder, overwrite=overwrite):
        out.print(str(path), highlight=False, markup=False, soft_wrap=True)
