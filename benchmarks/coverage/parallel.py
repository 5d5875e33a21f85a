"""Independent pieces of work in a few processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

# One thread each: the matrices are small, and idle threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
WORKERS = min(len(_CORES), 2)


def each(work: Callable[..., list[dict]], jobs: Iterable[dict]) -> Iterator[list[dict]]:
    """Yield ``work(**job)`` for one job after the other, in their order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        for future in [pool.submit(work, **job) for job in jobs]:
            yield future.result()


def everywhere(work: Callable[..., list[dict]], jobs: Iterable[dict]) -> list[dict]:
    """Concatenate ``work(**job)`` over the jobs, in their order."""
    return [row for rows in each(work, jobs) for row in rows]
