"""Where the command line prints: results to standard output, everything else to error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
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
from rich.segment import Segment

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.names import visible

__all__ = ["Stages", "err", "json_text", "out", "print_json", "stages"]


class _VisibleConsole(Console):
    """Write control characters out: names, ids and messages come from files and servers."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None and not segment.text.isprintable():
                yield Segment(visible(segment.text, lines=True), segment.style)
            else:
                yield segment


# Names such as "llm:x:" are no emoji.
out = _VisibleConsole(emoji=False)
err = _VisibleConsole(stderr=True, emoji=False)


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


def print_json(data: dict[str, Any]) -> None:
    """Print strict JSON, and nothing else, on standard output."""
    out.file.write(json_text(data))


def json_text(data: dict[str, Any]) -> str:
    """Return one line of strict JSON that a terminal shows and does not obey.

    Raises
    ------
    DataError
        If it holds an infinite number.
    """
    try:
        return visible(json.dumps(data, ensure_ascii=False, allow_nan=False)) + "\n"
    except ValueError as error:
        raise DataError(f"the result cannot be written as JSON: {error}") from error


@contextmanager
def stages() -> Iterator[Stages]:
    """Show the progress of a long job on standard error."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        yield Stages(progress)
