"""Files in and out: text, plain or packed, JSON, and damage turned into a sentence."""

import bz2
import gzip
import io
import json
import lzma
import math
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rag_sourcebias.core.errors import (
    DataError,
    UnsupportedVersionError,
    import_extra,
    visible,
)
from rag_sourcebias.core.private import create_file

# Damaged files, and what is no file: one place that turns either into a sentence.
# Two limits keep a small file from taking all memory, and can be raised by who trusts the file:
# they are read from the environment, so that they reach worker processes as well.
# ``RAG_SOURCEBIAS_MAX_LINE_MB`` (64) Longest line of a text file, in megabytes.
# ``RAG_SOURCEBIAS_MAX_UNPACK_RATIO`` (200) Unpacked bytes for each byte of a file. Ordinary text
# packs 3 to 30 to 1. What unpacks to less than a megabyte does no harm and is read at any ratio.


PathLike = str | os.PathLike[str]

REMEDY = "take another copy, or write it again"
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
        raise DataError(f"{os.fspath(path)} is not {expected}: {_one_line(str(error))}") from error
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
    said = error.strerror if isinstance(error, OSError) else None
    words = _one_line(said or str(error))[:_LONGEST_REASON]
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
    shown = ", ".join([*names[:10], *(["…"] if len(names) > 10 else [])])
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
        return open(
            path, "rb", opener=lambda name, how: os.open(name, how | getattr(os, "O_NONBLOCK", 0))
        )
    except OSError as error:
        raise DataError(f"{os.fspath(path)} cannot be opened: {reason_of(error)}") from error


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
    if unpacked > _MEGABYTE and unpacked > _limit(*_RATIO) * packed:
        raise DataError(
            f"{os.fspath(path)}: its {packed:,} bytes unpack to {unpacked:,} or more, over "
            f"{_limit(*_RATIO):g} to 1; take a file that you trust, unpack it yourself, or set "
            f"{_RATIO[0]} higher"
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


# Text files in and out: UTF-8, plain or packed, errors that name file and line.


_BLOCK = 1 << 16
UNREADABLE = (EOFError, zlib.error, lzma.LZMAError, OSError)  # what packed data raise
_END = re.compile(b"\n")
# How packed files begin, by the ending that they usually have.
_PACKED = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}


def packing_of(path: Path, stream: io.BufferedReader) -> str | None:
    """Return how a file is packed, by its first bytes or else its ending; None for plain ones."""
    start = stream.peek(10)
    by_bytes = next((ending for ending, begins in _PACKED.items() if begins.match(start)), None)
    if by_bytes is not None or not start:
        return by_bytes
    return path.suffix if path.suffix in _PACKED else None


def _unpacked(path: Path, stream: io.BufferedReader, packing: str | None) -> Any:  # noqa: ANN401
    if packing == ".gz":
        return gzip.GzipFile(fileobj=stream, mode="rb")
    if packing == ".bz2":
        return bz2.BZ2File(stream)
    if packing == ".xz":
        return lzma.LZMAFile(stream)
    if packing == ".zst":
        pa = import_extra("pyarrow", "pyarrow", "parquet", f"reading {path.name}")
        return pa.CompressedInputStream(stream, "zstd")
    return stream


def open_bytes(path: Path, *, lines: bool = False) -> IO[bytes]:
    """Open a file for reading, unpacked if it is packed by gzip, bzip2, xz or Zstandard.

    Parameters
    ----------
    lines : bool
        It is text: a line that is too long is refused while it is read.

    Raises
    ------
    DataError
        If it is missing, no ordinary file, or cannot be opened; while it is read, if it unpacks to
        far more than it takes (see :mod:`~rag_sourcebias.intake.files`).
    """
    most = int(_limit(*_LINE) * _MEGABYTE) if lines else None
    return io.BufferedReader(_Bounded(path, open_file(path), most=most), _BLOCK)


class _Bounded(io.RawIOBase):
    """What a file holds, in blocks: as long as lines and unpacked bytes are in proportion.

    Lines are measured by the block and not one by one, which costs nothing where they are short.
    """

    def __init__(self, path: Path, stream: io.BufferedReader, *, most: int | None) -> None:
        self._path, self._stream, self._most = path, stream, most
        packing = packing_of(path, stream)
        self._size = os.fstat(stream.fileno()).st_size if packing else None
        self._data = _unpacked(path, stream, packing)
        self._n_bytes = 0
        self._line = 0  # bytes since the last block in which a line ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever can be written to
        n: int = self._data.readinto(buffer) or 0
        self._n_bytes += n
        if self._size is not None:
            check_unpacked(self._path, unpacked=self._n_bytes, packed=self._size)
        if self._most is not None:
            self._line = 0 if _END.search(buffer, 0, n) else self._line + n
            if self._line > self._most:
                raise DataError(
                    f"{self._path}: the line before byte {self._n_bytes:,} is longer than "
                    f"{_limit(*_LINE):g} MB, which hardly is text; break it up, or set {_LINE[0]} "
                    "higher"
                )
        return n

    def close(self) -> None:
        self._data.close()
        self._stream.close()
        super().close()


