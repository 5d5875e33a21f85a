"""Where the command line prints: results to standard output, everything else to error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["Stages", "err", "out", "stages"]

out = Console()
err = Console(stderr=True)


class Stages:
    """A line per stage of a long job, with a bar once its size is known."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._description = "starting"

    def begin(self, description: str) -> None:
        """Begin the next stage."""
        self._progress.console.print(f"[dim]·[/] {escape(description)}", highlight=False)
        self._progress.reset(self._task, total=None, description=description)
        self._description = description

    def advance(self, done: int, total: int | None) -> None:
        """Report progress within the stage."""
        self._progress.update(
            self._task, completed=done, total=total, description=self._description
        )


@contextmanager
def stages() -> Iterator[Stages]:
    """Show the progress of a long job on standard error."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        yield Stages(progress)
