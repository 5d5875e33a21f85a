"""The command line as a user runs it: a subprocess, real files, real output."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

COMMAND = [sys.executable, "-m", "rag_sourcebias"]
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


def succeed(*args: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return what a command that must succeed printed."""
    done = run(*args, cwd=cwd, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*args: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return the message of a command that must be refused, on one line."""
    done = run(*args, cwd=cwd, env=env)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
