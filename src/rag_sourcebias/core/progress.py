"""How far a long job is, in lines of a log."""

import sys
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from time import monotonic
from typing import Self

from rag_sourcebias.core.errors import visible

LOG_SECONDS = 10.0
"""Between two lines: seldom enough for a log, often enough to see that a job lives."""


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


class Stages:
    """Lines about a job, one every few seconds: its stage, what is done, the time that is left.

    A job that is done before the first line is due says nothing. To be used in a ``with`` block.

    Parameters
    ----------
    write : callable, optional
        Takes a line; standard error by default.
    """

    def __init__(self, write: Callable[[str], None] = _to_stderr) -> None:
        self._write = write
        self._ended = Event()
        Stages.begin(self, "starting")

    def begin(self, description: str) -> None:
        """Begin the next stage."""
        self._stage = description
        self._began = monotonic()
        self._counted: tuple[float, int] | None = None
        self._done = 0
        self._total: int | None = None

    def advance(self, done: int, total: int | None) -> None:
        """Report progress within the stage."""
        if self._counted is None:  # what a cache held at once says nothing of the rest
            self._counted = monotonic(), done
        self._done, self._total = done, total

    @property
    def line(self) -> str:
        """What is known of the stage now."""
        said = f"{timedelta(seconds=int(monotonic() - self._began))} so far"
        if self._counted is None or self._total is None:
            return f"  {self._stage}: {said}"
        said = f"{self._done:,} of {self._total:,}, {said}"
        since, before = self._counted
        if self._done > before:
            seconds = (monotonic() - since) * (self._total - self._done) / (self._done - before)
            said += f", about {timedelta(seconds=round(seconds))} left"
        return f"  {self._stage}: {said}"

    def __enter__(self) -> Self:
        Thread(target=self._log, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _log(self) -> None:
        while not self._ended.wait(LOG_SECONDS):
            self._write(self.line)
