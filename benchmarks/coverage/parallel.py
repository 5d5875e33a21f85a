"""Independent pieces of work in a few processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor

# One thread each: the matrices are small, and idle threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
WORKERS = min(len(_CORES), 2)


def everywhere(work: Callable[..., list[dict]], jobs: Iterable[dict]) -> list[dict]:
    """Concatenate ``work(**job)`` over the jobs, in their order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        futures = [pool.submit(work, **job) for job in jobs]
        return [row for future in futures for row in future.result()]
