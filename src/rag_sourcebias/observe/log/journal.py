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
_SURELY_ENDED = 600.0  # seconds without a line, where the file system has no locks to ask
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
        self.end()  # the parent's, which stays open there
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
            if self._file is None or self._size > _FILE_BYTES or time.monotonic() > self._until:
                self.end()
                self._begin()
            elif os.fstat(self._file).st_nlink == 0:
                self._restore()
            whole = line + b"\n" if self._size else self._header + line + b"\n"
            self._write(whole)
            self._size += len(whole)
            self.n_bytes += len(whole)

    def _write(self, whole: bytes) -> None:
        """Append bytes; a file of which the last line is torn is ended, one without lines removed.

        Half a line is never read, and the next file begins with its first line again.
        """
        assert self._file is not None  # the caller has opened it
        n = 0
        try:
            n = os.write(self._file, whole)
            if n < len(whole):
                raise OSError(errno.ENOSPC, "only a part could be written")
        except OSError:
            if not self._size:
                self._path.unlink(missing_ok=True)
            if n or not self._size:
                self.end()
            raise

    def _begin(self) -> None:
        name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        self._path = self._folder / name
        self._size = 0
        self._file = self._created()
        self._until = time.monotonic() + _FILE_SECONDS

    def _created(self) -> int:
        """Create the file and lock it, which tells others that a process writes here."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND
        create_folder(self._folder, self._file_mode)
        try:
            file = os.open(self._path, flags, self._file_mode)
        except FileNotFoundError:  # a process that ended took the empty folder away
            create_folder(self._folder, self._file_mode)
            file = os.open(self._path, flags, self._file_mode)
        if hasattr(os, "fchmod"):  # whatever the umask says
            os.fchmod(file, self._file_mode)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def _restore(self) -> None:
        """Write the file again under its name: somebody removed it, perhaps before it was read.

        The log knows by the name how far it was taken in.
        """
        assert self._file is not None  # the caller has seen to it
        there = os.pread(self._file, self._size, 0)
        file = self._created()
        if os.write(file, there) != len(there):
            os.close(file)
            self._path.unlink()
            raise OSError(errno.ENOSPC, "a journal that was removed could not be written again")
        os.close(self._file)
        self._file = file

    def keep(self) -> None:
        """Write the file again where it is gone, and end one that is old.

        Raises
        ------
        OSError
            If it cannot be written again now.
        """
        with self._lock:
            if self._file is None:
                return
            if not self._path.exists():  # moved away with its folder, perhaps
                self._restore()
            elif time.monotonic() > self._until:
                self.end()

    def end(self) -> None:
        """End the current file; the next line begins another one."""
        with self._lock:
            file = self._file
            self._file = None
            if file is not None:
                with suppress(OSError):
                    os.close(file)


def is_written(path: Path) -> bool:
    """Whether a process appends to a journal; where nothing can tell, whether one lately did.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    if fcntl is None:  # an open file cannot be removed there
        return False
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return time.time() - os.fstat(file).st_mtime < _SURELY_ENDED
    finally:
        os.close(file)
    return False


@contextmanager
def taking_turns(log: Path, patience: float) -> Iterator[bool]:
    """Let one process at a time work on a log; False where the file system has no locks for it.

    What is locked is the folder of the log: it is there before any file of the log is.

    Raises
    ------
    BlockingIOError
        If another one does for longer than ``patience`` seconds.
    """
    if fcntl is None:  # SQLite's own locks keep batches apart
        yield True
        return
    last = time.monotonic() + patience
    file = os.open(log.parent, os.O_RDONLY)
    try:
        while (turn := _turn(file)) is None:
            if time.monotonic() > last:
                raise BlockingIOError(errno.EAGAIN, "another process works on the log")
            time.sleep(_LOOK_AGAIN)
        yield turn
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold the file too
        os.close(file)


def _turn(file: int) -> bool | None:
    """Lock a folder: None while another process holds it, False where nothing can be locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:
        return False
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
            found = stream.read(most) + stream.readline()
    except FileNotFoundError:  # taken in and removed meanwhile
        return None
    end = found.rfind(b"\n") + 1
    if not end or not header.endswith(b"\n"):
        return None
    return Lines(path.name, header, found[:end].split(b"\n"), start + end)


def taken_in(path: Path) -> None:
    """Have the minute begin after which a journal may go."""
    with suppress(OSError):  # of another user
        os.utime(path)


def remove_if_ended(path: Path, position: int, *, kept_seconds: float) -> None:
    """Remove a journal without a writer that was taken in whole, so many seconds ago."""
    with suppress(OSError):
        is_old = time.time() - path.stat().st_mtime >= kept_seconds
        if is_old and not is_written(path) and unread(path, position, most=0) is None:
            path.unlink()


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
