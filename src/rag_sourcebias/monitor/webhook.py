"""Tell an HTTP endpoint of alarms, without making the application wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.process import renews_after_fork
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.monitor.endpoint import Endpoint
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot

__all__ = ["WebhookSink"]

_LONGEST_PAUSE = 60.0  # seconds


class WebhookSink:
    """POST each alarm as JSON, from a thread of its own.

    The body is ``{"kind": "alarm", "version": 1, "alarm": {…}}``, with the fields of
    :class:`~rag_sourcebias.types.monitor.Alarm`; numbers that are not finite are null. Any 2xx
    status is success. No connection, no answer in time, 408, 425, 429 and 5xx are tried again
    after pauses that double; any other status (redirects, too: they are not followed) is final.
    An alarm that was not accepted is dropped and counted. An endpoint may get an alarm twice,
    when its answer was lost: then ``Rag-Sourcebias-Delivery`` is the same.

    With a secret each request carries ``Rag-Sourcebias-Timestamp`` (Unix seconds) and
    ``Rag-Sourcebias-Signature``: ``sha256=`` and the hexadecimal HMAC-SHA256 of timestamp, a full
    stop and body. Neither the secret nor the path of the URL (which often holds a token) appears
    in logs, errors or ``repr``.

    Parameters
    ----------
    url : str
        Starts with ``http://`` or ``https://``; connected to directly, without proxies. The
        certificate of an https endpoint is checked.
    timeout : float
        Seconds that connecting, sending and each wait for the answer may take, above 0.
    secret : str, bytes or None
    capacity : int
        Alarms waiting or being sent, at least 1; further ones are dropped and counted.
    attempts : int
        Requests for one alarm, at least 1.
    pause : float
        Seconds before the second attempt, above 0; no pause is longer than 60 s.

    Attributes
    ----------
    dropped : DroppedEvents
        Alarms that were not delivered, by reason.

    Raises
    ------
    DataError
        If a parameter is out of range, or the URL is none that can be posted to.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 5.0,
        secret: str | bytes | None = None,
        capacity: int = 100,
        attempts: int = 5,
        pause: float = 0.5,
    ) -> None:
        if not attempts >= 1:
            raise DataError(f"attempts must be at least 1, got {attempts}")
        if not 0 < pause < float("inf"):
            raise DataError(f"pause must be a number of seconds above 0, got {pause}")
        self._endpoint = Endpoint(url, timeout=timeout, secret=secret)
        self._attempts, self._pause = attempts, pause
        self._hurry = threading.Event()
        self.dropped = DroppedEvents()
        self._queue: EventQueue[Alarm] = EventQueue(_Poster(self), self.dropped, capacity=capacity)
        renews_after_fork(self)

    def __repr__(self) -> str:
        return f"WebhookSink({self._endpoint.shown!r})"

    def alarm(self, alarm: Alarm) -> None:
        """Queue one alarm; never waits, never raises."""
        self._queue.put(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Do nothing: only alarms are posted."""

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every alarm taken so far was delivered or dropped; False out of time."""
        return self._queue.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Refuse further alarms, and give those that wait ``timeout`` seconds (None: no limit)."""
        if not self._queue.close(timeout):
            self._hurry.set()

    def _after_fork(self) -> None:
        self._hurry = threading.Event()  # its lock may have been held at the fork

    def _post(self, alarm: Alarm) -> None:
        request = self._endpoint.request(alarm)
        pause, reason = self._pause, ""
        for attempt in range(self._attempts):
            if attempt:
                self._hurry.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if self._hurry.is_set():
                reason = "webhook was closed before its endpoint took the alarm"
                break
            answer = request.send()
            if answer.accepted:
                return
            reason = answer.reason
            if not answer.may_pass:
                break
        self.dropped.add(reason)


class _Poster:
    """The observer of the queue: it is held by the queue, and may not be the sink itself."""

    def __init__(self, sink: WebhookSink) -> None:
        self._sink = sink

    def observe(self, event: Alarm) -> None:
        """Deliver one alarm, or count it as dropped."""
        self._sink._post(event)
