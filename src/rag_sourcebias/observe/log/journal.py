"""A journal per process: what was retrieved is in the file system before the call returns."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rag_sourcebias.core.private import PRIVATE, create_folder
from rag_sourcebias.observe.events import Locked

try:
    import fcntl
except ImportError:  # on Windows: an open file cannot be removed there, which is what locks are for
    fcntl = None  # type: ignore[assignment]

# A file of a journal is ended after so much, so that what is taken in can be removed.
_FILE_SECONDS = 60.0
_FILE_BYTES = 16_000_000
_LOOK_AGAIN = 0.01  # seconds, while another process takes journals in
TORN = b"\x18"
"""Ends a line of which only a part could be written: it was never acknowledged."""
KEPT_SECONDS = 60.0
"""How long lines stay after they were taken in.

An operator may copy a log and remove or empty it: what was written between the two is in neither
file, and is then taken in once more.
"""


def folder_of(log: Path) -> Path:
    """Return the folder of the journals of a log."""
    return log.with_name(f"{log.name}.journals")


class Journal(Locked):
    """The journal of this process: one append per retrieval, which outlives the process.

    A line that ``append`` has written is in the hands of the operating system: whatever ends the
    process, ``kill -9`` included, loses none. A power cut may.

    Parameters
    ----------
    log : Path
        The log beside which the folder of journals lies.
    header : bytes
        First line of each file: how the log is to be written.
    most_bytes : int
        Bytes of this process that may wait to be taken in.
    """

    def __init__(
        self, log: Path, header: bytes, *, most_bytes: int, file_mode: int = PRIVATE
    ) -> None:
        self._folder = folder_of(log)
        self._header = header + b"\n"
        self._most_bytes, self._file_mode = most_bytes, file_mode
        self._file: int | None = None
        super().__init__()

    def _after_fork(self) -> None:
        super()._after_fork()
        self._close()  # the parent's, which stays open there
        self._path: Path | None = None
        self._files: list[Path] = []  # of this process, the current one last
        self._torn = b""
        self.n_bytes = 0  # appended by this process
        self.n_taken = 0  # of these, taken in

    def append(self, line: bytes) -> None:
        """Write one line.

        Raises
        ------
        OSError
            If it is not in the file.
        """
        with self._lock:
            if self.n_bytes - self.n_taken > self._most_bytes:
                raise OSError(errno.EFBIG, "too much waits to be taken into the log")
            if self._file is not None and self._is_ended():
                self._close()
            whole = self._torn + line + b"\n"
            file = self._open() if self._file is None else self._file
            if os.write(file, whole) != len(whole):
                self._torn = TORN + b"\n"  # ends the half of a line that is there now
                raise OSError(errno.ENOSPC, "only a part could be written")
            self._torn = b""
            self._size += len(whole)
            self.n_bytes += len(whole)

    def _is_ended(self) -> bool:
        """Whether the current file is large, old, or somebody removed it."""
        if self._size > _FILE_BYTES or time.monotonic() > self._until:
            return True
        return os.fstat(self._file).st_nlink == 0 if self._file is not None else True

    def _open(self) -> int:
        create_folder(self._folder, self._file_mode)
        name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        path = self._folder / name
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, self._file_mode)
        self._file = file
        self._until = time.monotonic() + _FILE_SECONDS
        self._size = 0
        self._files.append(path)
        lock(file)  # tells others that a process writes here
        if hasattr(os, "fchmod"):  # whatever the umask says
            os.fchmod(file, self._file_mode)
        if os.write(file, self._header) != len(self._header):
            self._close()
            raise OSError(errno.ENOSPC, "a journal could not be begun")
        return file

    def _close(self) -> None:
        file = self._file
        self._file = None
        if file is not None:
            with suppress(OSError):
                os.close(file)

    def end(self) -> list[Path]:
        """End the current file and return all files of this process."""
        with self._lock:
            self._close()
            files = self._files
            self._files = []
            return files


def lock(file: int) -> bool:
    """Lock an open file until it is closed; False where another holds it, or nothing can."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a network file system without locks
        return False
    return True


@contextmanager
def taking_turns(log: Path, patience: float) -> Iterator[None]:
    """Let one process at a time take journals in, where the file system has locks.

    Raises
    ------
    OSError
        If another one does for longer than ``patience`` seconds.
    """
    folder = folder_of(log)
    if fcntl is None or not folder.is_dir():
        yield
        return
    last = time.monotonic() + patience
    file = os.open(folder, os.O_RDONLY)
    try:
        while not _locked(file):
            if time.monotonic() > last:
                raise OSError(errno.EAGAIN, "another process takes the journals in")
            time.sleep(_LOOK_AGAIN)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold the file too
        os.close(file)


def _locked(file: int) -> bool:
    """Lock an open file if nobody holds it; True as well where the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # SQLite's own lock, or none at all, keeps batches apart there
        return True
    return True


class Lines(NamedTuple):
    """Lines of a journal that were not taken in yet."""

    name: str
    header: bytes
    lines: list[bytes]
    end: int
    """Where the next ones begin."""


def journals_of(log: Path) -> list[Path]:
    """Return the files of all journals of a log, the oldest first."""
    return sorted(folder_of(log).glob("*.jsonl"))


def unread(path: Path, position: int, *, most: int) -> Lines | None:
    """Return the whole lines behind a position, about ``most`` bytes; None where there are none."""
    try:
        if path.stat().st_size <= position:
            return None
        with path.open("rb") as stream:
            header = stream.readline()
            start = max(position, len(header))
            stream.seek(start)
            found = stream.read(most)
    except FileNotFoundError:  # taken in and removed meanwhile
        return None
    end = found.rfind(b"\n") + 1
    if not end or not header.endswith(b"\n"):
        return None
    return Lines(path.name, header, found[:end].split(b"\n"), start + end)


def remove_if_ended(path: Path, position: int) -> None:
    """Remove a journal that is taken in whole, was not written for a minute, and has no writer."""
    with suppress(OSError):
        found = path.stat()
        if found.st_size > position or time.time() - found.st_mtime < KEPT_SECONDS:
            return
        file = os.open(path, os.O_RDONLY)
        try:
            if lock(file) and os.fstat(file).st_size <= position:
                path.unlink()
        finally:
            os.close(file)


def blank(path: Path, is_meant: Callable[[bytes], bool]) -> int:
    """Overwrite the lines that are meant with spaces; return how many there were.

    A writer only ever appends, so that what is there can be overwritten while it goes on.
    """
    n = 0
    with path.open("r+b") as stream:
        while line := stream.readline():
            if line.endswith(b"\n") and is_meant(line):
                end = stream.tell()
                stream.seek(end - len(line))
                stream.write(b" " * (len(line) - 1))
                stream.seek(end)
                n += 1
    return n
