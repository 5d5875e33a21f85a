"""Options: checks of their values, sets of them as one dataclass, those that many commands have."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from rag_sourcebias.core.errors import DataError, SettingError
from rag_sourcebias.llm.ask import Prices
from rag_sourcebias.report.files import require_table

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


def _table(path: Path | None) -> Path | None:
    """Return a file for a table if its name says a format and it can be written."""
    if path is not None:
        require_table(path)
        require_writable_file("table", path)
    return path


def _check_access(given: str, folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise DataError(f"{given}: {folder} is not writable")


def prices_of(
    price_in: float | None, price_out: float | None, most: float | None, *, currency: str = "USD"
) -> Prices | None:
    """Return the prices of tokens, None where there are none."""
    if price_in is None and price_out is None:
        if most is not None:
            raise DataError("--max-cost needs --price-in and --price-out")
        return None
    return Prices(prompt=price_in or 0.0, completion=price_out or 0.0, currency=currency)


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

    Settings that a program can make too (:func:`~rag_sourcebias.core.errors.setting`) say what
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
    """Name the option where a setting is refused."""
    try:
        yield
    except SettingError as error:
        raise DataError(f"{words.get(error.setting, error.setting)} {error.problem}") from error


def used(ctx: Any, kind: type) -> list[str]:  # noqa: ANN401 - of click, or typer's copy of it
    """Return the options of a dataclass that stand on the command line."""
    return [
        f"--{field.name.replace('_', '-')}"
        for field in fields(kind)
        if (found := ctx.get_parameter_source(field.name)) is not None
        and found.name == "COMMANDLINE"
    ]


# Options that many commands have, named once.


_DATA, _RETRIEVAL, _STATISTICS = "Data", "Retrieval", "Statistics"
_MODEL, _COST = "Model", "Cost"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per source "
        "(same _id = same document rewritten).",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: 160 human passages and their LLM rewrites.",
        rich_help_panel=_DATA,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        help="A bundled data set by name; rag-sourcebias start lists them.", rich_help_panel=_DATA
    ),
]
Split = Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)]
Depth = Annotated[int, typer.Option(min=1, help="Documents per query.", rich_help_panel=_RETRIEVAL)]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of cached embeddings and scores; an interrupted audit goes on from it.",
        rich_help_panel=_RETRIEVAL,
    ),
]
BaselineSource = Annotated[
    str,
    typer.Option(help="Source that the others are compared with.", rich_help_panel=_STATISTICS),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_STATISTICS)]
Seed = Annotated[int, typer.Option(rich_help_panel=_STATISTICS)]
JsonFile = Annotated[
    str | None, typer.Option("--json", help="Write the figures as JSON here; - prints them.")
]
ReportFolder = Annotated[
    Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
]
Texts = Annotated[
    bool,
    typer.Option(
        "--texts/--no-texts",
        help="Keep the texts of the few cases that matter most in the report; without them it "
        "holds ids and numbers.",
    ),
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--table",
        callback=_table,
        help="Write the main table of the report here, as the ending says: .csv, .md or .tex.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="OPENAI_BASE_URL",
        help="Server, such as http://localhost:8000/v1. The key comes from OPENAI_API_KEY, or user "
        "and password from the address: they are shown and stored nowhere.",
        rich_help_panel=_MODEL,
    ),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds a server may be silent.", rich_help_panel=_MODEL)
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests at once.", rich_help_panel=_MODEL)]

PriceIn = Annotated[
    float | None,
    typer.Option("--price-in", help="Price of a million tokens read.", rich_help_panel=_COST),
]
PriceOut = Annotated[
    float | None,
    typer.Option("--price-out", help="Price of a million tokens written.", rich_help_panel=_COST),
]
MaxCost = Annotated[
    float | None,
    typer.Option(help="Ask nothing more once this is spent.", rich_help_panel=_COST),
]
