"""How functions, items, results and errors travel between the caller and the workers."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, SourceBiasError

__all__ = [
    "WorkerTraceback",
    "pack",
    "pack_error",
    "pack_job",
    "unpack",
    "unpack_error",
    "unpack_job",
]


class WorkerTraceback(Exception):  # noqa: N818 - the cause of an error, never raised
    """Where an error was raised in a worker; the cause of the error that the caller sees."""


def pack(value: object, what: str) -> bytes:
    """Pickle a value, functions of scripts and notebooks included.

    Raises
    ------
    DataError
        If it cannot be pickled; the message begins with ``what``.
    """
    from ray import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:  # objects raise what they like
        raise DataError(
            f"{what} cannot be sent to another process ({type(error).__name__}: {error}); "
            "expected something that can be pickled"
        ) from error


def unpack(data: bytes, what: str) -> Any:  # noqa: ANN401
    """Read what :func:`pack` wrote.

    Raises
    ------
    DataError
        If it cannot be read here; the message begins with ``what``.
    """
    from ray import cloudpickle

    try:
        return cloudpickle.loads(data)
    except Exception as error:  # objects raise what they like
        raise DataError(
            f"{what} cannot be read in another process ({type(error).__name__}: {error})"
        ) from error


def pack_job(prepare: Callable[[], Callable[[Any], Any]]) -> bytes:
    """Pickle a function, where the modules it needs were found, and the working folder."""
    return pack((str(Path.cwd()), list(sys.path), pack(prepare, "prepare")), "prepare")


def unpack_job(data: bytes) -> Callable[[], Callable[[Any], Any]]:
    """Read what :func:`pack_job` wrote.

    What the caller can import or open by a relative path, a worker of its machine then can too.
    """
    folder, path, prepare = unpack(data, "prepare")
    sys.path.extend(place for place in path if place not in sys.path)
    with suppress(OSError):  # another machine may not have it
        os.chdir(folder)
    found: Callable[[], Callable[[Any], Any]] = unpack(prepare, "prepare")
    return found


def pack_error(error: Exception) -> bytes:
    """Pickle an error with its traceback as text.

    Not by its own way of being pickled: that calls the class again, which fails for every class
    that has keyword-only arguments.
    """
    lines, machine = "".join(traceback.format_exception(error)), platform.node()
    try:
        return pack((machine, type(error), error.args, dict(vars(error)), lines), "the error")
    except DataError:
        text = f"{type(error).__name__}: {error}"
        return pack((machine, None, (text,), {}, lines), "the error")


def unpack_error(data: bytes, what: str) -> SourceBiasError:
    """Return what is to be raised for an error of a worker.

    A :class:`SourceBiasError` as it was; for any other one that says where it happened
    (``what``), caused by the original. The text of the worker's traceback is the last cause.
    Another machine is named: a path that is missing there may exist here.
    """
    machine, kind, args, state, lines = unpack(data, "the error")
    on = "" if machine == platform.node() else f" on {machine}"
    where = WorkerTraceback(f"\n{lines}")
    if kind is None:
        failed = SourceBiasError(f"{what} failed in a worker{on}: {args[0]}")
        failed.__cause__ = where
        return failed
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    error.__cause__ = where
    if isinstance(error, SourceBiasError):
        if on:
            error.args = (f"{error} (in a worker{on})", *args[1:])
        return error
    failed = SourceBiasError(f"{what} failed in a worker{on}: {kind.__name__}: {error}")
    failed.__cause__ = error
    return failed
