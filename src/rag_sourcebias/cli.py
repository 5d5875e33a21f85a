"""The application, and what every command does about errors and interruption."""

import io
import logging
import os
import re
import sys
from collections.abc import Callable
from typing import ClassVar

import typer
from rich.logging import RichHandler

from rag_sourcebias._version import __version__
from rag_sourcebias.answers.command import answers
from rag_sourcebias.core.errors import SettingError, SourceBiasError
from rag_sourcebias.debias.command import debias
from rag_sourcebias.explain.command import explain
from rag_sourcebias.judged.command import audit, grade, interval, labels
from rag_sourcebias.monitor.command import replay, rotate, serve
from rag_sourcebias.pairs.command import annotate, check_pairs
from rag_sourcebias.pairs.rewrite_command import rewrite
from rag_sourcebias.source.command import app as shown
from rag_sourcebias.source.command import source
from rag_sourcebias.start import start
from rag_sourcebias.style.command import style
from rag_sourcebias.tagging.command import apply, fit
from rag_sourcebias.tagging.verify_command import verify
from rag_sourcebias.terminal.console import INTERRUPTED, err
from rag_sourcebias.terminal.options import Command, Group, leaves

# Arguments of functions, which a message here names as options.
_ARGUMENT = re.compile(r"\b([a-z]+)=(?:…|$)")


class _Root(Group):
    questions: ClassVar = {
        "Where do I begin?": ("start",),
        "What do rankings and scores favour besides relevance?": (
            "audit source",
            "audit app",
            "audit style",
            "audit answers",
            "explain",
        ),
        "How far can I trust a score that a judge gave?": (
            "interval",
            "labels",
            "judge grade",
            "judge audit",
        ),
        "What does a model's rewriting do to my documents?": ("rewrite", "check-pairs", "annotate"),
        "How do I make a model treat sources alike?": ("debias",),
        "Which sources are shown in production?": (
            "monitor serve",
            "monitor replay",
            "monitor rotate",
        ),
        "Who wrote the documents of my store?": ("tag fit", "tag verify", "tag apply"),
    }


app = typer.Typer(
    name="rag-sourcebias",
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Does your retriever favour some sources for reasons other than relevance?

    Begin on a bundled sample, or with what you have:

        rag-sourcebias start                  what can be tried without data
        rag-sourcebias start my-data          look at a file, folder, store or log
        rag-sourcebias audit source --sample  one of the commands below
    """,
)
_GROUPS: dict[str, tuple[str, tuple[Callable[..., None], ...]]] = {
    "audit": (
        "Measure what rankings and scores favour besides relevance.",
        (source, shown, style, answers),
    ),
    "judge": ("Grade with a model, and hold a judge against people.", (grade, audit)),
    "monitor": (
        """Watch which sources and styles are shown in production.

        Your application keeps a log (one line, see the README); these commands read it or
        move it aside, from another process and at any time.
        """,
        (serve, replay, rotate),
    ),
    "tag": ("Tag documents by source and style.", (fit, verify, apply)),
}
_COMMANDS: tuple[Callable[..., None], ...] = (
    start,
    explain,
    interval,
    labels,
    rewrite,
    check_pairs,
    annotate,
    debias,
)
for command in _COMMANDS:
    app.command(cls=Command)(command)
for name, (text, commands) in _GROUPS.items():
    group = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None, help=text)
    for one in commands:
        group.command(cls=Command)(one)
    app.add_typer(group, name=name)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"rag-sourcebias {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(  # noqa: ARG001 - eager option
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Show what is logged."),
) -> None:
    logger = logging.getLogger("rag_sourcebias")
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    logger.handlers = [RichHandler(console=err, show_path=False, show_time=False)]


def _told(error: SourceBiasError) -> str:
    """Return the message, with a setting as the option that sets it."""
    if isinstance(error, SettingError):
        commands = leaves(typer.main.get_command(app)).values()
        option = f"--{error.setting.replace('_', '-')}"
        if any(option in param.opts for command in commands for param in command.params):
            return f"{option} {error.problem}"
    return _ARGUMENT.sub(lambda found: f"--{found[1]} <name>", str(error))


def main() -> None:
    """Run the command line; the entry point of the console script."""
    # Model libraries draw bars of their own while loading, across ours.
    os.environ.setdefault("TQDM_DISABLE", "1")
    # A result is not lost to a terminal, or a file, that cannot hold a minus sign.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        # Outside standalone mode typer returns the exit code of an Exit instead of raising it,
        # and turns Ctrl-C into one with code 130.
        code = app(prog_name=app.info.name, standalone_mode=False)
    except SourceBiasError as error:
        err.print("[bold red]error:[/]", end=" ")
        err.print(
            _told(error),
            markup=False,
            soft_wrap=True,
        )
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        # Only usage errors of the command line itself carry a renderer and an exit code.
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        if near := getattr(error, "possibilities", None):
            error.message += f". Did you mean {' or '.join(sorted(near)[:2])}?"  # type: ignore[attr-defined]
            error.possibilities = None  # type: ignore[attr-defined]
        error.show()
        sys.exit(error.exit_code)
    if code == INTERRUPTED:
        err.print(
            "\ninterrupted: no further result was written; what was encoded, scored or answered is "
            "cached, so the same command goes on where it stopped",
            soft_wrap=True,
        )
    sys.exit(code if isinstance(code, int) else 0)
