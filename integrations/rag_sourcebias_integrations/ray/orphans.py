"""End what Ray leaves behind when the process that started it is killed.

Ray's own processes notice that within seconds, but its two agents first wait a minute for a server
that has gone. A process that does nothing but wait for that notices at once; it runs this file,
and imports nothing else.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "RAG_SOURCEBIAS_RAY"  # a variable of the processes that are watched
_START = 10.0  # seconds for which new processes may still be started
_LOOKS = 20  # at a process that is not marked, half a second apart


class Watch:
    """A process that ends all marked ones, and theirs, when this process is gone or says so.

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
        process = self._process
        self._process = None
        if process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                # Closing the pipe says nothing while a process that was forked here has it, too.
                process.communicate(b"end", timeout=2 * _START)


class _Ours:
    """Processes that were started with the mark, and what these started.

    A process may write its title over its environment, as Ray's agents do: then only the process
    that started it tells whose it is, and that only while both live.
    """

    def __init__(self, mark: str) -> None:
        self._wanted = f"{MARK}={mark}".encode()
        self._found: dict[int, bytes] = {}  # when each began
        self._looks: dict[int, int] = {}  # at others, which may not have their environment yet

    def look(self) -> list[int]:
        """Return those that live."""
        there = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208
        self._looks = {pid: looks for pid, looks in self._looks.items() if pid in there}
        for pid in sorted(there - {os.getpid()}):
            if self._looks.get(pid, 0) < _LOOKS:
                self._at(pid)
        self._found = {pid: began for pid, began in self._found.items() if _began(pid)[1] == began}
        return list(self._found)

    def _at(self, pid: int) -> None:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                marked = self._wanted in file.read().split(b"\0")
        except OSError:  # gone, or of another user
            marked = False
        parent, began = _began(pid)
        if marked or parent in self._found:
            self._found[pid] = began
        self._looks[pid] = self._looks.get(pid, 0) + 1


def _began(pid: int) -> tuple[int, bytes]:
    """Return what started a process, and when; nothing of one that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, b""
    return (0, b"") if fields[0] in b"XZ" else (int(fields[1]), fields[19])


def _end(ours: _Ours) -> None:
    last = time.monotonic() + _START
    while (left := ours.look()) and time.monotonic() < last:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    _, mark, started_by = sys.argv
    ours = _Ours(mark)
    while os.getppid() == int(started_by) and not select.select([sys.stdin], [], [], 0.5)[0]:
        ours.look()
    _end(ours)
