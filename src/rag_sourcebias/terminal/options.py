"""Options, declared once and checked, and the pages of help that list them."""

import inspect
import os
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from rag_sourcebias.core.errors import DataError, SettingError, require_one_of, setting
from rag_sourcebias.intake.tables import read_clusters
from rag_sourcebias.llm.ask import Prices
from rag_sourcebias.report.render import require_table

# What commands check before they start.


def choice(option: str, value: str, allowed: Sequence[str]) -> Any:  # noqa: ANN401 - a literal
    """Return the value if it is one of those allowed, and name them otherwise."""
    require_one_of(f"--{option}", value, allowed)
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
        raise DataError(told) from error


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
            try:
                whole[name] = kind(**read)
            except SettingError as error:
                named = error.setting
                if named in options:
                    named = f"--{options[named][0].name.replace('_', '-')}"
                raise DataError(f"{named} {error.problem}") from error
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
            panel = getattr(kind, "panel", _STATISTICS)
            found[field.name] = _of_setting(field, hints[field.name], panel)
        elif not told:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            found[field.name] = _option(field.name, default, hints[field.name]), _as_it_is
    return found


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:  # noqa: ANN401
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _as_it_is(value: Any) -> Any:  # noqa: ANN401
    return value


def _of_setting(field: Field[Any], hint: Any, panel: str) -> tuple[inspect.Parameter, _Read]:  # noqa: ANN401
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
            rich_help_panel=told["panel"] or panel,
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


def used(ctx: Any, kind: type) -> list[str]:  # noqa: ANN401 - of click, or typer's copy of it
    """Return the options of a dataclass that stand on the command line."""
    names = [field.name for field in fields(kind) if _stands(ctx, field.name)]
    return [f"--{name.replace('_', '-')}" for name in names]


def _stands(ctx: Any, name: str) -> bool:  # noqa: ANN401
    found = ctx.get_parameter_source(name)
    return found is not None and found.name == "COMMANDLINE"


# They say where results go, or make something else of the exit code.
_RESULTS = frozenset({"report", "table", "json", "output", "fail_above"})


def typed(ctx: Any, *names: str) -> str:  # noqa: ANN401
    """Return what stands on the command line: these options, or all but where results go."""
    words: list[str] = []
    for param in ctx.command.params:
        value, name = ctx.params[param.name], param.name
        if not _stands(ctx, name) or (name not in names if names else name in _RESULTS):
            continue
        if isinstance(value, bool):
            words.append((param.opts if value else param.secondary_opts)[0])
            continue
        for one in value if isinstance(value, list) else [value]:
            if param.param_type_name == "option":
                words.append(param.opts[0])
            words.append(f"./{one}" if isinstance(one, Path) and str(one)[0] == "-" else str(one))
    return shlex.join(words)


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


def _texts(ctx: typer.Context, kept: bool | None) -> bool | None:
    """Keep the texts of bundled data, unless told otherwise."""
    if kept is None and (ctx.params.get("sample") or ctx.params.get("dataset")):
        return True
    return kept


