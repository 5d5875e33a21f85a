"""When to ask again, and how long to wait before."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.completions import CompletionError

__all__ = ["RetryPolicy", "with_retries"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with jitter.

    The wait before attempt i + 1 is uniform in [½, 1] · min(``base`` · 2^(i−1), ``longest``)
    seconds, or what the server asked for (Retry-After) plus up to a tenth of it.

    Parameters
    ----------
    attempts : int
        Times a request is sent at most.
    base, longest : float
        Seconds.
    patience : float
        A server that asks to wait longer than this is not asked again.
    """

    attempts: int = 5
    base: float = 1.0
    longest: float = 30.0
    patience: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise DataError(f"attempts must be at least 1, got {self.attempts}")
        for name in ("base", "longest", "patience"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise DataError(f"{name} must be a number of seconds of at least 0, got {value!r}")

    def wait(self, attempt: int, error: CompletionError) -> float | None:
        """Return the seconds to wait after failed attempt number ``attempt``; None to give up."""
        if not error.passing or attempt >= self.attempts:
            return None
        if error.retry_after is not None:
            if error.retry_after > self.patience:
                return None
            return error.retry_after * random.uniform(1.0, 1.1)
        # beyond 2^30 the cap holds anyway, and a float would overflow
        longest = min(self.base * 2.0 ** min(attempt - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


def with_retries(
    call: Callable[[], T],
    policy: RetryPolicy,
    *,
    stop: threading.Event,
    retried: Callable[[], None],
) -> T:
    """Call until it succeeds, the policy gives up, or ``stop`` is set.

    Parameters
    ----------
    call : callable
    policy : RetryPolicy
    stop : threading.Event
        Ends a wait at once.
    retried : callable
        Told of every repetition.

    Raises
    ------
    CompletionError
        The last one.
    """
    attempt = 1
    while True:
        try:
            return call()
        except CompletionError as error:
            wait = policy.wait(attempt, error)
            if wait is None or stop.wait(wait):
                raise
        attempt += 1
        retried()
