"""Many requests to one completer: at once, again after failures, and never twice."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice

from rag_sourcebias.errors import DataError
from rag_sourcebias.llm.cache import Answer, CompletionCache, request_key
from rag_sourcebias.llm.retry import RetryPolicy, with_retries
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.completions import CompletionError, Request, Usage

__all__ = ["Asker", "Outcome", "ask_all"]

_BLOCK = 256  # requests looked up in the cache together
_UNREACHABLE = 3  # times as many as may be in flight: that many failures in a row end the run
_SAVE_EVERY = 0.05  # seconds at most that an answer is only in memory
_GRACE = 5.0  # seconds for answers that are on their way when a run is interrupted
_SERVER_DOWN = ("unreachable", "timeout", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one request ended: with an answer or with an error.

    Parameters
    ----------
    index : int
        Position of the request.
    answer : Completion, LabelScores or None
    error : CompletionError or None
    cached : bool
    """

    index: int
    answer: Answer | None = None
    error: CompletionError | None = None
    cached: bool = False


def ask_all(
    completer: Completer,
    requests: Iterable[Request],
    *,
    cache: CompletionCache | None = None,
    concurrency: int | None = None,
    retry: RetryPolicy | None = None,
) -> Iterator[Outcome]:
    """Yield one outcome per request, in the order in which they end.

    See :class:`Asker`, which also counts.
    """
    return Asker(completer, cache=cache, concurrency=concurrency, retry=retry).ask(requests)


@dataclass
class _State:
    """One run: what is in flight and what has been counted."""

    pool: ThreadPoolExecutor
    stop: threading.Event = field(default_factory=threading.Event)
    flying: dict[Future[Answer], bytes] = field(default_factory=dict)
    waiting: dict[bytes, list[int]] = field(default_factory=dict)
    known: dict[bytes, Answer] = field(default_factory=dict)
    unsaved: dict[bytes, Answer] = field(default_factory=dict)
    save_at: float = 0.0
    answered: int = 0
    in_a_row: int = 0
    fatal: CompletionError | None = None