Texts = Annotated[
    bool | None,
    typer.Option(
        "--texts/--no-texts",
        callback=_texts,
        help="Keep the texts of the few cases that matter most in the report, not ids and numbers "
        "alone. By default check-pairs and explain keep them, other commands those of bundled "
        "samples.",
        show_default=False,
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


@dataclass(frozen=True, kw_only=True)
class ClusterFile:
    """Where the cluster of each query stands, as options of a command."""

    cluster_file: Path | None = setting(
        None,
        "TSV, CSV or JSON lines with query_id and cluster: topic, paraphrase group or user "
        "session. Queries of one cluster may depend on one another.",
    )
    cluster: str = setting("cluster", "Column of the cluster in it.")
    query: str | None = setting(None, "Column of the query in it.")

    def read(self) -> dict[str, str] | None:
        """Read the clusters; None where no file is named."""
        if self.cluster_file is not None:
            return read_clusters(self.cluster_file, query=self.query, cluster=self.cluster)
        if self.query or self.cluster != "cluster":
            raise DataError("--cluster and --query are columns of --cluster-file")
        return None


_WIDEST, _LABEL = 100, 24
_KINDS = {"bool": "", "int": "N", "float": "X", "path": "PATH", "": "TEXT"}  # the first that fits
_MARKUP = re.compile(r"\[/?(?:bold)?\]")


def example(command: str, width: int) -> str:
    """Return a command line in a shell's own form, continued at options where it is too long."""
    command = command.strip()
    if "  " in command:  # laid out by hand
        return f"  {command}"
    parts = re.split(r" (?=-)", command)
    lines = [f"  {parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {part}")
    return "\n".join(lines)


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Fill prose; lines that are indented are commands, which stand together."""
    whole = _MARKUP.sub("", inspect.cleandoc(text)).replace("\\[", "[")
    commands: list[str] = []
    for paragraph in re.split(r"\n\s*\n", re.sub(r" *\\\n\s*", " ", whole)):
        if paragraph.startswith("    "):
            commands += [example(line, width) for line in paragraph.splitlines()]
            continue
        if commands:
            yield "\n".join(commands)
            commands = []
        yield textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False)
    if commands:
        yield "\n".join(commands)


def rows(pairs: list[tuple[str, str]], width: int, *, widest: int = _LABEL) -> str:
    """Return labels with their texts beside them, or below where a label is long."""
    room = min(widest, max(len(label) for label, _ in pairs)) + 4
    lines = []
    for label, text in pairs:
        head = f"  {label}".ljust(room)
        filled = textwrap.wrap(text, width - room, break_on_hyphens=False) or [""]
        if len(head) > room or head[-1] != " ":
            lines.append(head)
            head = " " * room
        lines.append(f"{head}{filled[0]}".rstrip())
        lines += [" " * room + line for line in filled[1:]]
    return "\n".join(lines)


def _label(param: Any, ctx: Any) -> str:  # noqa: ANN401 - of click, or of typer's copy of it
    # typer 0.12 has click's types, 0.29 its own
    kind = param.type.name if hasattr(param, "type") else param.display_type(ctx)
    value = param.metavar or next(_KINDS[word] for word in _KINDS if word in kind.lower())
    if param.param_type_name == "argument":
        named = param.metavar or param.name.upper()
        return f"{named}..." if param.nargs == -1 and not named.endswith(("…", "...")) else named
    names = "/".join([", ".join(sorted(param.opts, key=len)), *param.secondary_opts])
    return names if param.is_flag else f"{names} {value}".rstrip()


def _explained(param: Any) -> str:  # noqa: ANN401
    text = (getattr(param, "help", None) or "").replace("\\[", "[")
    default, shown = param.default, getattr(param, "show_default", True)
    known = isinstance(default, int | float | str | Path) and default is not False
    if param.required:
        return f"{text} [required]".strip()
    if isinstance(shown, str):
        return f"{text} [default: {shown}]"
    if not shown or not known or default == "" or "[default" in text:
        return text
    said = "on" if default is True else f"{default:g}" if isinstance(default, float) else default
    return f"{text} [default: {said}]".strip()


def _panels(command: Any, ctx: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:  # noqa: ANN401
    found: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for param in command.get_params(ctx):
        if getattr(param, "hidden", False):
            continue
        usual = "Arguments" if param.param_type_name == "argument" else "Options"
        panel = getattr(param, "rich_help_panel", None) or usual
        found.setdefault(panel, []).append((_label(param, ctx), _explained(param)))
    last = found.pop("Options", [])
    yield from found.items()
    yield "Options", last


def _summary(command: Any) -> str:  # noqa: ANN401
    first = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))[0]
    return " ".join(first.split())


def leaves(group: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: ANN401
    """Return every command that can be run, under its whole name."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        whole = (*path, name)
        found |= (
            leaves(command, whole) if hasattr(command, "commands") else {" ".join(whole): command}
        )
    return found


class _Page:
    """How a page of help is written."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        width = min(_WIDEST, get_terminal_size().columns)
        usage = " ".join(["Usage:", ctx.command_path, *self.pieces(ctx)])
        blocks = [
            textwrap.fill(usage, width, subsequent_indent="    "),
            *_paragraphs(self.help or "", width),  # type: ignore[attr-defined]
        ]
        for title, listed in (*self.listed(), *_panels(self, ctx)):
            if listed:
                end = "" if title.endswith("?") else ":"
                blocks.append(f"{title}{end}\n{rows(listed, width)}")
        formatter.write("\n\n".join(blocks) + "\n")

    def listed(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the commands of a group."""
        yield from ()

    def pieces(self, ctx: Any) -> Iterator[str]:  # noqa: ANN401
        """Yield what goes after the name of the command."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if param.param_type_name == "argument":
                label = _label(param, ctx)
                yield label if param.required else f"[{label}]"
        yield "COMMAND ..." if hasattr(self, "commands") else "[OPTIONS]"


class Command(_Page, TyperCommand):
    """A command with a plain page of help."""


class Group(_Page, TyperGroup):
    """A group of commands with a plain page of help, and a guess at what a wrong name meant."""

    questions: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def listed(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the commands by the question that they answer."""
        known = leaves(self)
        for question, names in (self.questions or {"Commands": tuple(known)}).items():
            yield question, [(name, _summary(known[name])) for name in names]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the command that is named, or fail with one that may have been meant."""
        name = args[0]
        if name not in self.commands:
            known = {*self.commands, *leaves(self)}
            ends = [one for one in leaves(self) if one.split()[-1] == name]
            near = ends or get_close_matches(name, sorted(known), n=2)
            if not near and Path(name).exists():
                near = [f"start {name}"]
            guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {name!r}.{guess}")
        return super().resolve_command(ctx, args)