def read_lines(path: PathLike, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Stream the lines of a UTF-8 text file, without blank ones unless ``blank`` asks for them.

    Parameters
    ----------
    path : path
        Plain text, or packed (``.gz``, ``.bz2``, ``.xz``, ``.zst``). A byte-order mark and CRLF
        line ends are accepted.

    Yields
    ------
    tuple of (int, str)
        Line number, from 1 and counting blank lines, and the line without its end.

    Raises
    ------
    DataError
        If the path is missing or no ordinary file, the text is not UTF-8, packed data are corrupt
        or out of proportion, or a line is too long.
    """
    file = Path(path)
    with open_bytes(file, lines=True) as stream:
        yield from _decoded(file, stream, 1, blank=blank)


def _decoded(
    file: Path, lines: Iterable[bytes], first_line: int, *, blank: bool
) -> Iterator[tuple[int, str]]:
    number = first_line - 1
    raw = b""
    try:
        for number, raw in enumerate(lines, first_line):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if blank or (line and not line.isspace()):
                yield number, line
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}:{number}: expected UTF-8 text (byte 0x{raw[error.start]:02x} at position "
            f"{error.start + 1})"
        ) from error
    except UNREADABLE as error:
        raise DataError(f"{file}:{number + 1}: cannot be read further: {error}") from error


# Only ASCII space separates: an id may hold a no-break or an ideographic space. The byte-order
# mark is listed because a file may not start with an id that does.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x1c-\x1f\ufeff]+")


def fields_of(line: str) -> list[str]:
    """Return the fields of a line that white space separates."""
    return line.split() if line.isascii() else [field for field in _SPACE.split(line) if field]


def tells_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_jsonl(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream the objects of a JSON-lines file with their line numbers.

    Raises
    ------
    DataError
        As :func:`read_lines`, and if a line is not a JSON object.
    """
    return _objects(path, read_lines(path))


def _objects(
    path: PathLike, lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: malformed JSON ({error}): {line[:80]!r}") from error
        if not isinstance(row, dict):
            raise DataError(
                f"{path}:{number}: expected a JSON object per line, found {line[:80]!r}"
            )
        yield number, row


def read_jsonl_part(
    path: PathLike, *, offset: int, first_line: int, n_lines: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream the objects of consecutive lines of a plain JSON-lines file.

    Parameters
    ----------
    path : path
        Not compressed.
    offset : int
        Bytes before the first of these lines.
    first_line : int
        Its number, from 1.
    n_lines : int
        Lines to read, blank ones among them.

    Raises
    ------
    DataError
        As :func:`read_jsonl`.
    """
    file = Path(path)
    with open_file(file) as stream:
        stream.seek(offset)
        yield from _objects(file, _decoded(file, islice(stream, n_lines), first_line, blank=False))


def read_text(path: PathLike, expected: str, *, remedy: str = REMEDY) -> str:
    """Read a UTF-8 text as a whole, whatever the length of its lines.

    Parameters
    ----------
    path : path
        Plain text or packed; a byte-order mark is left out.
    expected, remedy : str
        For the message: see :func:`~rag_sourcebias.intake.files.sound`.

    Raises
    ------
    DataError
        If the path is missing or no ordinary file, the text is not UTF-8, or packed data are
        corrupt or out of proportion.
    """
    file = Path(path)
    with sound(file, expected, remedy=remedy), open_bytes(file) as stream:
        return stream.read().decode("utf-8-sig")


def read_json(path: PathLike, expected: str, *, remedy: str = REMEDY) -> Any:  # noqa: ANN401
    """Read the one JSON value that a file holds.

    Raises
    ------
    DataError
        As :func:`read_text`, and, with the line, if it is not JSON.
    """
    with sound(path, expected, remedy=remedy):
        return json.loads(read_text(path, expected, remedy=remedy))


def jsonl_text(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Give one line of strict JSON per row; any text can be encoded, as answers of models need."""
    return (visible(json.dumps(r, ensure_ascii=False, allow_nan=False)) + "\n" for r in rows)


def write_atomic(
    path: PathLike, content: str | bytes | Iterable[str], *, mode: int | None = None
) -> None:
    """Write a file so that a reader sees the old one or the complete new one, nothing between.

    Parameters
    ----------
    path : path
        In an existing folder.
    content : str, bytes or iterable of str
        Text is encoded as UTF-8, and compressed if the name ends in ``.gz``; bytes are written as
        they are.
    mode : int, optional
        Of a new file, whatever the umask says, such as 0o600; one that is there keeps its own.

    Raises
    ------
    DataError
        If the folder is missing or not writable, or text cannot be encoded as UTF-8.
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise DataError(f"{file} cannot be written: folder {file.parent} does not exist")
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        if mode is not None:
            create_file(temporary, stat.S_IMODE(file.stat().st_mode) if file.exists() else mode)
        with temporary.open("xb" if mode is None else "wb") as stream:
            if isinstance(content, bytes):
                stream.write(content)
            else:
                chunks = (
                    chunk.encode("utf-8")
                    for chunk in ([content] if isinstance(content, str) else content)
                )
                if file.suffix == ".gz":
                    # mtime 0 and no name: equal content gives equal bytes.
                    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                        packed.writelines(chunks)
                else:
                    stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except UnicodeEncodeError as error:
        raise DataError(f"{file} cannot be written as UTF-8: {error}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
