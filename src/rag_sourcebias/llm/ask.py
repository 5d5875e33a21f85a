"""Many requests to one completer: at once, again after failures, and never twice."""

import json
import math
import random
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path

from rag_sourcebias.core.caches import SqliteFile
from rag_sourcebias.core.codec import from_plain, to_plain
from rag_sourcebias.core.completions import Completion, CompletionError, LabelScores, Request, Usage
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import Completer

# When to ask again, and how long to wait before.


@dataclass(frozen=True, kw_only=True)
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

    def wait(self, attempt: int, error: CompletionError) -> float | None:
        """Return the seconds to wait after failed attempt number ``attempt``; None to give up."""
        if not error.passing or attempt >= self.attempts:
            return None
        if error.retry_after is not None:
            return (
                error.retry_after * random.uniform(1.0, 1.1)
                if error.retry_after <= self.patience
                else None
            )
        # beyond 2^30 the cap holds anyway, and a float would overflow
        longest = min(self.base * 2.0 ** min(attempt - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


# What tokens cost.


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of one model. They change: the library ships none.

    Parameters
    ----------
    prompt, completion : float
        Price of a million tokens, read and written.
    currency : str

    Examples
    --------
    >>> Prices(prompt=0.15, completion=0.60).cost(prompt_tokens=2_000_000, completion_tokens=10_000)
    0.306
    """

    prompt: float
    completion: float
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("completion", self.completion)):
            if not (value >= 0 and math.isfinite(value)):
                raise DataError(
                    f"{name} price {value!r} is not a price; give the price of a million tokens"
                )

    def cost(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what that many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


# Answers of language models kept on disk, so that nothing is asked and paid for twice.
# One SQLite file, readable and writable by several processes at once. A run that is killed loses
# the answers that were on their way and nothing else.


Answer = Completion | LabelScores

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL) "
    "WITHOUT ROWID"
)


def request_key(fingerprint: str, request: Request) -> bytes:
    """Return the 128-bit BLAKE2b hash of a request to the completer with that fingerprint."""
    parts = (
        [fingerprint, "labels", request.prompt, list(request.labels)]
        if request.labels
        else [
            fingerprint,
            "text",
            request.prompt,
            request.max_tokens,
            request.temperature,
            request.sample,
        ]
    )
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


class CompletionCache:
    """Store of answers by the hash of completer and request.

    Prompts are not stored, only their hash; answers are. A connection is opened for each call, so
    that one object may be shared between threads and survives a fork.

    Parameters
    ----------
    path : str or Path
        SQLite file; it and its folder are created on first use.

    Raises
    ------
    DataError
        By every method, if the file is damaged, is not such a cache, or cannot be opened or
        written.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path, _SCHEMA)
        self.path = self._file.path

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return the answers that are there."""
        rows = self._file.rows_of("SELECT request, answer FROM answers WHERE request IN ({})", keys)
        return {key: self._decoded(text) for key, text in rows}

    def put(self, answers: Mapping[bytes, Answer]) -> None:
        """Store answers in one transaction; existing ones are replaced."""
        if not answers:
            return
        self._file.create_folder()
        rows = [(key, json.dumps(to_plain(answer))) for key, answer in answers.items()]
        with self._file.connection() as database:
            database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)

    def _decoded(self, text: str) -> Answer:
        try:
            data = json.loads(text)
            kind: type[Answer] = LabelScores if "n_bounded" in data else Completion
            return from_plain(kind, data)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._file.damaged(f"stored answer {text!r:.60}") from error


# Many requests to one completer: at once, again after failures, and never twice.


_BLOCK = 256  # requests looked up in the cache together
_UNREACHABLE = 3  # times as many as may be in flight: that many failures in a row end the run
_FEWEST = 10  # failures in a row that end a run, however few may be in flight
_GRACE = 5.0  # seconds for answers that are on their way when a run is interrupted
_SERVER_DOWN = ("unreachable", "timeout", "server")


@dataclass(frozen=True, kw_only=True)
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


@dataclass
class _Run:
    """What is on its way, and what has been counted."""

    pool: ThreadPoolExecutor
    stop: threading.Event = field(default_factory=threading.Event)
    futures: dict[Future[Answer], bytes] = field(default_factory=dict)
    waiting: dict[bytes, list[int]] = field(default_factory=dict)
    known: dict[bytes, Answer] = field(default_factory=dict)
    answered: int = 0
    failed_in_a_row: int = 0
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
        require_at_least(1, concurrency=concurrency)
        self.completer = completer
        self.cache = cache
        self.concurrency = min(concurrency or completer.max_concurrency, completer.max_concurrency)
        self.retry = retry or RetryPolicy()
        self._lock = threading.Lock()
        self._counts = asdict(Usage())
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
        run = _Run(ThreadPoolExecutor(self.concurrency, thread_name_prefix="ask"))
        try:
            while block := list(islice(numbered, _BLOCK)):
                keys = [request_key(fingerprint, request) for _, request in block]
                if self.cache is None:
                    run.known = self._remembered
                else:
                    run.known = self.cache.get(list(dict.fromkeys(keys)))
                for (index, request), key in zip(block, keys, strict=True):
                    yield from map(self._counted, self._one(run, index, key, request))
            while run.futures:
                yield from map(self._counted, self._landed(run))
        finally:
            run.stop.set()
            run.pool.shutdown(wait=False, cancel_futures=True)
            done, _ = wait(run.futures, timeout=_GRACE)
            self._store(run, done)

    def _one(self, run: _Run, index: int, key: bytes, request: Request) -> Iterator[Outcome]:
        """Answer from the cache, join an equal request on its way, or send."""
        if key not in run.known and key not in run.waiting:
            # As many again lie ready, so that no thread waits for the caller to come back.
            while len(run.futures) >= 2 * self.concurrency:
                yield from self._landed(run)
        if key in run.known:
            yield Outcome(index=index, answer=run.known[key], cached=True)
        elif key in run.waiting:
            run.waiting[key].append(index)
        elif run.fatal is not None:
            yield Outcome(index=index, error=_not_asked(run))
        else:
            run.waiting[key] = [index]
            run.futures[run.pool.submit(self._send, run, request)] = key

    def _send(self, run: _Run, request: Request) -> Answer:
        """Ask, in a thread, and decide whether the run can go on."""
        try:
            answer = self._answer(run, request)
        except CompletionError as error:
            self._watch(run, error)
            raise
        except BaseException:
            run.stop.set()
            raise
        self._watch(run, None)
        return answer

    def _answer(self, run: _Run, request: Request) -> Answer:
        """Ask until there is an answer or the policy gives up."""
        for attempt in count(1):
            if run.stop.is_set():
                break
            try:
                if request.labels:
                    return self.completer.label_logprobs(request.prompt, request.labels)
                return self.completer.complete(
                    request.prompt,
                    max_tokens=request.max_tokens,
                    temperature=request.temperature,
                    seed=request.sample,
                )
            except CompletionError as error:
                seconds = self.retry.wait(attempt, error)
                if seconds is None or run.stop.wait(seconds):
                    raise
            with self._lock:
                self._counts["retries"] += 1
        raise _not_asked(run)

    def _landed(self, run: _Run) -> list[Outcome]:
        """Wait for at least one request, store the answers, and return the outcomes."""
        done, _ = wait(run.futures, return_when=FIRST_COMPLETED)
        self._store(run, done)
        outcomes = []
        for future in done:
            key = run.futures.pop(future)
            error = future.exception()
            if error is not None and not isinstance(error, CompletionError):
                raise error
            answer = None if error is not None else future.result()
            if answer is not None:
                run.known[key] = answer
            for position, index in enumerate(run.waiting.pop(key)):
                cached = position > 0 and answer is not None
                outcomes.append(Outcome(index=index, answer=answer, error=error, cached=cached))
        if run.fatal is not None and not run.answered:
            raise run.fatal
        return outcomes

    def _store(self, run: _Run, done: Iterable[Future[Answer]]) -> None:
        """Store answers, all in one transaction: one each would be slower than a fast server."""
        if self.cache is None:
            return
        answers = {}
        for future in done:
            if not future.cancelled() and future.exception() is None:
                answer = future.result()
                # A NaN is not stored: it would outlive the fault that caused it.
                if not any(map(math.isnan, answer.logprobs or ())):
                    answers[run.futures[future]] = answer
        self.cache.put(answers)

    def _watch(self, run: _Run, error: CompletionError | None) -> None:
        """Count how requests end, and stop the run where all others would fail alike."""
        with self._lock:
            if error is None:
                run.answered += 1
                run.failed_in_a_row = 0
                return
            for_all = error.fatal or error.reason in _SERVER_DOWN
            run.failed_in_a_row = run.failed_in_a_row + 1 if for_all else 0
            first = error.fatal and not run.answered
            if first or run.failed_in_a_row >= max(_UNREACHABLE * self.concurrency, _FEWEST):
                run.fatal = run.fatal or error
                run.stop.set()

    def _counted(self, outcome: Outcome) -> Outcome:
        self._counts["requests"] += 1
        if outcome.answer is None:
            self._counts["failed"] += 1
        elif outcome.cached:
            self._counts["from_cache"] += 1
        else:
            self._counts["prompt_tokens"] += outcome.answer.prompt_tokens
            self._counts["completion_tokens"] += outcome.answer.completion_tokens
        return outcome


def _not_asked(run: _Run) -> CompletionError:
    return CompletionError(f"not asked: {run.fatal or 'the run was stopped'}", reason="not_asked")
