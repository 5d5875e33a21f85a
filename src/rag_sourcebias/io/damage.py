"""Damaged files, and what is no file: one place that turns either into a sentence.

Two limits keep a small file from taking all memory, and can be raised by who trusts the file: they
are read from the environment, so that they reach worker processes as well.

``RAG_SOURCEBIAS_MAX_LINE_MB`` (64)
    Longest line of a text file, in megabytes.
``RAG_SOURCEBIAS_MAX_UNPACK_RATIO`` (200)
    Unpacked bytes for each byte of a file. Ordinary text packs 3 to 30 to 1. What unpacks to less
    than a megabyte does no harm and is read at any ratio.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_sourcebias.errors import DataError, UnsupportedVersionError

__all__ = [
    "HARMLESS_BYTES",
    "REMEDY",
    "check_file",
    "check_unpacked",
    "longest_line",
    "open_file",
    "reason_of",
    "refused_line",
    "sound",
]

PathLike = str | os.PathLike[str]

REMEDY = "take another copy, or write it again"
HARMLESS_BYTES = 1 << 20
_MEGABYTE = 1 << 20
_LINE = ("RAG_SOURCEBIAS_MAX_LINE_MB", 64.0)
_RATIO = ("RAG_SOURCEBIAS_MAX_UNPACK_RATIO", 200.0)
_LONGEST_REASON = 300
# Read by numpy, pyarrow, PyYAML, zipfile … a damaged file raises any of these. Not caught are
# AssertionError, NameError, ZeroDivisionError and the like, which are ours.
_BUILTIN = (
    OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError,
    MemoryError, RuntimeError, SyntaxError,
)  # fmt: skip
_ELSEWHERE = (
    ("zipfile", "BadZipFile"),
    ("zlib", "error"),
    ("lzma", "LZMAError"),
    ("struct", "error"),
    ("tokenize", "TokenError"),
    ("sqlite3", "Error"),
    ("csv", "Error"),
    ("pyarrow", "ArrowException"),
    ("yaml", "YAMLError"),
)


@contextmanager
def sound(
    path: PathLike,
    expected: str,
    *,
    remedy: str = REMEDY,
    names_file: bool = True,
) -> Iterator[None]:
    """Turn what a damaged file raises into one sentence: the file, the place and the remedy.

    Parameters
    ----------
    path : path
    expected : str
        What the file should be, such as ``"a complete Parquet file"``.
    remedy : str
    names_file : bool
        False where the code inside does not know the file: path and what is expected are then put
        before the messages of data errors as well.

    Raises
    ------
    DataError
        If the block raises what damage raises. Errors of this library pass.
    """
    try:
        yield
    except (DataError, UnsupportedVersionError) as error:
        if names_file:
            raise
        if isinstance(error, UnsupportedVersionError):
            raise UnsupportedVersionError(f"{os.fspath(path)}: {error}") from error
        text = _one_line(str(error))
        raise type(error)(f"{os.fspath(path)} is not {expected}: {text}") from error
    except Exception as error:
        if not isinstance(error, _kinds()):
            raise
        line = getattr(error, "lineno", None) if isinstance(error, ValueError) else None
        place = "" if line is None else f":{line}"
        raise DataError(
            f"{os.fspath(path)}{place} is not {expected} ({reason_of(error)}); {remedy}"
        ) from error


def _kinds() -> tuple[type[BaseException], ...]:
    """Return what damage raises; what is not imported cannot have been raised."""
    loaded = ((sys.modules.get(module), name) for module, name in _ELSEWHERE)
    return (*_BUILTIN, *(getattr(module, name) for module, name in loaded if module is not None))


def reason_of(error: BaseException) -> str:
    """Say on one line what went wrong; messages of libraries may have several, or none."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    words = _one_line(text)[:_LONGEST_REASON]
    return words if words and not isinstance(error, LookupError) else repr(error)[:_LONGEST_REASON]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def check_file(path: PathLike) -> os.stat_result:
    """Refuse what is no ordinary file, without opening it.

    Raises
    ------
    DataError
        If it is missing, a folder, a link to itself, a pipe, a socket or a device.
    """
    file = Path(path)
    try:
        found = file.stat()
    except FileNotFoundError as error:
        raise DataError(f"{file} does not exist; {_inside(file.parent)}") from error
    except (OSError, ValueError) as error:  # ValueError: a name that holds a NUL
        raise DataError(f"{file} cannot be opened: {reason_of(error)}") from error
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{file} is a folder; expected a file")
    if not stat.S_ISREG(found.st_mode):
        kind = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise DataError(
            f"{file} is {kind.get(stat.S_IFMT(found.st_mode), 'a device')}, not a file: it would "
            "be read more than once; write what it gives to a file first"
        )
    return found


def _inside(folder: Path) -> str:
    """Say what a folder holds, so that a misspelt name is easy to see."""
    try:
        names = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    except OSError:
        return f"nor does its folder {folder}"
    shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return f"its folder holds {shown}" if names else "its folder is empty"


def open_file(path: PathLike) -> io.BufferedReader:
    """Open an ordinary file for reading; nothing else is waited for.

    Raises
    ------
    DataError
        As :func:`check_file`, and if it cannot be opened.
    """
    check_file(path)
    try:
        # A pipe may have come in between: opening it must not wait for somebody to write.
        return open(path, "rb", opener=_opened)
    except OSError as error:
        raise DataError(f"{os.fspath(path)} cannot be opened: {reason_of(error)}") from error


def _opened(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def longest_line() -> int:
    """Return the most bytes that a line may have."""
    return int(_limit(*_LINE) * _MEGABYTE)


def refused_line(path: PathLike, n_bytes: int) -> DataError:
    """Return the error for a line that is longer, and goes on at that byte."""
    name, usual = _LINE
    return DataError(
        f"{os.fspath(path)}: the line before byte {n_bytes:,} is longer than "
        f"{_limit(name, usual):g} MB, which hardly is text; break it up, or set {name} higher"
    )


def check_unpacked(path: PathLike, *, unpacked: int, packed: int) -> None:
    """Refuse a file that unpacks to far more than it takes.

    Parameters
    ----------
    unpacked : int
        Bytes so far, or as the file declares.
    packed : int
        Size of the file.

    Raises
    ------
    DataError
        If the ratio is above the limit.
    """
    if unpacked <= HARMLESS_BYTES:
        return
    name, usual = _RATIO
    most = _limit(name, usual)
    if unpacked > most * packed:
        raise DataError(
            f"{os.fspath(path)}: its {packed:,} bytes unpack to {unpacked:,} or more, over "
            f"{most:g} to 1; take a file that you trust, unpack it yourself, or set {name} higher"
        )


def _limit(name: str, usual: float) -> float:
    given = os.environ.get(name)
    if not given:
        return usual
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise DataError(f"{name} is {given!r}; expected a number above 0, such as {usual:g}")
    return value
