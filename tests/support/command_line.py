"""The command line as a user runs it: a subprocess, real files, real output."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_sourcebias.cli import main

COMMAND = [sys.executable, "-m", "rag_sourcebias"]
# A process started in the background of a shell has SIGINT ignored, and so have its children.
INTERRUPTIBLE = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from rag_sourcebias.cli import main; main()",
]
ENVIRONMENT = {"COLUMNS": "200", "NO_COLOR": "1"}


def run(
    *args: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env=os.environ | ENVIRONMENT | (env or {}),
    )


def inside(*args: str, cwd: Path) -> tuple[int, str, str]:
    """Run in this process, which is faster; returns exit code, output and messages."""
    output, messages = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["rag-sourcebias", *args]
    try:
        with (
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(messages),
        ):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
    assert isinstance(code, int)
    return code, output.getvalue(), messages.getvalue()


def succeed(*args: str, cwd: Path) -> str:
    """Return what a command that must succeed printed; white space as one blank."""
    code, output, messages = inside(*args, cwd=cwd)
    assert code == 0, messages
    return output if "-" in args else " ".join(output.split())


def refused(*args: str, cwd: Path) -> str:
    """Return the message of a command that must be refused; white space as one blank."""
    code, output, messages = inside(*args, cwd=cwd)
    assert code == 2, (output, messages)
    return " ".join(messages.split())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
