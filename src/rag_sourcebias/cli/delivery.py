"""What becomes of a finished report: its figures, a table, and the pages that were asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rag_sourcebias.cli.console import err, out, tell
from rag_sourcebias.core.errors import SourceBiasError
from rag_sourcebias.report.html import failure_text
from rag_sourcebias.reports import Report, print_report, write_figures, write_pages

_INTERRUPTED = 130


def deliver(
    report: Report,
    folder: Path | None,
    *,
    show: Callable[[], object] | None = None,
    figures: Callable[[Path], object] = lambda _: None,
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
    """
    print_it = show or partial(print_report, report, out)
    if folder is None:
        print_it()
        err.print("add --report <folder> for the full report (HTML, Markdown, JSON)")
        return
    try:
        file = write_figures(report, folder)
    except SourceBiasError:
        print_it()  # then the table is all there is
        raise
    try:
        figures(folder)
        left = _print(print_it)
        written = {"json": file, **write_pages(report, folder)}
    except KeyboardInterrupt:
        tell(
            f"\ninterrupted: {file} is complete; 'rag-sourcebias report show {file} --to {folder}' "
            "draws its pages"
        )
        sys.exit(_INTERRUPTED)
    for kind, path in written.items():
        say_written(kind, path)
    if left is not None:
        raise left


def say_written(kind: str, path: Path | str) -> None:
    """Say which file was written."""
    tell(f"{kind}: {path}")


def _print(print_it: Callable[[], object]) -> SystemExit | None:
    """Print the table; return the exit where nobody reads it to the end."""
    try:
        print_it()
    except SystemExit as end:  # rich ends the process where the pipe is closed
        return end
    except Exception as error:  # noqa: BLE001 - the terminal's trouble costs no page
        err.print(f"the table was not printed ({failure_text(error)})", markup=False)
    return None
