"""Help pages as plain text: whole words, and examples that can be copied, at any width."""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

_WIDEST, _LABEL = 100, 24
_KINDS = {"bool": "", "int": "N", "float": "X", "path": "PATH"}
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
    known = next((word for word in _KINDS if word in kind.lower()), "")
    value = param.metavar or (_KINDS[known] if known else "TEXT")
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
