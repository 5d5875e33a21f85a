"""Ask canary queries of a live retriever again and again, and follow Relative Δ."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.events import (
    DroppedEvents,
    closes_at_exit,
    guarded,
    renews_after_fork,
)
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.monitor.canary import (
    Ask,
    CanaryQueries,
    Probed,
    RelativeDeltaSequence,
    append_point,
    ask_queries,
    ids_compared,
    open_state,
    read_measure,
    save_state,
    score_answers,
)
from rag_sourcebias.monitor.data import Alarm, CanaryPoint

# Do something every so many seconds on a thread of its own, one at a time.


def next_due(due: float, now: float, every: float) -> float:
    """Return the first time after ``now`` of those that are ``every`` seconds apart.

    Waiting for these times rather than for a pause keeps the pace; what a slow round missed is
    left out, not made up for.

    Examples
    --------
    >>> next_due(100.0, 103.0, 10.0), next_due(100.0, 127.0, 10.0)
    (110.0, 130.0)
    """
    return due + every * max(1, math.floor((now - due) / every) + 1)


class Schedule:
    """Call something at once and then every ``every`` seconds, on a daemon thread.

    Exceptions are counted and do not end it. A forked child has no such thread: the parent goes
    on.

    Parameters
    ----------
    work : callable
    every : float
        Seconds, above 0.
    dropped : DroppedEvents
    name : str
        Of the thread.
    """

    def __init__(
        self, work: Callable[[], object], *, every: float, dropped: DroppedEvents, name: str
    ) -> None:
        if not (math.isfinite(every) and every > 0):
            raise DataError(f"every must be a number of seconds above 0, got {every!r}")
        self._work, self._every, self._dropped = work, every, dropped
        self._stop = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(
            target=self._loop, name=name, daemon=True
        )
        renews_after_fork(self)
        closes_at_exit(self)
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop.is_set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def close(self, timeout: float | None = 5.0) -> bool:
        """End it; False when what it was doing took longer than ``timeout`` seconds."""
        self._stop.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

    def _loop(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            with guarded(self._dropped, "canary round failed"):
                self._work()
            now = time.monotonic()
            due = next_due(due, now, self._every)
            self._stop.wait(due - now)

    def _after_fork(self) -> None:
        self._thread, self._stop = None, threading.Event()


# Ask canary queries of a live retriever again and again, and follow Relative Δ.


_logger = logging.getLogger("rag_sourcebias.monitor")


class CanaryProbe:
    """Follow the Relative Δ of a live retriever on queries with known twins.

    A round draws queries *with replacement*, so that every answer is an independent draw from the
    canary queries, as the confidence sequence needs; a query that is drawn twice is asked twice.
    Figures are about these queries: they stand for production as far as the queries do. Queries
    that fail are left out, so a retriever that fails on some kind of query is judged by the rest.

    Retrievals of a probe are hidden from observation (:class:`rag_sourcebias.instrument.suppress`).
    Thread-safe: rounds never overlap. One process at a time may use a log.

    Parameters
    ----------
    ask : callable
        Called with the text of a query; returns document ids in rank order, other items in rank
        order (with ``doc_id``), or a :class:`RankedList`. For a :class:`Retriever` use
        :func:`ask_retriever`; for LangChain, ``retriever.invoke`` with
        ``doc_id=lambda d: d.metadata["id"]``; for LlamaIndex, ``retriever.retrieve`` with
        ``doc_id=lambda n: n.node.ref_doc_id``.
    queries : CanaryQueries
    doc_id : callable or None
        Reads the id of a document off an item.
    measure : str
        Such as ``"NDCG@5"``; out of NDCG, MAP, MRR, P and Recall.
    per_round : int
    log : path or None
        Points are appended here (:func:`read_points`); the file ``<log>.state`` beside it lets a
        restart go on. A kill loses at most the round it was in.
    labels : mapping of str to str, optional
    reference : float
        Relative Δ, in percent, that the alarm holds it against.
    confidence_level : float
        A false alarm ever comes with at most the remaining probability.
    change_run_length : float
        Queries between false alarms of change, at least on average.
    on_alarm : callable or None
        Called once for rule "canary" (the bounds left the reference) and once for "canary-change"
        (Relative Δ moved away from the reference after a quiet time), until :meth:`reset`. An
        alarm is told again when the process was killed just then.
    timeout : float or None
        Seconds; a query that takes longer counts as failed. It cannot be cut short, so give the
        retriever a time-out of its own too: a call that never returns holds up the probe.
    rng : Generator, int or None
        None draws a seed from the system; the seed of a log stays.
    clock : callable
        Unix time.

    Raises
    ------
    DataError
        If an argument is out of its range, or the log cannot be used.

    Attributes
    ----------
    dropped : DroppedEvents
        Failures, by reason.
    last : CanaryPoint or None
        Of this process.
    """

    def __init__(
        self,
        ask: Ask,
        queries: CanaryQueries,
        *,
        doc_id: Callable[[Any], str] | None = None,
        measure: str = "NDCG@5",
        per_round: int = 20,
        log: PathLike | None = None,
        labels: Mapping[str, str] | None = None,
        reference: float = 0.0,
        confidence_level: float = 0.95,
        change_run_length: float = 10_000.0,
        on_alarm: Callable[[Alarm], None] | None = None,
        timeout: float | None = None,
        rng: np.random.Generator | int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        read_measure(measure)
        if per_round < 1:
            raise DataError(f"per_round must be at least 1, got {per_round}")
        if timeout is not None and not timeout > 0:
            raise DataError(f"timeout must be a number of seconds above 0, or None, got {timeout}")
        for name, value in (labels or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise DataError(f"label {name!r} is {value!r}; names and values must be strings")
        self._ask, self.queries, self._doc_id = ask, queries, doc_id
        self.per_round = per_round
        self._probed = Probed(
            measure=measure, human=queries.human, llm=queries.llm, labels=dict(labels or {})
        )
        self._timeout, self._on_alarm, self._clock = timeout, on_alarm, clock
        self._log = None if log is None else Path(log)
        self.dropped = DroppedEvents()
        self.last: CanaryPoint | None = None
        self._lock = threading.RLock()
        self._schedule: Schedule | None = None
        self._ids_compared = False
        sequence = RelativeDeltaSequence(
            reference=reference,
            confidence_level=confidence_level,
            change_run_length=change_run_length,
        )
        settings = {
            "measure": measure,
            "queries": queries.fingerprint,
            "labels": dict(self._probed.labels),
        }
        self._state = open_state(self._log, settings, sequence, rng)
        renews_after_fork(self)

    def run_round(self) -> CanaryPoint:
        """Ask one round; errors of the retriever are counted in the point, not raised.

        Raises
        ------
        DataError
            If the log cannot be written. The round counts all the same.
        """
        return self._round(lambda: False)

    def start(self, *, every: float) -> None:
        """Run a round now and then every ``every`` seconds, on a daemon thread.

        A round that takes longer leaves out those it overlaps. Errors are counted in ``dropped``.

        Raises
        ------
        DataError
            If it was started already, or ``every`` is not above 0.
        """
        with self._lock:
            if self._schedule is not None and self._schedule.alive:
                raise DataError("the probe was started already; close it first")
            self._schedule = Schedule(
                self._scheduled, every=every, dropped=self.dropped, name="rag-sourcebias-canary"
            )

    def close(self, timeout: float | None = 5.0) -> bool:
        """End the thread after the query that is being asked; False after ``timeout`` seconds."""
        schedule = self._schedule
        return schedule is None or schedule.close(timeout)

    def reset(self) -> None:
        """Start the figures anew, as after a new index: the old ones would mix both.

        Raises
        ------
        DataError
            If the state cannot be written.
        """
        with self._lock:
            self._state.sequence = RelativeDeltaSequence(**self._state.sequence.settings)
            self._save()

    def __enter__(self) -> CanaryProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scheduled(self) -> None:
        with self._lock:  # which start() holds until the schedule is known
            schedule = self._schedule
            if schedule is not None and not schedule.stopping:
                self._round(lambda: schedule.stopping)

    def _round(self, stop: Callable[[], bool]) -> CanaryPoint:
        with self._lock:
            state, started = self._state, time.monotonic()
            answers = ask_queries(
                self._ask,
                self.queries,
                state.draw(len(self.queries), self.per_round),
                doc_id=self._doc_id,
                timeout=self._timeout,
                dropped=self.dropped,
                stop=stop,
            )
            scores = score_answers(self.queries, answers, self._probed.measure)
            self._ids_compared = self._ids_compared or ids_compared(self.queries, answers)
            sequence = state.sequence
            before = sequence.left_at, sequence.changed_at
            sequence.update(scores)
            state.rounds += 1
            now, seconds = self._clock(), time.monotonic() - started
            self.last = point = self._probed.point(
                scores, sequence, at=now, failed=answers.failed, seconds=seconds
            )
            alarms = self._probed.alarms(sequence, before=before, at=now)
            with contextlib.ExitStack() as after:  # whatever fails, the last one first
                after.callback(self._save)
                after.callback(self._tell, alarms)
                if self._log is not None:
                    append_point(self._log, point)
            return point

    def _tell(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            _logger.warning("%s", alarm.message)
            if self._on_alarm is not None:
                with guarded(self.dropped, "callback of a canary alarm raised"):
                    self._on_alarm(alarm)

    def _save(self) -> None:
        if self._log is not None:
            save_state(self._log, self._state)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
