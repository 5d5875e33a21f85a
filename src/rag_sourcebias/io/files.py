"""Text files in and out: UTF-8, plain or gzip by name, errors that name file and line."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from rag_sourcebias.errors import DataError

__all__ = [
    "jsonl_text",
    "open_bytes",
    "read_jsonl",
    "read_jsonl_part",
    "read_lines",
    "write_atomic",
]

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
PathLike = str | os.PathLike[str]


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked if its name ends in ``.gz``.

    Raises
    ------
    DataError
        If it is missing, a folder, or cannot be opened.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected a text file (plain, or gzip if named .gz)")
    if not path.exists():
        raise DataError(f"{path} does not exist; {_inside(path.parent)}")
    try:
        if path.suffix == ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}") from error


def _inside(folder: Path) -> str:
    """Say what a folder holds, so that a misspelt name is easy to see."""
    if not folder.is_dir():
        return f"nor does its folder {folder}"
    names = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return f"its folder holds {shown}" if names else "its folder is empty"


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
        If the path is missing or a folder, the text is not UTF-8, or the gzip data is corrupt.
    """
    file = Path(path)
    with open_bytes(file) as stream:
        yield from _decoded(file, stream, 1, blank=blank)


def _decoded(
    file: Path, lines: Iterable[bytes], first_line: int, *, blank: bool
) -> Iterator[tuple[int, str]]:
    number = first_line - 1
    try:
        # Lines are split before they are decoded: only so is the line of a bad byte known.
        for number, raw in enumerate(lines, start=first_line):
            data = raw.removeprefix(_BOM) if number == 1 else raw
            line = data.decode("utf-8").rstrip("\r\n")
            if blank or (line and not line.isspace()):
                yield number, line
    except UnicodeDecodeError as error:
        hint = (
            "it looks like gzip, whose name must end in .gz"
            if number == 1 and raw.startswith(_GZIP_MAGIC)
            else f"byte 0x{error.object[error.start]:02x} at position {error.start + 1}"
        )
        raise DataError(f"{file}:{number}: expected UTF-8 text ({hint})") from error
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{file}:{number + 1}: cannot be read further: {error}") from error


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


def jsonl_text(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Give one line of strict JSON per row."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def write_atomic(path: PathLike, content: str | bytes | Iterable[str]) -> None:
    """Write a file so that a reader sees the old one or the complete new one, nothing between.

    Parameters
    ----------
    path : path
        In an existing folder.
    content : str, bytes or iterable of str
        Text is encoded as UTF-8, and compressed if the name ends in ``.gz``; bytes are written as
        they are.

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
        with temporary.open("xb") as stream:
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
