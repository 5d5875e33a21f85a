"""Files as they are handed over: text, plain or packed, its lines, and JSON."""

import bz2
import gzip
import io
import json
import lzma
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rag_sourcebias.core.codec import REMEDY, PathLike, check_file, reason_of, sound
from rag_sourcebias.core.errors import DataError, import_extra

# Two limits keep a small file from taking all memory, and can be raised by who trusts the file:
# they are read from the environment, so that they reach worker processes as well.
# ``RAG_SOURCEBIAS_MAX_LINE_MB`` (64) Longest line of a text file, in megabytes.
# ``RAG_SOURCEBIAS_MAX_UNPACK_RATIO`` (200) Unpacked bytes for each byte of a file. Ordinary text
# packs 3 to 30 to 1. What unpacks to less than a megabyte does no harm and is read at any ratio.


_MEGABYTE = 1 << 20
_LINE = ("RAG_SOURCEBIAS_MAX_LINE_MB", 64.0)
_RATIO = ("RAG_SOURCEBIAS_MAX_UNPACK_RATIO", 200.0)


def open_file(path: PathLike) -> io.BufferedReader:
    """Open an ordinary file for reading.

    Raises
    ------
    DataError
        As :func:`check_file`, and if it cannot be opened.
    """
    check_file(path)
    try:
        return Path(path).open("rb")
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
    given = os.environ.get(name) or str(usual)
    if not tells_number(given) or float(given) <= 0:
        raise DataError(f"{name} is {given!r}; expected a number above 0, such as {usual:g}")
    return float(given)


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


def packing_of(stream: io.BufferedReader) -> str | None:
    """Return how a file is packed, by its first bytes; None for plain ones."""
    start = stream.peek(10)
    return next((ending for ending, begins in _PACKED.items() if begins.match(start)), None)


def _unpacked(path: Path, stream: io.BufferedReader, packing: str | None) -> Any:  # noqa: ANN401
    if packing is None:
        return stream
    if packing == ".zst":
        pa = import_extra("pyarrow", "pyarrow", "parquet", f"reading {path.name}")
        return pa.CompressedInputStream(stream, "zstd")
    unpacked: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return unpacked[packing](stream)


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
        packing = packing_of(stream)
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
        For the message: see :func:`~rag_sourcebias.core.codec.sound`.

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
