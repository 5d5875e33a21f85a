"""What becomes of a finished report: its figures, a table, and the pages that were asked for."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.report.files import without_texts, write_figures, write_pages, write_table
from rag_sourcebias.report.render import failure_text
from rag_sourcebias.report.report import Report, print_report
from rag_sourcebias.terminal.console import INTERRUPTED, err, out, say_written, tell


def deliver(
    report: Report,
    folder: Path | None,
    *,
    show: Callable[[], object] | None = None,
    figures: Callable[[Path], object] = lambda _: None,
    texts: bool = True,
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
        tell(
            f"\ninterrupted: {file} is complete; 'rag-sourcebias start {file} --report {folder}' "
            "draws its pages"
        )
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
