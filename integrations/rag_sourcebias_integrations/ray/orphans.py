"""End what Ray leaves behind when the process that started it is killed.

Ray's own processes notice that within seconds, but its two agents first wait a minute for a server
that has gone. A process that does nothing but wait for that notices at once; it runs this file,
and imports nothing else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["MARK", "Watch"]

MARK = "RAG_SOURCEBIAS_RAY"  # a variable of the processes that are watched
_PATIENCE = 10.0  # seconds for which new processes may still be started


class Watch:
    """A process that ends all marked ones as soon as this process is gone, or says so.

    Parameters
    ----------
    mark : str
        Value of the variable ``MARK`` in their environment.
    """

    def __init__(self, mark: str) -> None:
        self._process = None
        if Path("/proc/self/environ").exists():  # elsewhere Ray's agents end after their minute
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, mark, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what interrupts a terminal's processes must not reach it
            )

    def close(self) -> None:
        """End what is left, and the watch."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                # Closing the pipe says nothing while a process that was forked here has it, too.
                process.communicate(b"end", timeout=2 * _PATIENCE)


def _marked(mark: str) -> list[int]:
    """Return the processes that were started with the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are needed
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:  # gone, or of another user
                continue
    return found


def _end(mark: str) -> None:
    last = time.monotonic() + _PATIENCE
    while (left := _marked(mark)) and time.monotonic() < last:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.05)


if __name__ == "__main__":
    _, watched, started_by = sys.argv
    while os.getppid() == int(started_by) and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    _end(watched)
