"""A report: how it shows itself, and its files: the figures first, then the pages."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError, SourceBiasError, visible
from rag_sourcebias.core.finding import Finding, Frame, Interval, number
from rag_sourcebias.intake.files import PathLike, read_json, sound, write_atomic
from rag_sourcebias.report.document import Document
from rag_sourcebias.report.render import failure_text, first_screen, markdown, page, terminal

if TYPE_CHECKING:
    from rich.console import Console


_logger = logging.getLogger("rag_sourcebias.report")
T = TypeVar("T")


S = TypeVar("S", bound="Report")


# Figures as JSON.


def write_report_json(report: Report, path: PathLike) -> None:
    r"""Write a report as strict JSON (NaN as null), compressed if the name ends in ``.gz``.

    Control characters, lone surrogates and direction overrides are written as ``\uXXXX``: any
    report can be encoded, and the file can be looked at in a terminal.

    Raises
    ------
    DataError
        If the report holds an infinite number, which JSON cannot carry, or the folder is missing.
    """
    try:
        text = json.dumps(
            report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except ValueError as error:
        raise DataError(f"the report cannot be written as JSON to {path}: {error}") from error
    write_atomic(path, visible(text) + "\n")


def read(path: PathLike, kinds: Mapping[str | None, tuple[str, type[S]]]) -> S:
    """Read a report that :func:`write_report_json` wrote.

    Parameters
    ----------
    path : path
    kinds : mapping of str to (str, type)
        What each kind is called, and its class.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not a report.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    data = read_json(path, "the JSON of a report")
    if not isinstance(data, dict) or "schema_version" not in data:
        raise DataError(f"{path} is not a report: it is JSON without a schema_version")
    given = data.get("kind")
    if not isinstance(given, str | None) or given not in kinds:
        known = ", ".join(repr(kind) for kind in kinds if kind)
        raise DataError(f"{path}: report of kind {given!r} is unknown; there are {known}")
    name, kind = kinds[given]
    with sound(path, f"a complete {name} report", names_file=False):
        report = kind.from_dict(data)
        visible_report(report)  # walks all of it: what is nested too deep is told of here
    return report


# A finished report in a folder.


