"""The application, and what every command does about errors and interruption."""

import io
import logging
import os
import re
import sys

import typer
from rich.logging import RichHandler

from rag_sourcebias._version import __version__
from rag_sourcebias.answers.command import answers
from rag_sourcebias.cli import reports
from rag_sourcebias.cli.console import INTERRUPTED, err
from rag_sourcebias.core.errors import SourceBiasError
from rag_sourcebias.debias.command import app as debias
from rag_sourcebias.explain.command import explain
from rag_sourcebias.judged.command import interval
from rag_sourcebias.judged.judge_command import app as judge
from rag_sourcebias.judged.labels_command import app as labels
from rag_sourcebias.monitor.command import app as monitor
from rag_sourcebias.pairs import command as pairs
from rag_sourcebias.pairs.rewrite_command import rewrite
from rag_sourcebias.source.command import app as audit
from rag_sourcebias.style.command import style
from rag_sourcebias.tagging.command import app as tag

# Arguments of functions, which a message here names as options.
_ARGUMENT = re.compile(r"\b(id|human|judge|group|cluster|stratum|metric|manifest)=(?:…|$)")

app = typer.Typer(
    name="rag-sourcebias",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Does your retriever favour some sources for reasons other than relevance?

    Try it on the bundled sample:

        rag-sourcebias audit source --sample --retriever bm25 --report report

    Then on your own data: a BEIR folder with one corpus/<source>.jsonl per source, or a TREC run
    with qrels and a tags file.

    How far can you trust a score that an LLM judge gave?

        rag-sourcebias interval --sample

    A model that does not care who wrote a text:

        rag-sourcebias debias project my-data --encoder all-MiniLM-L6-v2 --output my-model

    Who gets the ranks in production, now?

        rag-sourcebias monitor serve retrievals.db
    """,
)
audit.command()(style)
audit.command()(answers)
_GROUPS = {
    "annotate": pairs.app,
    "audit": audit,
    "debias": debias,
    "judge": judge,
    "labels": labels,
    "monitor": monitor,
    "report": reports.app,
    "tag": tag,
}
for name, group in _GROUPS.items():
    app.add_typer(group, name=name)
for command in (pairs.check_pairs, explain, interval, rewrite, reports.datasets):
    app.command()(command)


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
        code = app(standalone_mode=False)
    except SourceBiasError as error:
        err.print(f"[bold red]error:[/] {type(error).__name__}", highlight=False)
        err.print(
            _ARGUMENT.sub(lambda found: f"--{found[1]} <name>", str(error)),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        # Only usage errors of the command line itself carry a renderer and an exit code.
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        sys.exit(error.exit_code)
    if code == INTERRUPTED:
        err.print(
            "\ninterrupted: no further result was written; what was encoded, scored or answered is "
            "cached, so the same command goes on where it stopped",
            soft_wrap=True,
        )
    sys.exit(code if isinstance(code, int) else 0)
