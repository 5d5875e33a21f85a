"""Where commands print, what they check first, what becomes of a finished report."""

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
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

from rag_sourcebias.core.errors import DataError, SourceBiasError
from rag_sourcebias.core.names import visible
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.report.files import without_texts
from rag_sourcebias.report.render import failure_text
from rag_sourcebias.reports import Report, print_report, write_figures, write_pages

# Where the command line prints: results to standard output, everything else to error.


class _VisibleConsole(Console):
    """Write control characters out: names, ids and messages come from files and servers."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            hidden = segment.control is None and not segment.text.isprintable()
            yield Segment(visible(segment.text, lines=True), segment.style) if hidden else segment


# Names such as "llm:x:" are no emoji.
out = _VisibleConsole(emoji=False)
err = _VisibleConsole(stderr=True, emoji=False, force_jupyter=False)  # no outputs of a cell


LOG_SECONDS = 10.0
"""Between two lines about progress where no bar can be drawn."""


class Stages:
    """A line per stage of a long job, with a bar once its size is known.

    A log, which shows no bar, gets lines instead: how much is done, and how long the rest takes.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def begin(self, description: str) -> None:
        """Begin the next stage."""
        if not self._progress.disable:
            self._progress.console.print(f"[dim]·[/] {escape(description)}", highlight=False)
        before, self._task = self._task, self._progress.add_task(description, total=None)
        self._progress.remove_task(before)  # a reset would keep its total

    def advance(self, done: int, total: int | None) -> None:
        """Report progress within the stage."""
        self._progress.update(self._task, completed=done, total=total)

    def log_until(self, ended: Event) -> None:
        """Print how far the stage is, again and again."""
        while not ended.wait(LOG_SECONDS):
            task = self._progress.tasks[-1]
            said = f"{timedelta(seconds=int(task.elapsed or 0))} so far"
            if task.total is not None:
                left = "" if task.time_remaining is None else timedelta(seconds=task.time_remaining)
                said = f"{task.completed:,.0f} of {task.total:,.0f}, {said}" + (
                    f", about {left} left" if left else ""
                )
            tell(f"  {task.description}: {said}")


def say(text: str) -> None:
    """Print text as it is on standard output."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def show(parts: Iterable[str | RenderableType]) -> None:
    """Print lines as they are, and tables, on standard output."""
    for part in parts:
        if isinstance(part, str):
            say(part)
        else:
            out.print(part)


def tell(text: str) -> None:
    """Print text as it is on standard error."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


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


@contextmanager
def stages(*, silent_at_first: bool = False) -> Iterator[Stages]:
    """Show the progress of a long job on standard error.

    Parameters
    ----------
    silent_at_first : bool
        Print nothing before :data:`LOG_SECONDS` have passed, and lines from then on: what is called
        from a program, or in a notebook, is mostly short.
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=silent_at_first,
        speed_estimate_period=120,  # a step of a training may take half a minute
    ) as progress:
        shown, ended = Stages(progress), Event()
        if silent_at_first or not err.is_terminal:
            Thread(target=shown.log_until, args=(ended,), daemon=True).start()
        try:
            yield shown
        finally:
            ended.set()


# What commands check before they start.


def choice(option: str, value: str, allowed: Sequence[str]) -> Any:  # noqa: ANN401 - a literal
    """Return the value if it is one of those allowed, and name them otherwise."""
    if value not in allowed:
        raise DataError(f"--{option} {value!r} is not one of {', '.join(allowed)}")
    return value


def number_pair(option: str, text: str) -> tuple[float, float]:
    """Read ``low,high``."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise DataError(
            f"--{option} {text!r}: write two numbers as low,high, such as 0,1"
        ) from None
    if not low < high:
        raise DataError(f"--{option} {text!r}: the first number must be below the second")
    return low, high


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Read whole numbers separated by commas, sorted, each once."""
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise DataError(
            f"{option} {text!r}: write whole numbers separated by commas, as 1,3,5"
        ) from None


def require_writable(folder: Path | None) -> None:
    """Refuse a report folder that cannot be written before the work, not after it."""
    if folder is None:
        return
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        within = "" if existing == folder else f": {existing}"
        raise DataError(f"--report {folder}{within} is a file; name a folder")
    _check_access(f"--report {folder}", existing)


def require_writable_file(option: str, path: Path | str | None) -> None:
    """Refuse an output file that cannot be written before the work, not after it."""
    if path in (None, "-"):
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(f"--{option} {path} is a folder; name a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise DataError(f"--{option} {path}: folder {folder} does not exist")
    _check_access(f"--{option} {path}", folder)


def _check_access(given: str, folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise DataError(f"{given}: {folder} is not writable")


# Messages of functions in the words of the command line.


@contextmanager
def as_options(words: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of arguments in the message of any data error raised inside.

    Parameters
    ----------
    words : mapping
        What a message says, to what is said here.
    """
    try:
        yield
    except DataError as error:
        told = str(error)
        for argument, option in words.items():
            told = told.replace(argument, option)
        raise type(error)(told) from error


