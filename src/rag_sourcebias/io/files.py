"""Text files in and out: UTF-8, plain or gzip by name, errors that name file and line."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import (
    REMEDY,
    PathLike,
    check_unpacked,
    longest_line,
    open_file,
    refused_line,
    sound,
)
from rag_sourcebias.io.private import create_file
from rag_sourcebias.types.names import visible

__all__ = [
    "PathLike",
    "jsonl_text",
    "open_bytes",
    "open_lines",
    "read_json",
    "read_jsonl",
    "read_jsonl_part",
    "read_lines",
    "read_text",
    "write_atomic",
]

_BOM = "\ufeff"
_GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 16
_LINES = 512
_END = re.compile(b"\n")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked if its name ends in ``.gz``.

    Raises
    ------
    DataError
        If it is missing, no ordinary file, or cannot be opened; while it is read, if it unpacks to
        far more than it takes (see :mod:`~rag_sourcebias.io.damage`).
    """
    return _opened(path, most=None)


def open_lines(path: Path) -> IO[bytes]:
    """Open a file as :func:`open_bytes`; while it is read, a line that is too long is refused."""
    return _opened(path, most=longest_line())


def _opened(path: Path, *, most: int | None) -> IO[bytes]:
    stream = open_file(path)
    packed = path.suffix == ".gz"
    return io.BufferedReader(_Bounded(path, stream, packed=packed, most=most), _BLOCK)


class _Bounded(io.RawIOBase):
    """What a file holds, in blocks: as long as lines and unpacked bytes are in proportion.

    Lines are measured by the block and not one by one, which costs nothing where they are short.
    """

    def __init__(
        self, path: Path, stream: io.BufferedReader, *, packed: bool, most: int | None
    ) -> None:
        self._path, self._stream, self._most = path, stream, most
        self._size = os.fstat(stream.fileno()).st_size if packed else None
        self._data = gzip.GzipFile(fileobj=stream, mode="rb") if packed else stream.raw
        self._n_bytes = 0
        self._line = 0  # bytes since the last block in which a line ended

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def seekable(self) -> bool:
        """Say whether a reader may start in the middle."""
        return self._size is None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._data.tell()

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever can be written to
        """Read the next block."""
        n = self._data.readinto(buffer) or 0
        self._n_bytes += n
        if self._size is not None:
            check_unpacked(self._path, unpacked=self._n_bytes, packed=self._size)
        if self._most is not None:
            self._line = 0 if _END.search(buffer, 0, n) else self._line + n
            if self._line > self._most:
                raise refused_line(self._path, self._n_bytes)
        return n

    def close(self) -> None:
        """Close the file too."""
        self._data.close()
        self._stream.close()
        super().close()


def read_lines(path: PathLike, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Stream the lines of a UTF-8 text file, without blank ones unless ``blank`` asks for them.

    Parameters
    ----------
    path : path
        Plain text, or gzip if the name ends in ``.gz``. A byte-order mark and CRLF line ends are
        accepted.

    Yields
    ------
    tuple of (int, str)
        Line number, from 1 and counting blank lines, and the line without its end.

    Raises
    ------
    DataError
        If the path is missing or no ordinary file, the text is not UTF-8, the gzip data is corrupt
        or out of proportion, or a line is too long.
    """
    file = Path(path)
    with open_lines(file) as stream:
        yield from _decoded(file, stream, 1, blank=blank)


def _decoded(
    file: Path, lines: Iterable[bytes], first_line: int, *, blank: bool
) -> Iterator[tuple[int, str]]:
    source, number, n_lines = iter(lines), first_line - 1, 16
    block: list[bytes] = []
    try:
        while True:
            block.clear()
            block.extend(islice(source, n_lines))  # what came before an error stays in the list
            if not block:
                return
            packed = b"".join(block)
            # About as many bytes each time: a few lines are decoded at a third of the cost of one
            # by one, and lines may be long.
            n_lines = max(1, min(_LINES, _BLOCK * len(block) // len(packed)))
            text = packed.decode()
            if not number:
                text = text.removeprefix(_BOM)
            if "\r" in text:
                text = re.sub("\r+(\n|$)", r"\1", text)
            found = text.split("\n")
            for number, line in enumerate(found[: len(block)], start=number + 1):  # noqa: B020
                if blank or (line and not line.isspace()):
                    yield number, line
    except UnicodeDecodeError as error:
        raise _not_text(file, block, number + 1) from error
    except (EOFError, zlib.error, OSError) as error:
        where = number + len(block) + 1
        raise DataError(f"{file}:{where}: cannot be read further: {error}") from error


def _not_text(file: Path, block: list[bytes], number: int) -> DataError:
    """Name the line of a block that is not UTF-8, the byte and its position."""
    for at, raw in enumerate(block, start=number):
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            hint = (
                "it looks like gzip, whose name must end in .gz"
                if at == 1 and raw.startswith(_GZIP_MAGIC)
                else f"byte 0x{raw[error.start]:02x} at position {error.start + 1}"
            )
            return DataError(f"{file}:{at}: expected UTF-8 text ({hint})")
    raise AssertionError  # pragma: no cover - one of them was refused


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
    with open_bytes(file) as stream:
        stream.seek(offset)
        yield from _objects(file, _decoded(file, islice(stream, n_lines), first_line, blank=False))


def read_text(path: PathLike, expected: str, *, remedy: str = REMEDY) -> str:
    """Read a UTF-8 text as a whole, whatever the length of its lines.

    Parameters
    ----------
    path : path
        Plain text, or gzip if the name ends in ``.gz``; a byte-order mark is left out.
    expected, remedy : str
        For the message: see :func:`~rag_sourcebias.io.damage.sound`.

    Raises
    ------
    DataError
        If the path is missing or no ordinary file, the text is not UTF-8, or the gzip data is
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
    text = read_text(path, expected, remedy=remedy)
    with sound(path, expected, remedy=remedy):
        return json.loads(text)


def jsonl_text(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Give one line of strict JSON per row; any text can be encoded, as answers of models need."""
    for row in rows:
        yield visible(json.dumps(row, ensure_ascii=False, allow_nan=False)) + "\n"


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
            _write(stream, content, compress=file.suffix == ".gz")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except UnicodeEncodeError as error:
        raise DataError(f"{file} cannot be written as UTF-8: {error}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _write(stream: IO[bytes], content: str | bytes | Iterable[str], *, compress: bool) -> None:
    if isinstance(content, bytes):
        stream.write(content)
        return
    chunks = [content] if isinstance(content, str) else content
    if not compress:
        stream.writelines(chunk.encode("utf-8") for chunk in chunks)
        return
    # mtime 0 and no name: equal content gives equal bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        packed.writelines(chunk.encode("utf-8") for chunk in chunks)
