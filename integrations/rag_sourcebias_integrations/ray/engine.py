"""An engine whose workers are actors of Ray Data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from types import TracebackType
from typing import Any, TypeVar

from rag_sourcebias.errors import DataError, SourceBiasError
from rag_sourcebias_integrations.ray.pipeline import Job, Pool
from rag_sourcebias_integrations.ray.runtime import load_ray, session, start, stop
from rag_sourcebias_integrations.ray.worker import Ledger

__all__ = ["RayEngine", "ray_engine"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class RayEngine:
    """Work on items with the actors of a Ray cluster, or of this machine.

    Each worker is an actor of a Ray Data pipeline and is prepared once. A worker that is lost
    (killed, out of memory, its machine gone) is replaced and what it was working on is done
    again, ``attempts`` times at most. Results are those of any other engine: which worker does
    what changes nothing.

    Parameters
    ----------
    workers : int, optional
        Workers at once; by default as many as there are CPUs for.
    address : str, optional
        ``host:port`` of a cluster's head node, or "auto" for the cluster this machine belongs to.
        By default what ``RAY_ADDRESS`` names, and otherwise Ray is started on this machine,
        without dashboard, for as long as the engine is open. Where Ray runs in this process
        already, it is used as it is and never shut down.
    cpus_per_worker : float
        CPUs (and threads of numerical libraries) of each worker.
    gpus_per_worker : float
        GPUs of each worker; with 0 it sees none.
    attempts : int
        How often an item (and preparing for it) may lose its worker.

    Raises
    ------
    DataError
        If a number is out of range.
    MissingExtraError
        If Ray is not installed.

    Notes
    -----
    Workers import rag_sourcebias: install the same version on every node. Nothing is reported to
    Ray's makers by what this class starts, unless ``RAY_USAGE_STATS_ENABLED`` says otherwise.
    """

    name = "ray"

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        *,
        cpus_per_worker: float = 1,
        gpus_per_worker: float = 0,
        attempts: int = 4,
    ) -> None:
        if workers is not None and workers < 1:
            raise DataError(f"workers must be at least 1, got {workers}")
        if not (cpus_per_worker > 0 and math.isfinite(cpus_per_worker)):
            raise DataError(f"cpus_per_worker must be above 0, got {cpus_per_worker}")
        if not (gpus_per_worker >= 0 and math.isfinite(gpus_per_worker)):
            raise DataError(f"gpus_per_worker must be at least 0, got {gpus_per_worker}")
        if attempts < 1:
            raise DataError(f"attempts must be at least 1, got {attempts}")
        load_ray()
        self.workers = workers
        self.address = address
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = gpus_per_worker
        self.attempts = attempts
        self._started: str | None = None  # the session of Ray that is ours to end
        self._ledgers: dict[str, Any] = {}  # by session: at most one

    @property
    def settings(self) -> Mapping[str, str]:
        """Engine, version of Ray and workers."""
        return {
            "engine": "ray",
            "ray": version("ray"),
            "workers": "all CPUs" if self.workers is None else str(self.workers),
        }

    def map(
        self,
        prepare: Callable[[], Callable[[ItemT], ResultT]],
        items: Sequence[ItemT],
        *,
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[ResultT]:
        """Apply a function to every item and return the results in the order of the items.

        See :meth:`rag_sourcebias.protocols.Engine.map`.

        Raises
        ------
        SourceBiasError
            What the function raised of that kind, as it was; one that names the item and has the
            original as its cause for anything else, and for an item that kills its workers.
        DataError
            If something cannot be pickled, the cluster does not answer or has too few CPUs.
        """
        if not items:
            return []
        job = Job(prepare, items)
        results: dict[int, ResultT] = {}
        try:
            self.open()
            with closing(job.results(self._pool(), self._ledger())) as ended:
                for index, result in ended:
                    results[index] = result
                    if on_done is not None:
                        on_done(len(results), len(items))
        except (KeyboardInterrupt, SystemExit):  # nothing of ours may go on running
            self.close()
            raise
        if len(results) != len(items):
            raise SourceBiasError(f"Ray returned {len(results)} of {len(items)} results")
        return [results[index] for index in range(len(items))]

    def open(self) -> None:
        """Start or join Ray now instead of at the first call.

        Raises
        ------
        DataError
            If the cluster does not answer or has too few CPUs for one worker.
        """
        import ray

        cpus = None if self.workers is None else self.workers * self.cpus_per_worker
        if start(self.address, cpus):
            self._started = session()
        there = ray.cluster_resources()
        for kind, needed in (("CPU", self.cpus_per_worker), ("GPU", self.gpus_per_worker)):
            if there.get(kind, 0) < needed:
                raise DataError(
                    f"a worker needs {needed:g} {kind}, the Ray cluster has "
                    f"{there.get(kind, 0):g}; lower {kind.lower()}s_per_worker"
                )

    def close(self) -> None:
        """End what this engine started; Ray that ran before goes on."""
        self._ledgers = {}
        started, self._started = self._started, None
        if started is not None and started == session():
            stop()

    def __enter__(self) -> RayEngine:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ledger(self) -> Any:  # noqa: ANN401
        """Return the actor that counts, which lives as long as its session of Ray."""
        import ray

        now = session() or ""
        if now not in self._ledgers:
            make = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            self._ledgers = {now: make(Ledger).remote()}
        return self._ledgers[now]

    def _pool(self) -> Pool:
        import ray

        size = self.workers
        if size is None:
            size = max(int(ray.cluster_resources().get("CPU", 0) // self.cpus_per_worker), 1)
        return Pool(
            size=size,
            cpus=self.cpus_per_worker,
            gpus=self.gpus_per_worker,
            attempts=self.attempts,
        )


def ray_engine(*, workers: int | None = None, address: str | None = None) -> RayEngine:
    """Return the engine of the entry point ``ray``; see :class:`RayEngine`."""
    return RayEngine(workers, address)