# Options that several commands share: fields of one dataclass, which a command takes whole.


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of its dataclass parameters.

    Typer reads options off a signature, so without this each command would have to declare, and
    pass on, every option of the set; one left out somewhere would go unnoticed.

    Parameters
    ----------
    command : callable
        Annotated; parameters whose type is a dataclass stand for the fields, in their order.
    """
    hints = get_type_hints(command, include_extras=True)
    sets: dict[str, tuple[type, _Options]] = {}
    shown: list[inspect.Parameter] = []
    for given in inspect.signature(command).parameters.values():
        kind = hints[given.name]
        if not is_dataclass(kind) or not isinstance(kind, type):
            shown.append(given.replace(annotation=kind))
            continue
        sets[given.name] = kind, _options_of(kind)
        shown.extend(option for option, _ in sets[given.name][1].values())

    @wraps(command)
    def run(**values: Any) -> None:  # noqa: ANN401 - of any option
        whole = {}
        for name, (kind, options) in sets.items():
            read = {field: read(values.pop(one.name)) for field, (one, read) in options.items()}
            words = {
                field: f"--{one.name.replace('_', '-')}" for field, (one, _) in options.items()
            }
            with _named_as_options(words):
                whole[name] = kind(**read)
        command(**values, **whole)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


_Read = Callable[[Any], Any]
_Options = dict[str, tuple[inspect.Parameter, _Read]]


def _options_of(kind: type) -> _Options:
    """Return the option of each field, and how its value is read.

    Settings that a program can make too (:func:`~rag_sourcebias.core.settings.setting`) say what
    they are; one without a help page's words is no option.
    """
    hints, found = get_type_hints(kind, include_extras=True), {}
    told = any(field.metadata for field in fields(kind))
    for field in fields(kind):
        if told and field.metadata:
            found[field.name] = _of_setting(field, hints[field.name])
        elif not told:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            found[field.name] = _option(field.name, default, hints[field.name]), _as_it_is
    return found


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:  # noqa: ANN401
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _as_it_is(value: Any) -> Any:  # noqa: ANN401
    return value


def _of_setting(field: Field[Any], hint: Any) -> tuple[inspect.Parameter, _Read]:  # noqa: ANN401
    told = field.metadata
    option = told["option"] or field.name.replace("_", "-")
    default: Any = field.default
    shown: str | bool = True
    read: _Read = _as_it_is
    if get_origin(hint) is Literal:
        read, hint = partial(choice, option, allowed=get_args(hint)), str
    elif get_origin(hint) is tuple and get_args(hint)[0] is int:
        read, hint, default = partial(whole_numbers, option), str, ",".join(map(str, default))
    elif get_origin(hint) is tuple:
        read = partial(_several, default)
        hint, shown, default = list[str] | None, ",".join(default), None
    names = [f"--{option}"] * (default is False)  # there is no --no- of what is off
    annotation = Annotated[
        hint,
        typer.Option(
            *names,
            help=told["help"],
            rich_help_panel=told["panel"],
            min=told["least"],
            metavar=told["metavar"],
            show_default=shown,
        ),
    ]
    return _option(option.replace("-", "_"), default, annotation), read


def _several(default: tuple[str, ...], given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return default
    return tuple(part.strip() for part in ",".join(given).split(",") if part.strip())


@contextmanager
def _named_as_options(words: Mapping[str, str]) -> Iterator[None]:
    """Begin the message of a data error with an option where it begins with a field."""
    try:
        yield
    except DataError as error:
        first, blank, rest = str(error).partition(" ")
        raise type(error)(words.get(first, first) + blank + rest) from error


def used(ctx: Any, kind: type) -> list[str]:  # noqa: ANN401 - of click, or typer's copy of it
    """Return the options of a dataclass that stand on the command line."""
    return [
        f"--{field.name.replace('_', '-')}"
        for field in fields(kind)
        if (found := ctx.get_parameter_source(field.name)) is not None
        and found.name == "COMMANDLINE"
    ]


# What becomes of a finished report: its figures, a table, and the pages that were asked for.


_texts: ContextVar[bool] = ContextVar("texts", default=True)
_TEXTS = Annotated[
    bool,
    typer.Option(
        "--texts/--no-texts",
        help="Keep the texts of the few cases that matter most in the report; without them it "
        "holds ids and numbers.",
    ),
]


def writes_report(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option ``--no-texts``, which :func:`deliver` heeds."""
    given = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    shown = [
        one.replace(annotation=hints.get(one.name, one.annotation), kind=one.KEYWORD_ONLY)
        for one in given.parameters.values()
    ]
    option = inspect.Parameter(
        "texts", inspect.Parameter.KEYWORD_ONLY, default=True, annotation=_TEXTS
    )
    at = next((i + 1 for i, one in enumerate(shown) if one.name in ("report", "to")), len(shown))
    shown.insert(at, option)

    @wraps(command)
    def run(*, texts: bool = True, **values: Any) -> None:  # noqa: ANN401 - of any option
        token = _texts.set(texts)
        try:
            command(**values)
        finally:
            _texts.reset(token)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


INTERRUPTED = 130


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
    report = report if _texts.get() else without_texts(report)
    try:
        file = write_figures(report, folder)
    except SourceBiasError:
        print_it()  # then the table is all there is
        raise
    try:
        if _texts.get():  # they quote what texts hold
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
    if left is not None:
        raise left


def say_written(kind: str, path: Path | str) -> None:
    """Say which file was written."""
    tell(f"{kind}: {path}")
