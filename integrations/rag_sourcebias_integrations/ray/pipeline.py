"""The pipeline of Ray Data that works on pickled items."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from rag_sourcebias.errors import SourceBiasError
from rag_sourcebias_integrations.ray.runtime import unreported
from rag_sourcebias_integrations.ray.transport import pack, pack_job, unpack, unpack_error
from rag_sourcebias_integrations.ray.worker import DONE, LOST, NOT_PREPARED, GroupWorker

__all__ = ["Job", "Pool"]

_GROUPS = 2000  # tasks of one job at most: each costs the caller's process milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Workers of a job.

    Parameters
    ----------
    size : int
    cpus, gpus : float
        Of each worker.
    attempts : int
        How often a group of items may be begun.
    """

    size: int
    cpus: float
    gpus: float
    attempts: int


class Job:
    """Items in groups, each a task of Ray; a group has one item unless there are thousands.

    Parameters
    ----------
    prepare : callable
    items : sequence

    Raises
    ------
    DataError
        If the function or an item cannot be pickled.
    """

    def __init__(self, prepare: Callable[[], Callable[[Any], Any]], items: Sequence[Any]) -> None:
        self._name = uuid4().hex
        self._prepare = pack_job(prepare)
        self._total = len(items)
        self._size = size = math.ceil(len(items) / _GROUPS)
        packed = [pack(item, f"item {index}") for index, item in enumerate(items)]
        self._rows = [
            {"first": first, "items": pack(packed[first : first + size], f"items from {first}")}
            for first in range(0, len(packed), size)
        ]

    def results(self, pool: Pool, ledger: Any) -> Generator[tuple[int, Any], None, None]:  # noqa: ANN401
        """Yield the index and the result of each item, group by group as they end.

        Closing the generator ends what is being worked on.

        Raises
        ------
        SourceBiasError
            What a worker raised, what became of one, and what Ray itself complains about.
        """
        from ray.exceptions import RayError

        done = 0
        try:
            with closing(self._replies(pool, ledger)) as replies:
                for reply in replies:
                    first, failed, data = int(reply["first"]), int(reply["failed"]), reply["data"]
                    if failed != DONE:
                        raise self._error(first, failed, data, pool.attempts)
                    done += 1
                    for index, result in enumerate(unpack(data, "results"), start=first):
                        yield index, unpack(result, f"the result of item {index}")
        except RayError as error:
            raise SourceBiasError(
                f"Ray failed when {done} of {len(self._rows)} tasks were done: {error}"
            ) from error
        ledger.forget.remote(self._name)

    def _replies(self, pool: Pool, ledger: Any) -> Generator[Mapping[str, Any], None, None]:  # noqa: ANN401
        """Yield what workers reply to each row."""
        import ray
        from ray.data import ActorPoolStrategy, DataContext

        threads = max(int(pool.cpus), 1)
        with unreported(), _silent("ray.data"):
            context = DataContext.get_current().copy()
            context.enable_progress_bars = False
            context.print_on_execution_start = False
            with DataContext.current(context):  # what it makes keeps it; the caller's is restored
                data = ray.data.from_items(self._rows, override_num_blocks=len(self._rows)).map(
                    GroupWorker,
                    fn_constructor_args=(
                        *(self._prepare, self._name, ledger),
                        *(threads, pool.attempts),
                    ),
                    compute=ActorPoolStrategy(
                        size=min(pool.size, len(self._rows)), max_tasks_in_flight_per_actor=1
                    ),
                    num_cpus=pool.cpus,
                    num_gpus=pool.gpus or None,
                )
            batches = data.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
            for batch in batches:
                yield from batch.to_pylist()

    def _error(self, first: int, failed: int, data: bytes, attempts: int) -> SourceBiasError:
        """Return what is to be raised for a group."""
        if failed == NOT_PREPARED:
            return unpack_error(data, "preparing")
        if failed != LOST:
            return unpack_error(data, f"item {first + failed} of {self._total}")
        last = min(first + self._size, self._total) - 1
        which = f"item {first}" if last == first else f"one of the items {first} to {last}"
        return SourceBiasError(
            f"{which} of {self._total} was begun {attempts} time(s) and its worker was lost each "
            "time: too little memory, or a crash in native code"
        )


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a logger speak of errors only."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
