"""What is stored: dataclasses as plain JSON, files written whole, damage as one sentence."""

import gzip
import json
import math
import os
import platform
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin

import numpy as np

from rag_sourcebias._version import __version__
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError, visible
from rag_sourcebias.core.private import create_file

T = TypeVar("T")


class Stored:
    """A dataclass that can be stored as plain JSON values and read again.

    One that says what it is called and its schema version is read in this version only.
    """

    __slots__ = ()
    _versioned: ClassVar[tuple[str, int] | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing or has the wrong shape.
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        if cls._versioned is not None:
            what, version = cls._versioned
            found = data.get("schema_version")
            if found != version:
                raise UnsupportedVersionError(
                    f"{what} schema version {found!r} cannot be read; this release reads version "
                    f"{version}"
                )
        return from_plain(cls, data)


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any field of any report type
    """Return ``value`` as plain values for JSON, NaN as None."""
    from msgspec import to_builtins

    return _without_nan(to_builtins(value, enc_hook=_plain, str_keys=True))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return what msgspec does not know as something that it knows."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return value.stored()


def _without_nan(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def from_plain(cls: type[T], data: Any, *, where: str = "") -> T:  # noqa: ANN401
    """Read a dataclass that :func:`to_plain` wrote.

    Parameters
    ----------
    where : str
        What holds it, for the message.

    Raises
    ------
    DataError
        If a field is missing or has the wrong shape; the message names its path.
    """
    from msgspec import ValidationError, convert

    try:
        return convert(data, cls, dec_hook=_typed)
    except ValidationError as error:
        text = str(error).replace("`", "'").replace("$.", "")
        raise DataError(f"{where}: {text}" if where else text) from error


def _typed(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Return plain values as a type that msgspec does not know."""
    if get_origin(kind) is not np.ndarray:
        return kind.from_stored(value)
    if not isinstance(value, list):
        raise TypeError(f"Expected `array`, got `{type(value).__name__}`")
    return np.array(value, dtype=get_args(get_args(kind)[1])[0])


# Only what was imported can have influenced the numbers.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "bm25s": "bm25s",
    "Stemmer": "PyStemmer",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
    "chromadb": "chromadb",
    "langchain_core": "langchain-core",
    "llama_index.core": "llama-index-core",
    "sklearn": "scikit-learn",
    "openai": "openai",
    "pyarrow": "pyarrow",
}


@cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def timestamp() -> str:
    """Return the time now, as reports state it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment() -> dict[str, str]:
    """Versions of the packages in use, and the machine."""
    found = {"rag-sourcebias": __version__, "python": platform.python_version()}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            found[package] = _version(package)
    found["machine"] = f"{platform.system()} {platform.machine()}"
    found["cores"] = str(os.cpu_count())
    return found


# Files of any kind.

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


# Something fitted, as a JSON file that says what it is.


def write_fitted(fitted: Any, path: PathLike, *, kind: str, version: int) -> None:  # noqa: ANN401
    """Write a dataclass; numbers are read back exactly.

    Parameters
    ----------
    kind : str
        What it is, such as ``"style adjustment"``.
    version : int
        Of its fields.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    data = {"kind": kind.replace(" ", "_"), "schema_version": version, **to_plain(fitted)}
    write_atomic(path, json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read_fitted(cls: type[T], path: PathLike, *, kind: str, version: int) -> T:
    """Read what :func:`write_fitted` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or holds nothing of that kind or not all of it.
    UnsupportedVersionError
        If it was written by a release with other fields.
    """
    check_file(path)
    with sound(path, f"the JSON of a {kind}"):
        data = json.loads(Path(path).read_text("utf-8"))
    if not isinstance(data, dict) or data.get("kind") != kind.replace(" ", "_"):
        raise DataError(f"{path} is no {kind}; expected a file that this library wrote")
    if data.get("schema_version") != version:
        raise UnsupportedVersionError(
            f"{path}: {kind} of schema version {data.get('schema_version')!r}; this release reads "
            f"version {version}"
        )
    with sound(path, f"a complete {kind}"):
        return from_plain(cls, data)
