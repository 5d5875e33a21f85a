"""An engine whose workers are actors of Ray Data."""

from __future__ import annotations

import logging
import math
import os
import socket
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from typing import Any, TypeVar
from uuid import uuid4

from rag_sourcebias.core.errors import (
    DataError,
    MissingExtraError,
    SourceBiasError,
    require_at_least,
)
from rag_sourcebias_integrations._require import require
from rag_sourcebias_integrations.ray.worker import (
    DONE,
    LOST,
    NOT_PREPARED,
    GroupWorker,
    Ledger,
    pack,
    pack_job,
    unpack,
    unpack_error,
)

# Ray itself: started here, joined, or found running in this process.


_FEATURE = "the Ray engine"
_PATIENCE = 5.0  # seconds for the first answer of a cluster
# Statistics of use would go to Ray's makers.
_UNREPORTED = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_USAGE_DISABLED": "1"}
# What Ray would write to standard error, or take from an environment of uv.
_SILENT = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Ray's warnings about itself from the caller, who cannot act on them."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        yield


@contextmanager
def unreported() -> Iterator[None]:
    """Keep Ray from collecting statistics of use, unless the caller asked for them; see quiet."""
    with quiet(), _environment(_UNREPORTED):
        yield


def start(address: str | None, cpus: int | None) -> bool:
    """Make sure that Ray runs in this process.

    Parameters
    ----------
    address : str or None
        Cluster to join, ``host:port`` or "auto"; None joins what ``RAY_ADDRESS`` names and
        otherwise starts Ray on this machine, with as many CPUs as there are workers.
    cpus : int or None
        None for all.

    Returns
    -------
    bool
        False if it ran already: it then is the caller's, whatever its address.

    Raises
    ------
    DataError
        If the cluster does not answer.
    """
    import ray

    if ray.is_initialized():
        return False
    wanted = address or os.environ.get("RAY_ADDRESS") or None
    with unreported(), _environment(_SILENT):
        if wanted is None:
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                _node_ip_address="127.0.0.1",
            )
            return True
        reach(wanted)
        try:
            ray.init(address=wanted, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError) as error:
            if "Authentication" in f"{error} {error.__cause__}":
                raise DataError(
                    f"the Ray cluster at {wanted!r} does not let this process in; give it the "
                    "cluster's token (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN_PATH)"
                ) from error
            raise DataError(f"no Ray cluster answers at {wanted!r}: {error}") from error
    return True


def session() -> str | None:
    """Return what tells one start of Ray in this process from another; None where it is off."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else None


def reach(address: str) -> None:
    """Connect once: Ray itself would try for minutes and then end the process."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise DataError(
            f"Ray address {address!r} is not understood; expected host:port of the head node "
            "(such as 10.0.0.5:6379) or 'auto'"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise DataError(
            f"no Ray cluster answers at {address!r} ({error}); start one with "
            "ray start --head, or leave the address out to use this machine"
        ) from error


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set variables that are not set, and remove them again."""
    ours = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


# The pipeline of Ray Data that works on pickled items.


_GROUPS = 2000  # tasks of one job at most: each costs the caller's process milliseconds


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

    def results(
        self,
        engine: RayEngine,
        ledger: Any,  # noqa: ANN401
    ) -> Generator[tuple[int, Any], None, None]:
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
            with closing(self._replies(engine, ledger)) as replies:
                for reply in replies:
                    first, failed, data = int(reply["first"]), int(reply["failed"]), reply["data"]
                    if failed != DONE:
                        raise self._error(first, failed, data, engine.attempts)
                    done += 1
                    for index, result in enumerate(unpack(data, "results"), start=first):
                        yield index, unpack(result, f"the result of item {index}")
        except RayError as error:
            raise SourceBiasError(
                f"Ray failed when {done} of {len(self._rows)} tasks were done: {error}"
            ) from error
        ledger.forget.remote(self._name)

    def _replies(
        self,
        engine: RayEngine,
        ledger: Any,  # noqa: ANN401
    ) -> Generator[Mapping[str, Any], None, None]:
        import ray
        from ray.data import ActorPoolStrategy, DataContext

        workers = engine.workers or max(int(ray.cluster_resources().get("CPU", 0)), 1)
        with unreported(), _silent("ray.data"):
            context = DataContext.get_current().copy()
            context.enable_progress_bars = False
            context.print_on_execution_start = False
            with DataContext.current(context):  # what it makes keeps it; the caller's is restored
                data = ray.data.from_items(self._rows, override_num_blocks=len(self._rows)).map(
                    GroupWorker,
                    fn_constructor_args=(self._prepare, self._name, ledger, engine.attempts),
                    compute=ActorPoolStrategy(
                        size=min(workers, len(self._rows)), max_tasks_in_flight_per_actor=1
                    ),
                    num_cpus=1,
                    num_gpus=engine.gpus_per_worker or None,
                )
            for batch in data.iter_batches(
                batch_size=None, batch_format="pyarrow", prefetch_batches=0
            ):
                yield from batch.to_pylist()

    def _error(self, first: int, failed: int, data: bytes, attempts: int) -> SourceBiasError:
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


# An engine whose workers are actors of Ray Data.


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
        gpus_per_worker: float = 0,
        attempts: int = 4,
    ) -> None:
        require_at_least(0, gpus_per_worker=gpus_per_worker)
        require_at_least(1, workers=workers, attempts=attempts)
        with quiet():
            require("ray", package="ray", extra="ray", feature=_FEATURE)
            try:
                import ray.data  # noqa: F401
            except ImportError as error:
                if error.name not in ("pyarrow", "pandas", "fsspec"):
                    raise
                package = "ray[data]"
                raise MissingExtraError(package=package, extra="ray", feature=_FEATURE) from error
        self.workers = workers
        self.address = address
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

        See :meth:`rag_sourcebias.core.Engine.map`.

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
            with closing(job.results(self, self._ledger())) as ended:
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
            If the cluster does not answer or has too few GPUs for one worker.
        """
        import ray

        if start(self.address, self.workers):
            self._started = session()
        there = ray.cluster_resources().get("GPU", 0)
        if there < self.gpus_per_worker:
            raise DataError(
                f"a worker needs {self.gpus_per_worker:g} GPUs, the Ray cluster has {there:g}; "
                "lower gpus_per_worker"
            )

    def close(self) -> None:
        """End what this engine started; Ray that ran before goes on."""
        self._ledgers = {}
        started = self._started
        self._started = None
        if started is not None and started == session():
            import ray

            with quiet():
                ray.shutdown()

    def __enter__(self) -> RayEngine:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ledger(self) -> Any:  # noqa: ANN401
        """Return the actor that counts, which lives as long as its session of Ray."""
        import ray

        now = session() or ""
        if now not in self._ledgers:
            make = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            self._ledgers = {now: make(Ledger).remote()}
        return self._ledgers[now]


def ray_engine(*, workers: int | None = None, address: str | None = None) -> RayEngine:
    """Return the engine of the entry point ``ray``; see :class:`RayEngine`."""
    return RayEngine(workers, address)
