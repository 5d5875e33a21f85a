"""States and alarms of a monitor on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.markup import escape
from rich.table import Table

from rag_sourcebias.cli.console import out
from rag_sourcebias.types.monitor import Alarm, GroupShare, MonitorSnapshot

__all__ = ["show_alarms", "show_snapshots"]

_MOST_ALARMS = 20
_MEASURES = {"exposure": "exposure", "first": "first ranks"}


def where(labels: dict[str, str]) -> str:
    """Return labels on one line."""
    return ", ".join(f"{key}={value}" for key, value in labels.items()) or "everything"


def show_snapshots(snapshots: Sequence[MonitorSnapshot]) -> None:
    """Print a table for each set of labels."""
    if not snapshots:
        out.print("no retrieval", highlight=False)
    for snapshot in snapshots:
        out.print(
            f"[bold]{escape(where(dict(snapshot.labels)))}[/]: "
            f"{snapshot.n_retrievals:,} retrievals, {snapshot.n_documents:,} documents, "
            f"{snapshot.n_empty:,} empty; "
            f"held against {escape(snapshot.baseline)}",
            highlight=False,
            soft_wrap=True,
        )
        out.print(_table(snapshot))


def _table(snapshot: MonitorSnapshot) -> Table:
    corrected = bool(snapshot.corrected)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(snapshot.by)
    table.add_column("of")
    for name in (
        "share",
        "interval",
        "baseline",
        *(["corrected"] if corrected else []),
        "evidence",
    ):
        table.add_column(name, justify="right")
    for share in snapshot.groups:
        known = "–" if share.baseline is None else f"{share.baseline:.3f}"
        cells = [f"{share.share:.3f}", f"[{share.lower:.3f}, {share.upper:.3f}]", known]
        if corrected:
            value = snapshot.corrected.get(share.group)
            cells.append(f"{value:.3f}" if value is not None and _is_exposure(share) else "–")
        cells.append("[bold red]ALARM[/]" if share.alarm else f"{share.evidence:.1f}")
        name = escape(share.group or "untagged")
        table.add_row(
            name, _MEASURES[share.measure], *(escape(c) if "ALARM" not in c else c for c in cells)
        )
    return table


def _is_exposure(share: GroupShare) -> bool:
    return share.measure == "exposure"


def show_alarms(alarms: Sequence[Alarm], *, in_time: bool) -> None:
    """Print alarms in the order they came; ``in_time`` where their times mean something."""
    if not alarms:
        out.print("no alarm", highlight=False)
        return
    left_out = len(alarms) - _MOST_ALARMS
    for alarm in alarms[:_MOST_ALARMS]:
        at = datetime.fromtimestamp(alarm.at).astimezone().isoformat(timespec="seconds")
        when = f"{at}, " if in_time else ""
        place = f" ({escape(where(dict(alarm.labels)))})" if alarm.labels else ""
        out.print(
            f"[bold red]alarm[/] {when}after {alarm.n:,}{place}: {escape(alarm.message)}",
            highlight=False,
            soft_wrap=True,
        )
    if left_out > 0:
        out.print(f"… and {left_out:,} more; --json prints them all", highlight=False)
