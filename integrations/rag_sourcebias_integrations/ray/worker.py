"""What runs in a worker of Ray."""

import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rag_sourcebias.core.errors import DataError, SourceBiasError

# How functions, items, results and errors travel between the caller and the workers.


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
    return cast("Callable[[], Callable[[Any], Any]]", unpack(prepare, "prepare"))


def pack_error(error: Exception) -> bytes:
    """Pickle an error with its traceback as text.

    Not by its own way of being pickled: that calls the class again, which fails for every class
    that has keyword-only arguments.
    """
    lines = "".join(traceback.format_exception(error))
    machine = platform.node()
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


# What runs in a worker of Ray.


DONE, NOT_PREPARED, LOST = -1, -2, -3


class Ledger:
    """Counts how often each group of items was begun.

    Ray begins a task again whenever its worker was lost, without end: what kills its worker each
    time (too little memory, a crash in native code) would be begun for ever.
    """

    def __init__(self) -> None:
        self._begun: Counter[tuple[str, int]] = Counter()

    def begin(self, job: str, first: int) -> int:
        """Return how often a group of a job has been begun, this time included."""
        self._begun[job, first] += 1
        return self._begun[job, first]

    def forget(self, job: str) -> None:
        """Drop a job that has ended."""
        self._begun = Counter({k: n for k, n in self._begun.items() if k[0] != job})


@dataclass
class GroupWorker:
    """Does one group of items after another; errors are results, so that they travel whole.

    Parameters
    ----------
    job : bytes
        What ``pack_job`` wrote.
    name : str
        Of the job, in the ledger.
    ledger : actor handle of Ledger
    attempts : int
        How often a group may be begun.
    """

    job: bytes
    name: str
    ledger: Any
    attempts: int
    _function: Callable[[Any], Any] | None = None

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Work on a group: ``{"first", "items"}`` to ``{"first", "failed", "data"}``.

        ``failed`` is the position of the item in the group that raised the error in ``data``, or
        ``NOT_PREPARED`` where preparing raised it, or ``LOST`` where the group has lost too many
        workers, or ``DONE``: ``data`` then holds the results.
        """
        import ray

        first = int(row["first"])
        if ray.get(self.ledger.begin.remote(self.name, first)) > self.attempts:
            return _reply(first, LOST, b"")
        position = NOT_PREPARED
        results: list[bytes] = []
        try:
            if self._function is None:  # not when it was made: a crash in there is counted too
                self._function = unpack_job(self.job)()
            for position, item in enumerate(unpack(row["items"], "items")):
                result = self._function(unpack(item, f"item {first + position}"))
                results.append(pack(result, f"the result of item {first + position}"))
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            return _reply(first, position, pack_error(error))
        return _reply(first, DONE, pack(results, "results"))


def _reply(first: int, failed: int, data: bytes) -> dict[str, Any]:
    return {"first": first, "failed": failed, "data": data}
