"""What runs in a worker of Ray."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rag_sourcebias_integrations.ray.transport import pack, pack_error, unpack, unpack_job

__all__ = ["DONE", "LOST", "NOT_PREPARED", "GroupWorker", "Ledger"]

DONE, NOT_PREPARED, LOST = -1, -2, -3

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


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


class GroupWorker:
    """Does one group of items after another; errors are results, so that they travel whole.

    Parameters
    ----------
    job : bytes
        What ``pack_job`` wrote.
    name : str
        Of the job, in the ledger.
    ledger : actor handle of Ledger
    threads : int
        Threads of numerical libraries in this worker.
    attempts : int
        How often a group may be begun.
    """

    def __init__(self, job: bytes, name: str, ledger: Any, threads: int, attempts: int) -> None:  # noqa: ANN401
        _limit_threads(threads)
        self._job = job
        self._name = name
        self._ledger = ledger
        self._attempts = attempts
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Work on a group: ``{"first", "items"}`` to ``{"first", "failed", "data"}``.

        ``failed`` is the position of the item in the group that raised the error in ``data``, or
        ``NOT_PREPARED`` where preparing raised it, or ``LOST`` where the group has lost too many
        workers, or ``DONE``: ``data`` then holds the results.
        """
        import ray

        first = int(row["first"])
        begun = ray.get(self._ledger.begin.remote(self._name, first))
        if begun > self._attempts:
            return _reply(first, LOST, b"")
        position = NOT_PREPARED
        results: list[bytes] = []
        try:
            if self._function is None:  # not when it was made: a crash in there is counted too
                self._function = unpack_job(self._job)()
            for position, item in enumerate(unpack(row["items"], "items")):
                result = self._function(unpack(item, f"item {first + position}"))
                results.append(pack(result, f"the result of item {first + position}"))
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            return _reply(first, position, pack_error(error))
        return _reply(first, DONE, pack(results, "results"))


def _reply(first: int, failed: int, data: bytes) -> dict[str, Any]:
    return {"first": first, "failed": failed, "data": data}


def _limit_threads(threads: int) -> None:
    """Keep the workers of a machine from sharing its cores; libraries read this when loaded."""
    for name in _THREADS:
        given = os.environ.get(name, "")
        os.environ[name] = str(min(int(given), threads) if given.isdecimal() else threads)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(min(torch.get_num_threads(), threads))
