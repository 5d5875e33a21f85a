"""``monitor replay``: what a monitor would have said of retrievals that were recorded."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.cli import monitor_options as opt
from rag_sourcebias.cli.console import json_text, out, stages
from rag_sourcebias.cli.monitor_settings import Watch, build_monitor, read_labels, read_time
from rag_sourcebias.cli.monitor_view import show_alarms, show_snapshots
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.cli.wording import as_options
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import read_run, read_tags
from rag_sourcebias.monitor.replay import replay as feed
from rag_sourcebias.types.monitor import Alarm
from rag_sourcebias.types.rankings import Run

__all__ = ["replay"]

_OPTIONS = {"tags=": "--tags", "since= and until=": "--since and --until"}
_RUN_LABELS = {"collection": "run"}


@spread
def replay(
    recorded: opt.Recorded,
    *,
    tags: opt.Tags = None,
    watch: Watch,
    label: opt.Where = None,
    since: opt.Since = None,
    until: opt.Until = None,
    json: opt.Json = False,
) -> None:
    """Feed recorded retrievals through a monitor, to see which alarms there would have been.

    [bold]Examples[/]

        rag-sourcebias monitor replay retrievals.db --baseline reference:500 --changes 10000

        rag-sourcebias monitor replay archive/ --baseline shares:human=0.6,llm:gpt-4o=0.4

        rag-sourcebias monitor replay bm25.run --tags tags.tsv --baseline tags:tags.tsv
    """
    alarms: list[Alarm] = []
    monitor = build_monitor(watch, on_alarm=alarms.append)
    where, first, last = read_labels(label), read_time("since", since), read_time("until", until)
    events = _events(recorded, tagged=tags is not None)
    with (
        stages() as progress,
        as_options(_OPTIONS),
    ):
        progress.begin(f"replaying {recorded.name}")
        n = feed(
            events,
            monitor,
            tags=None if tags is None else read_tags(tags),
            labels=_RUN_LABELS if isinstance(events, Run) else where,
            since=first,
            until=last,
        )
    snapshots = monitor.snapshot()
    lost = monitor.dropped.by_reason
    if json:
        found = {
            "retrievals": n,
            "dropped": dict(lost),
            "alarms": [alarm.to_dict() for alarm in alarms],
            "snapshots": [snapshot.to_dict() for snapshot in snapshots],
        }
        out.file.write(json_text(found))
        return
    show_snapshots(snapshots)
    show_alarms(alarms, in_time=not isinstance(events, Run))
    if lost:
        out.print(f"left out: {dict(lost)}", highlight=False, markup=False)


def _events(recorded: Path, *, tagged: bool) -> Path | Run:
    if not recorded.exists():
        raise DataError(f"there is no {recorded}; name an event log, its archive or a TREC run")
    if tagged:
        return read_run(recorded)
    return recorded