class Asker:
    """Ask a completer, with a cache, threads and retries.

    Answers are stored as they arrive; failures are not, so that a later run asks again. Requests
    that are equal are sent once. Requests are read as they are needed (a few hundred ahead), so
    that memory does not grow with their number; without a cache on disk, answers are remembered in
    memory for the length of a run.

    A run stops early when its first requests fail in a way that all would (a wrong key), or when
    many in a row fail so, or because the server is down. If nothing had been answered by then, the
    error is raised; otherwise the remaining requests end as ``not_asked``.

    Parameters
    ----------
    completer : Completer
    cache : CompletionCache, optional
    concurrency : int, optional
        Requests in flight; the completer's ``max_concurrency`` at most and by default.
    retry : RetryPolicy, optional
    """

    def __init__(
        self,
        completer: Completer,
        *,
        cache: CompletionCache | None = None,
        concurrency: int | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise DataError(f"concurrency must be at least 1, got {concurrency}")
        self.completer = completer
        self.cache = cache
        self.concurrency = min(concurrency or completer.max_concurrency, completer.max_concurrency)
        self.retry = retry or RetryPolicy()
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Usage.__slots__, 0)
        self._remembered: dict[bytes, Answer] = {}

    @property
    def usage(self) -> Usage:
        """What has been asked so far."""
        return Usage(**self._counts)

    def ask(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield one outcome per request, in the order in which they end.

        When the caller stops reading or the run is interrupted, answers that arrive within a few
        seconds are still stored.

        Raises
        ------
        CompletionError
            If the run had to stop before anything was answered.
        """
        fingerprint = self.completer.fingerprint
        numbered = enumerate(requests)
        state = _State(ThreadPoolExecutor(self.concurrency, thread_name_prefix="ask"))
        try:
            while block := list(islice(numbered, _BLOCK)):
                keys = [request_key(fingerprint, request) for _, request in block]
                if self.cache is None:
                    state.known = self._remembered
                else:
                    state.known = self.cache.get(list(dict.fromkeys(keys))) | state.unsaved
                for (index, request), key in zip(block, keys, strict=True):
                    for outcome in self._one(state, index, key, request):
                        self._count(outcome)
                        yield outcome
            while state.flying:
                for outcome in self._landed(state):
                    self._count(outcome)
                    yield outcome
        finally:
            self._close(state)

    def _one(self, state: _State, index: int, key: bytes, request: Request) -> Iterator[Outcome]:
        """Answer from the cache, join an equal request in flight, or send."""
        if key not in state.known and key not in state.waiting:
            while len(state.flying) >= self.concurrency:
                yield from self._landed(state)
        if key in state.known:
            yield Outcome(index=index, answer=state.known[key], cached=True)
        elif key in state.waiting:
            state.waiting[key].append(index)
        elif state.fatal is not None:
            error = CompletionError(f"not asked: {state.fatal}", reason="not_asked")
            yield Outcome(index=index, error=error)
        else:
            state.waiting[key] = [index]
            state.flying[state.pool.submit(self._attempts, request, state.stop)] = key

    def _attempts(self, request: Request, stop: threading.Event) -> Answer:
        if stop.is_set():
            raise CompletionError("the run was stopped", reason="not_asked")
        return with_retries(
            lambda: self._attempt(request),
            self.retry,
            stop=stop,
            retried=self._count_retry,
        )

    def _attempt(self, request: Request) -> Answer:
        if request.labels:
            return self.completer.label_logprobs(request.prompt, request.labels)
        return self.completer.complete(
            request.prompt,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            seed=request.sample,
        )

    def _landed(self, state: _State) -> list[Outcome]:
        """Wait for at least one request, keep the answers, and return the outcomes."""
        done = self._wait(state)
        results = {future: _result(future) for future in done}
        # Kept before they are taken off the list, so that an interruption here loses nothing.
        answers = {state.flying[f]: answer for f, (answer, _) in results.items() if answer}
        state.unsaved.update(answers)
        state.known.update(answers)
        outcomes: list[Outcome] = []
        for future, (answer, error) in results.items():
            self._watch(state, error)
            for position, index in enumerate(state.waiting.pop(state.flying.pop(future))):
                again = position > 0 and answer is not None
                outcomes.append(Outcome(index=index, answer=answer, error=error, cached=again))
        if state.fatal is not None and not state.answered:
            raise state.fatal
        return outcomes

    def _wait(self, state: _State) -> set[Future[Answer]]:
        """Wait for a request; meanwhile store what has come since the last time.

        One transaction per answer would be slower than a fast server.
        """
        now = time.monotonic()
        if state.unsaved and now >= state.save_at:
            self._save(state)
        timeout = max(state.save_at - now, 0.0) if state.unsaved else None
        done, _ = wait(state.flying, timeout=timeout, return_when=FIRST_COMPLETED)
        if not done:
            self._save(state)
            done, _ = wait(state.flying, return_when=FIRST_COMPLETED)
        return done

    def _save(self, state: _State) -> None:
        # A NaN is not stored: it would outlive the fault that caused it.
        good = {key: answer for key, answer in state.unsaved.items() if not _has_nan(answer)}
        if self.cache is not None:
            self.cache.put(good)
        state.unsaved.clear()
        state.save_at = time.monotonic() + _SAVE_EVERY

    def _watch(self, state: _State, error: CompletionError | None) -> None:
        """Decide whether the run can go on."""
        if error is None:
            state.answered += 1
            state.in_a_row = 0
            return
        down = error.fatal or error.reason in _SERVER_DOWN
        state.in_a_row = state.in_a_row + 1 if down else 0
        first = error.fatal and not state.answered
        if first or state.in_a_row >= max(_UNREACHABLE * self.concurrency, 10):
            state.fatal = state.fatal or error
            state.stop.set()

    def _close(self, state: _State) -> None:
        state.stop.set()
        if state.flying:
            done, _ = wait(state.flying, timeout=_GRACE)
            good = [f for f in done if not f.cancelled() and f.exception() is None]
            state.unsaved.update({state.flying[f]: f.result() for f in good})
        self._save(state)
        state.pool.shutdown(wait=False, cancel_futures=True)

    def _count(self, outcome: Outcome) -> None:
        self._counts["requests"] += 1
        if outcome.answer is None:
            self._counts["failed"] += 1
        elif outcome.cached:
            self._counts["from_cache"] += 1
        else:
            self._counts["prompt_tokens"] += outcome.answer.prompt_tokens
            self._counts["completion_tokens"] += outcome.answer.completion_tokens

    def _count_retry(self) -> None:
        with self._lock:  # called from the threads
            self._counts["retries"] += 1


def _result(future: Future[Answer]) -> tuple[Answer | None, CompletionError | None]:
    """Take a finished future apart; an error that is not one request's own is raised."""
    error = future.exception()
    if error is None:
        return future.result(), None
    if isinstance(error, CompletionError):
        return None, error
    raise error


def _has_nan(answer: Answer) -> bool:
    return any(math.isnan(value) for value in answer.logprobs or ())