_DRAW: dict[str, Callable[[Document], str]] = {"md": markdown, "html": page}
_PAGES = tuple(_DRAW)
FORMATS = ("json", *_PAGES)


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = FORMATS,
    texts: bool = True,
) -> dict[str, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into a folder.

    ``report.json``, which holds every figure, is written before anything is drawn; each file is
    there complete or not at all. A page that cannot be written costs that page: a warning is
    logged, and the page is not among the files returned. Files of the folder that do not belong
    to a report stay.

    Parameters
    ----------
    report : report
    folder : path
        Created, with its parents, if missing.
    formats : sequence of {"json", "md", "html"}
        All three by default.
    texts : bool
        Keep the texts of the few cases that matter most; without them, ids and numbers stay.

    Returns
    -------
    dict of str to Path
        The file of each format that was written.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed and HTML is all that was asked for.
    DataError
        If a format is unknown, ``folder`` is a file or cannot be written, or none of the pages
        asked for could be and ``report.json`` was not.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise DataError(f"unknown report formats {unknown}; choose from {list(FORMATS)}")
    if not texts:
        report = without_texts(report)
    pages = [name for name in formats if name != "json"]
    written: dict[str, Path] = {}
    if "json" in formats:
        written["json"] = write_figures(report, folder, pages)
    written |= write_pages(report, folder, pages, required=not written)
    return {name: written[name] for name in formats if name in written}


def write_figures(
    report: Report, folder: str | os.PathLike[str], pages: Sequence[str] = _PAGES
) -> Path:
    """Write ``report.json``, and take away the pages that are about to be drawn anew.

    So no page of an earlier report ever lies beside the figures of a later one.

    Raises
    ------
    DataError
        If the folder is a file or cannot be written.
    """
    target = _made(folder)
    file, staged = target / "report.json", target / f".report.{secrets.token_hex(4)}.json"
    try:
        write_report_json(report, staged)
        for name in pages:
            with contextlib.suppress(OSError):  # a folder of that name is no page of ours
                (target / f"report.{name}").unlink()
        staged.replace(file)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        staged.unlink(missing_ok=True)
    return file


def write_pages(
    report: Report,
    folder: str | os.PathLike[str],
    pages: Sequence[str] = _PAGES,
    *,
    required: bool = False,
) -> dict[str, Path]:
    """Write the pages that can be drawn; log each that cannot.

    Parameters
    ----------
    required : bool
        Raise the first error where no page could be written.
    """
    target = _made(folder)
    written: dict[str, Path] = {}
    failures: list[Exception] = []
    for name in pages:
        file = target / f"report.{name}"
        try:
            write_atomic(file, _DRAW[name](visible_report(report).page()))
            written[name] = file
        except Exception as error:  # noqa: BLE001 - drawing costs no result, whatever happens
            failures.append(error)
            figures, remedy = target / "report.json", ""
            if figures.is_file():
                command = f"rag-sourcebias start {figures} --report {target}"
                remedy = f"; {figures} is complete, and '{command}' draws it"
            _logger.warning("%s was not written (%s)%s", file, failure_text(error), remedy)
    if failures and required and not written:
        first = failures[0]
        if isinstance(first, SourceBiasError):
            raise first
        raise DataError(f"no page was written: {failure_text(first)}") from first
    return written


def _made(folder: str | os.PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; a report needs a folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


# One table in a file.


_TABLES: dict[str, Callable[[Frame], str]] = {
    ".csv": Frame.to_csv,
    ".md": Frame.to_markdown,
    ".tex": Frame.to_latex,
}


def require_table(path: PathLike) -> None:
    """Refuse a file for a table whose name says no format.

    Raises
    ------
    DataError
    """
    if Path(path).suffix not in _TABLES:
        raise DataError(f"{path}: a table is written to a file ending in {', '.join(_TABLES)}")


def write_table(frame: Frame, path: PathLike) -> None:
    """Write a frame in the format that the name of the file says.

    Raises
    ------
    DataError
        If it says none, or the folder is missing.
    """
    require_table(path)
    write_atomic(path, _TABLES[Path(path).suffix](frame).rstrip("\n") + "\n")


# What is taken out of a report before it is shown or stored.


def visible_report(report: T, *, lines: bool = True) -> T:
    """Return the report with control characters, overrides and surrogates written out everywhere.

    Once for all of it, before anything is drawn: lengths of names, keys and texts then agree in
    every view, and no view has to know where a text came from.

    Parameters
    ----------
    report : report
    lines : bool
        Leave line ends and tabs, which excerpts have and which pages show as blanks.

    Returns
    -------
    report
        The same object where there is nothing to write out, as nearly always.
    """

    def shown(value: object) -> object:
        return visible(value, lines=lines) if isinstance(value, str) else None

    return _changed(report, shown)


def without_texts(report: T) -> T:
    """Return a report without any text of queries, documents or answers: ids and numbers stay.

    What was read off texts goes with them: words that mark a source, names and numbers that a
    rewrite lost. Parts that hold such texts say with ``without_texts`` what is left.
    """

    def bare(value: object) -> object:
        left = getattr(value, "without_texts", None)
        return None if left is None else left()

    return _changed(report, bare)


@cache  # looking at fields takes longer than at values
def _init_fields(kind: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(f.name for f in fields(kind) if f.init) if is_dataclass(kind) else ()


def _changed(value: T, change: Callable[[object], object]) -> T:
    """Return a report in which every part is what ``change`` makes of it, if not None.

    Parts that hold none of these stay the same objects.
    """
    new = change(value)
    kind: Any = type(value)
    if new is None and (names := _init_fields(kind)):
        old = {name: getattr(value, name) for name in names}
        parts = {name: _changed(part, change) for name, part in old.items()}
        others = {name: part for name, part in parts.items() if part is not old[name]}
        new = replace(value, **others) if others else value  # type: ignore[type-var]
    elif isinstance(value, Finding):
        numbers, cases = _changed(value.numbers, change), _changed(value.cases, change)
        if numbers is not value.numbers or cases is not value.cases:
            new = kind(code=value.code, numbers=numbers, severity=value.severity, cases=cases)
    elif isinstance(value, tuple | list):
        items = [_changed(item, change) for item in value]
        new = value if all(map(is_, value, items)) else kind(items)
    elif isinstance(value, Mapping):
        pairs = {_changed(key, change): _changed(item, change) for key, item in value.items()}
        same = all(map(is_, (*value, *value.values()), (*pairs, *pairs.values())))
        new = value if same else pairs
    return cast("T", value if new is None else new)


# What users hold: it says what was found, shows itself, and is saved.


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
