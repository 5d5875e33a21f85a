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
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.monitor.canary import (
    Ask,
    CanaryQueries,
    RelativeDeltaSequence,
    append_point,
    ask_queries,
    ids_compared,
    open_state,
    read_measure,
    save_state,
    score_answers,
)
from rag_sourcebias.monitor.data import Alarm, CanaryPoint, check_range
from rag_sourcebias.observe.events import (
    DroppedEvents,
    closes_at_exit,
    guarded,
    renews_after_fork,
)
from rag_sourcebias.stats.ranking import relative_delta

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


# Ask canary queries of a live retriever again and again, and follow Relative Δ.


_logger = logging.getLogger("rag_sourcebias.monitor")


class CanaryProbe:
    """Follow the Relative Δ of a live retriever on queries with known twins.

    A round draws queries *with replacement*, so that every answer is an independent draw from the
    canary queries, as the confidence sequence needs; a query that is drawn twice is asked twice.
    Figures are about these queries: they stand for production as far as the queries do. Queries
    that fail are left out, so a retriever that fails on some kind of query is judged by the rest.

    Retrievals of a probe are hidden from observation (:class:`rag_sourcebias.observe.suppress`).
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
        check_range("per_round", per_round, 1)
        if timeout is not None and not timeout > 0:
            raise DataError(f"timeout must be a number of seconds above 0, or None, got {timeout}")
        for name, value in (labels or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise DataError(f"label {name!r} is {value!r}; names and values must be strings")
        self._ask, self.queries, self._doc_id = ask, queries, doc_id
        self.per_round, self._measure, self._labels = per_round, measure, dict(labels or {})
        self._timeout, self._on_alarm, self._clock = timeout, on_alarm, clock
        self._log = None if log is None else Path(log)
        self.dropped = DroppedEvents()
        self.last: CanaryPoint | None = None
        self._ids_compared = False
        self._after_fork()
        sequence = RelativeDeltaSequence(
            reference=reference,
            confidence_level=confidence_level,
            change_run_length=change_run_length,
        )
        settings = {
            "measure": measure,
            "queries": queries.fingerprint,
            "labels": dict(self._labels),
        }
        self._state = open_state(self._log, settings, sequence, rng)
        renews_after_fork(self)
        closes_at_exit(self)

    def _after_fork(self) -> None:  # the parent's thread goes on there
        self._lock, self._stop = threading.RLock(), threading.Event()
        self._thread: threading.Thread | None = None

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
            if self._thread is not None and self._thread.is_alive():
                raise DataError("the probe was started already; close it first")
            if not (math.isfinite(every) and every > 0):
                raise DataError(f"every must be a number of seconds above 0, got {every!r}")
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._loop,
                args=(every, self._stop),
                name="rag-sourcebias-canary",
                daemon=True,
            )
            self._thread.start()

    def close(self, timeout: float | None = 5.0) -> bool:
        """End the thread after the query that is being asked; False after ``timeout`` seconds."""
        self._stop.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

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

    def _loop(self, every: float, stop: threading.Event) -> None:
        due = time.monotonic()
        while not stop.is_set():
            with guarded(self.dropped, "canary round failed"), self._lock:
                if not stop.is_set():
                    self._round(stop.is_set)
            now = time.monotonic()
            due = next_due(due, now, every)
            stop.wait(due - now)

    def _round(self, stop: Callable[[], bool]) -> CanaryPoint:
        with self._lock:
            state, started = self._state, time.monotonic()
            rng = np.random.default_rng([state.entropy, state.rounds])
            answers = ask_queries(
                self._ask,
                self.queries,
                rng.integers(len(self.queries), size=self.per_round).tolist(),
                doc_id=self._doc_id,
                timeout=self._timeout,
                dropped=self.dropped,
                stop=stop,
            )
            scores = score_answers(self.queries, answers, self._measure)
            self._ids_compared = self._ids_compared or ids_compared(self.queries, answers)
            sequence = state.sequence
            left, changed = sequence.left_at, sequence.changed_at
            sequence.update(scores)
            state.rounds += 1
            now, seconds = self._clock(), time.monotonic() - started
            lower, upper = sequence.interval()
            self.last = point = CanaryPoint(
                at=now,
                measure=self._measure,
                human=self.queries.human,
                llm=self.queries.llm,
                labels=self._labels,
                round_n=len(scores),
                round_relative_delta=relative_delta(*scores.sum(axis=0).tolist()),
                n=sequence.n,
                relative_delta=sequence.estimate,
                lower=lower,
                upper=upper,
                confidence_level=sequence.confidence_level,
                reference=sequence.reference,
                alarm=sequence.left_at > 0,
                failed=answers.failed,
                seconds=seconds,
            )
            alarms = []  # what was told is not told again
            if sequence.left_at and not left:
                alarms.append(self._alarm("canary", point))
            if sequence.changed_at and not changed:
                alarms.append(self._alarm("canary-change", point))
            with contextlib.ExitStack() as after:  # whatever fails, the last one first
                after.callback(self._save)
                after.callback(self._tell, alarms)
                if self._log is not None:
                    append_point(self._log, point)
            return point

    def _alarm(self, rule: str, point: CanaryPoint) -> Alarm:
        """Say that the bounds left the reference, or that Relative Δ moved away from it.

        ``share``, ``lower``, ``upper`` and ``baseline`` are shares in [0, 1], as in every alarm:
        the human part of both scores, ½ + Δ/400. The message has Relative Δ itself.
        """
        sequence, estimate = self._state.sequence, point.relative_delta or 0.0
        left = rule == "canary"
        n = sequence.left_at if left else sequence.changed_at
        message = (
            f"Relative Δ of {point.measure} between {point.human} and {point.llm} is "
            f"{estimate:.1f} % ({100 * point.confidence_level:g} % confidence sequence "
            f"{point.lower:.1f} to {point.upper:.1f}): "
            + ("it left" if left else "it moved away from")
            + f" the reference {point.reference:.1f} after {n} canary queries"
        )
        return Alarm(
            rule=rule,
            labels=point.labels,
            by="source",
            group=point.human,
            measure=point.measure,
            n=n,
            share=_share(estimate),
            lower=_share(point.lower),
            upper=_share(point.upper),
            baseline=_share(point.reference),
            evidence=sequence.evidence if left else sequence.change_evidence,
            at=point.at,
            message=message,
        )

    def _tell(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            _logger.warning("%s", alarm.message)
            if self._on_alarm is not None:
                with guarded(self.dropped, "callback of a canary alarm raised"):
                    self._on_alarm(alarm)

    def _save(self) -> None:
        if self._log is not None:
            save_state(self._log, self._state)


def _share(delta: float) -> float:
    return 0.5 + delta / 400
