"""Files of any kind: refused where they are none, damage as a sentence, and written whole."""

import gzip
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError, visible
from rag_sourcebias.core.private import create_file

PathLike = str | os.PathLike[str]

REMEDY = "take another copy, or write it again"
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
def sound(path: PathLike, expected: str, *, remedy: str = REMEDY) -> Iterator[None]:
    """Turn what a damaged file raises into one sentence: the file, the place and the remedy.

    Parameters
    ----------
    path : path
    expected : str
        What the file should be, such as ``"a complete Parquet file"``.
    remedy : str

    Raises
    ------
    DataError
        If the block raises what damage raises. Errors of this library pass where they name the
        file; others get its name and what is expected.
    """
    where = os.fspath(path)
    try:
        yield
    except UnsupportedVersionError as error:
        if where in str(error):
            raise
        raise UnsupportedVersionError(f"{where}: {error}") from error
    except DataError as error:
        if where in str(error):
            raise
        raise DataError(f"{where} is not {expected}: {_one_line(str(error))}") from error
    except Exception as error:
        if not isinstance(error, _kinds()):
            raise
        line = getattr(error, "lineno", None) if isinstance(error, ValueError) else None
        place = "" if line is None else f":{line}"
        raise DataError(
            f"{where}{place} is not {expected} ({reason_of(error)}); {remedy}"
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
