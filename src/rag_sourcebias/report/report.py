"""What every report does of its own: show itself, hand out its tables, lie in a folder."""

from __future__ import annotations

import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Frame, Interval, number
from rag_sourcebias.core.names import visible
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.files import visible_report, write_report
from rag_sourcebias.report.render import first_screen, terminal

if TYPE_CHECKING:
    from rich.console import Console

_IN_A_LINE = 3  # outcomes
_PRINTED = 6


class Outcome(NamedTuple):
    """What a report found of one subject.

    Parameters
    ----------
    subject : str
        Such as a retriever.
    code : str
        The verdict.
    words : str
        The verdict as it is shown; "" where the code says it.
    figure : str
        Name of the figure on which it rests; "" where there is none.
    interval : Interval or None
    value : float or None
        The figure where it has no interval.
    digits : int
    """

    subject: str
    code: str
    figure: str = ""
    interval: Interval | None = None
    value: float | None = None
    digits: int = 1
    words: str = ""

    def __str__(self) -> str:
        text = f"{self.subject} {self.words or self.code.replace('_', ' ')}".strip()
        if self.interval is not None:
            value, lower, upper = (
                number(end, digits=self.digits)
                for end in (self.interval.estimate, self.interval.lower, self.interval.upper)
            )
            return f"{text}, {self.figure} {value} [{lower}, {upper}]"
        if self.value is not None:
            return f"{text}, {self.figure} {number(self.value, digits=self.digits)}"
        return text


class Report(Stored, ABC):
    """A report that shows itself in a session, in a notebook and in a browser.

    A class of reports says what it found (``_outcomes``), which tables it has (``frames``) and
    what is read in which order (``page``).
    """

    __slots__ = ()

    @abstractmethod
    def page(self) -> Document:
        """Return what there is to read, in its order."""

    @property
    @abstractmethod
    def frames(self) -> Mapping[str, Frame]:
        """Every table, by its name; the first is the main one."""

    @abstractmethod
    def _outcomes(self) -> Iterable[Outcome]:
        """Yield the verdict on each subject."""

    def table(self, name: str) -> Frame:
        """Return a table, for pandas, polars, CSV, Markdown or LaTeX.

        Raises
        ------
        DataError
            If there is none of that name; the message says which there are.
        """
        frames = self.frames
        if name not in frames:
            held = ", ".join(map(repr, frames)) or "none"
            raise DataError(f"this {type(self).__name__} has no table {name!r}; it has {held}")
        return frames[name]

    @property
    def verdict(self) -> str:
        """Code of the verdict; ``"differs"`` where it is not the same for all that was examined."""
        codes = {outcome.code for outcome in self._outcomes()}
        if len(codes) > 1:
            return "differs"
        return next(iter(codes), "none")

    @property
    def verdicts(self) -> dict[str, str]:
        """Code of the verdict on each retriever, score, system or source."""
        return {outcome.subject: outcome.code for outcome in self._outcomes()}

    def __repr__(self) -> str:
        outcomes = list(self._outcomes())
        texts = list(map(str, outcomes[:_IN_A_LINE])) or ["nothing was compared"]
        if len(outcomes) > _IN_A_LINE:
            texts.append(f"and {len(outcomes) - _IN_A_LINE} more")
        name = getattr(getattr(self, "data", self), "name", "")
        return visible(f"<{f'{type(self).__name__} {name}'.strip()}: {'; '.join(texts)}>")

    def __str__(self) -> str:
        shown = visible_report(self, lines=False)
        document, outcomes = shown.page(), list(shown._outcomes())
        lines = [f"{document.kind}: {document.name}", *document.first.lines()]
        lines += [f"  {outcome}" for outcome in outcomes[:_PRINTED]]
        if len(outcomes) > _PRINTED:
            lines.append(f"  and {len(outcomes) - _PRINTED} more")
        warnings = document.warnings
        if warnings:
            many = "warnings" if len(warnings) > 1 else "warning"
            lines.append(f"{len(warnings)} {many}: {warnings[0]}")
        tables = f".table(name) of {', '.join(self.frames)}; " if self.frames else ""
        return "\n".join([*lines, f"{tables}.save(folder), .open()"])

    def _repr_html_(self) -> str:
        """Return the first screen, for a notebook."""
        return first_screen(visible_report(self).page())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ANN401, ARG002
        """Print the line where IPython has no page to show."""
        printer.text(repr(self))

    def save(self, folder: str | Path) -> Path:
        """Write ``report.json``, ``report.md`` and ``report.html``; return the folder.

        Raises
        ------
        DataError
            If the folder cannot be written.
        """
        write_report(self, folder)
        return Path(folder)

    def open(self) -> Path:
        """Show the whole report in the browser; return the file.

        Raises
        ------
        MissingExtraError
            If jinja2 or matplotlib is not installed.
        """
        folder = tempfile.mkdtemp(prefix="rag-sourcebias-")
        file = write_report(self, folder, formats=("html",))["html"]
        webbrowser.open(file.as_uri())
        return file


def print_report(report: Report, console: Console) -> None:
    """Print a report of any kind: the first screen, the headline, what is brief and warnings.

    Parameters
    ----------
    report : report
    console : rich.console.Console
        Its width decides how many columns stand side by side.
    """
    terminal(visible_report(report, lines=False).page(), console)
