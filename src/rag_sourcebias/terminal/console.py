"""Where commands print: lines, how far a long job is, and a finished report."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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

from rag_sourcebias.core.codec import write_atomic
from rag_sourcebias.core.errors import DataError, SourceBiasError, visible
from rag_sourcebias.core.progress import Stages
from rag_sourcebias.report.render import (
    Report,
    drawing,
    failure_text,
    print_report,
    without_texts,
    write_figures,
    write_pages,
    write_table,
)

# Where the command line prints: results to standard output, everything else to error.


class _VisibleConsole(Console):
    """Write control characters out: names, ids and messages come from files and servers."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            hidden = segment.control is None and not segment.text.isprintable()
            yield Segment(visible(segment.text, lines=True), segment.style) if hidden else segment


# Names such as "llm:x:" are no emoji, and numbers have no colours of their own.
out = _VisibleConsole(emoji=False, highlight=False)
# no outputs of a cell
err = _VisibleConsole(stderr=True, emoji=False, highlight=False, force_jupyter=False)


def say(text: str) -> None:
    """Print text as it is on standard output."""
    out.print(text, markup=False, soft_wrap=True)


def show(parts: Iterable[str | RenderableType]) -> None:
    """Print lines as they are, and tables, on standard output."""
    for part in parts:
        if isinstance(part, str):
            say(part)
        else:
            out.print(part)


def tell(text: str) -> None:
    """Print text as it is on standard error."""
    err.print(text, markup=False, soft_wrap=True)


def print_json(data: dict[str, Any]) -> None:
    """Print strict JSON, and nothing else, on standard output."""
    out.file.write(json_text(data))


def write_json(target: str | None, data: dict[str, Any]) -> bool:
    """Write figures where ``--json`` says; whether they were printed, and nothing else is to be."""
    if target == "-":
        print_json(data)
    elif target is not None:
        write_atomic(target, json_text(data))
        say_written("json", target)
    return target == "-"


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


def say_written(kind: str, path: Path | str) -> None:
    """Say which file was written."""
    tell(f"{kind}: {path}")


INTERRUPTED = 130


# How far a long job is: a bar where one can be drawn, lines of a log elsewhere.


class _Lines(Stages):
    def begin(self, description: str) -> None:
        super().begin(description)
        _announce(description)


class _Bar(Stages):
    """A line per stage, with a bar once its size is known."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(tell)
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def begin(self, description: str) -> None:
        _announce(description)
        before, self._task = self._task, self._progress.add_task(description, total=None)
        self._progress.remove_task(before)  # a reset would keep its total

    def advance(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)


def _announce(stage: str) -> None:
    err.print(f"[dim]·[/] {escape(stage)}")


@contextmanager
def stages() -> Iterator[Stages]:
    """Show the progress of a long job on standard error."""
    if not err.is_terminal:
        with _Lines(tell) as lines:
            yield lines
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        speed_estimate_period=120,  # a step of a training may take half a minute
    ) as progress:
        yield _Bar(progress)


def deliver(
    report: Report,
    folder: Path | None,
    *,
    show: Callable[[], object] | None = None,
    figures: Callable[[Path], object] = lambda _: None,
    texts: bool | None = True,
    table: Path | None = None,
) -> None:
    """Write the figures of a report, print it, and draw its pages, or say how they can be had.

    What was computed is on disk before anything is drawn: a table or page that fails, or an
    interruption, costs no more than itself.

    Parameters
    ----------
    report : report
    folder : Path or None
        Nothing is written where None.
    show : callable, optional
        What prints it; :func:`print_report` by default.
    figures : callable, optional
        Writes what else belongs to the figures into the folder.
    texts : bool
        Keep the texts of cases; otherwise ids and numbers remain, and no figures that quote texts.
    table : Path or None
        Where the first of its tables is written, as CSV, Markdown or LaTeX.
    """
    print_it = show or partial(print_report, report, out)
    if folder is None:
        print_it()
        _write_table(report, table)
        err.print("add --report <folder> for the full report (HTML, Markdown, JSON)")
        return
    report = report if texts else without_texts(report)
    try:
        file = write_figures(report, folder)
    except SourceBiasError:
        print_it()  # then the table is all there is
        raise
    try:
        if texts:
            figures(folder)
        left: SystemExit | None = None
        try:
            print_it()
        except SystemExit as end:  # rich ends the process where the pipe is closed
            left = end
        except Exception as error:  # noqa: BLE001 - the terminal's trouble costs no page
            err.print(f"the table was not printed ({failure_text(error)})", markup=False)
        written = {"json": file, **write_pages(report, folder)}
    except KeyboardInterrupt:
        tell(f"\ninterrupted: {file} is complete; for its pages: {drawing(file, folder)}")
        sys.exit(INTERRUPTED)
    for kind, path in written.items():
        say_written(kind, path)
    _write_table(report, table)
    if left is not None:
        raise left


def _write_table(report: Report, file: Path | None) -> None:
    """Write the main table of a report, if a file was named."""
    if file is None:
        return
    if not report.frames:
        raise DataError(f"--table {file}: this report has no table")
    write_table(next(iter(report.frames.values())), file)
    say_written("table", file)
