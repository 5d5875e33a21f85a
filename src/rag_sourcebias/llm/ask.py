"""Many requests to one completer: at once, again after failures, and never twice."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from rag_sourcebias.errors import DataError
from rag_sourcebias.llm.cache import Answer, CompletionCache, request_key
from rag_sourcebias.llm.retry import RetryPolicy, with_retries
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.completions import CompletionError, Request, Usage

__all__ = ["Asker", "Outcome", "ask_all"]

_BLOCK = 256  # requests looked up in the cache together, and answers stored at the latest
_UNREACHABLE = 3  # times as many as may be in flight: that many failures in a row end the run
_SAVE_EVERY = 0.05  # seconds at most that an answer is only in memory
_LOOK_AGAIN = 0.005
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


class _End(NamedTuple):
    """How a request ended, as its thread reports it; ``error`` may be of one's own code."""

    key: bytes
    answer: Answer | None
    error: BaseException | None


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
    """One run: what is on its way and what has been counted.

    The threads write down how a request ended before they take the next one, so that an
    interruption of the caller's thread loses nothing.
    """

    pool: ThreadPoolExecutor
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)
    ended: SimpleQueue[_End] = field(default_factory=SimpleQueue)
    waiting: dict[bytes, list[int]] = field(default_factory=dict)
    known: dict[bytes, Answer] = field(default_factory=dict)
    unsaved: dict[bytes, Answer] = field(default_factory=dict)
    cache_open: ExitStack = field(default_factory=ExitStack)
    holding: bool = False
    sending: int = 0
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
                    state.known = self.cache.get(list(dict.fromkeys(keys)))
                    with state.lock:
                        state.known |= state.unsaved
                for (index, request), key in zip(block, keys, strict=True):
                    for outcome in self._one(state, index, key, request):
                        self._count(outcome)
                        yield outcome
            while state.waiting:
                for outcome in self._landed(state):
                    self._count(outcome)
                    yield outcome
        finally:
            self._close(state)

    def _one(self, state: _State, index: int, key: bytes, request: Request) -> Iterator[Outcome]:
        """Answer from the cache, join an equal request on its way, or send."""
        if key not in state.known and key not in state.waiting:
            # As many again lie ready, so that no thread waits for the caller to come back.
            while len(state.waiting) >= 2 * self.concurrency:
                yield from self._landed(state)
        if key in state.known:
            yield Outcome(index=index, answer=state.known[key], cached=True)
        elif key in state.waiting:
            state.waiting[key].append(index)
        elif state.fatal is not None:
            yield Outcome(index=index, error=_not_asked(state))
        else:
            state.waiting[key] = [index]
            state.pool.submit(self._send, state, key, request)

    def _send(self, state: _State, key: bytes, request: Request) -> None:
        """Ask, in a thread, and write down how it ended."""
        answer: Answer | None = None
        error: BaseException | None = None
        with state.lock:
            state.sending += 1
        try:
            answer = self._attempts(state, request)
        except BaseException as caught:  # noqa: BLE001 - raised again where the caller reads
            error = caught
        with state.lock:
            state.sending -= 1
            if answer is not None:
                state.unsaved[key] = answer
            if error is None or isinstance(error, CompletionError):
                self._watch(state, error)
            else:
                state.stop.set()
        state.ended.put(_End(key, answer, error))

    def _attempts(self, state: _State, request: Request) -> Answer:
        if state.stop.is_set():
            raise _not_asked(state)
        return with_retries(
            lambda: self._attempt(request),
            self.retry,
            stop=state.stop,
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
        """Wait for at least one request and return the outcomes."""
        outcomes: list[Outcome] = []
        for key, answer, error in self._ends(state):
            if error is not None and not isinstance(error, CompletionError):
                raise error
            if answer is not None:
                state.known[key] = answer
            for position, index in enumerate(state.waiting.pop(key)):
                again = position > 0 and answer is not None
                outcomes.append(Outcome(index=index, answer=answer, error=error, cached=again))
        if state.fatal is not None and not state.answered:
            raise state.fatal
        return outcomes

    def _ends(self, state: _State) -> list[_End]:
        """Wait for a request; meanwhile store what has come since the last time.

        One transaction per answer would be slower than a fast server.
        """
        now = time.monotonic()
        if state.unsaved and (now >= state.save_at or len(state.unsaved) >= _BLOCK):
            self._save(state)
        timeout = max(state.save_at - now, 0.0) if state.unsaved else None
        try:
            ends = [state.ended.get(timeout=timeout)]
        except Empty:
            self._save(state)
            ends = [state.ended.get()]
        while not state.ended.empty():
            ends.append(state.ended.get())
        return ends

    def _save(self, state: _State) -> None:
        with state.lock:
            answers = dict(state.unsaved)
        # A NaN is not stored: it would outlive the fault that caused it.
        good = {key: answer for key, answer in answers.items() if not _has_nan(answer)}
        if self.cache is not None and good:
            self.cache.put(good)
            if not state.holding:
                state.cache_open.enter_context(self.cache.held())
                state.holding = True
        with state.lock:
            for key in answers:
                del state.unsaved[key]
        state.save_at = time.monotonic() + _SAVE_EVERY

    def _watch(self, state: _State, error: CompletionError | None) -> None:
        """Decide whether the run can go on; called with the lock held."""
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
        state.pool.shutdown(wait=False, cancel_futures=True)
        last = time.monotonic() + _GRACE
        while state.sending and time.monotonic() < last:
            time.sleep(_LOOK_AGAIN)
        with state.cache_open:
            self._save(state)

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


def _not_asked(state: _State) -> CompletionError:
    why = f"not asked: {state.fatal or 'the run was stopped'}"
    return CompletionError(why, reason="not_asked")


def _has_nan(answer: Answer) -> bool:
    return any(math.isnan(value) for value in answer.logprobs or ())
