"""Tell an HTTP endpoint of alarms, without making the application wait for it."""

import hashlib
import hmac
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from typing import Protocol, runtime_checkable
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from msgspec.json import encode

from rag_sourcebias.core.errors import DataError, require_at_least, visible
from rag_sourcebias.monitor.data import Alarm, GroupShare, MonitorSnapshot
from rag_sourcebias.observe.events import DroppedEvents, guarded, renews_after_fork
from rag_sourcebias.observe.recorder import EventQueue

# Where a monitor's alarms and states go: what a sink is, and the one that writes log lines.


_MEASURES = {"exposure": "exposure", "first": "share of first ranks"}


@runtime_checkable
class Sink(Protocol):
    """Something that is told of alarms and of states.

    No method raises or waits for anything outside the process, except that :meth:`close` may
    wait for what was taken before. All may be called from several threads at once.
    """

    def alarm(self, alarm: Alarm) -> None:
        """Take one alarm, when it is raised."""

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Take the state of every set of labels, as often as the owner of the monitor likes."""

    def close(self) -> None:
        """Deliver what was taken, as far as that is possible, and take nothing more."""


class LoggingSink:
    """Log an alarm as a WARNING and a state as an INFO, one line each.

    A line holds labels, names of groups and numbers; no query, no document, no id. Characters
    that would break the line are replaced.

    Parameters
    ----------
    logger : logging.Logger or None
        ``rag_sourcebias.monitor`` by default.

    Attributes
    ----------
    dropped : DroppedEvents
        Lines that a handler of the application failed to take.
    """

    def __init__(self, *, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("rag_sourcebias.monitor")
        self.dropped = DroppedEvents()
        self._logging = guarded(self.dropped, "log handler raised")

    def alarm(self, alarm: Alarm) -> None:
        """Log one alarm."""
        with self._logging:
            text = f"retrieval skew alarm ({alarm.rule}): {alarm.message}"
            self._logger.warning("%s", visible(text))

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Log each state."""
        with self._logging:
            if self._logger.isEnabledFor(logging.INFO):
                for snapshot in snapshots:
                    self._logger.info("%s", visible(_snapshot_text(snapshot)))

    def close(self) -> None:
        """Nothing waits."""


class SinkGroup:
    """Several sinks as one; what one of them raises keeps nothing from the others.

    A monitor has one ``on_alarm``: give it ``group.alarm``, and add sinks that need the monitor
    later.

    Parameters
    ----------
    *sinks : Sink

    Attributes
    ----------
    dropped : DroppedEvents
        Calls in which a sink raised.
    """

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks
        self.dropped = DroppedEvents()
        self._telling = guarded(self.dropped, "sink raised")

    def add(self, sink: Sink) -> None:
        """Tell ``sink`` too, from now on."""
        self._sinks = (*self._sinks, sink)

    def alarm(self, alarm: Alarm) -> None:
        """Tell every sink of one alarm."""
        self._each(lambda sink: sink.alarm(alarm))

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Tell every sink of the states."""
        given = tuple(snapshots)
        self._each(lambda sink: sink.snapshots(given))

    def close(self) -> None:
        """Close every sink."""
        self._each(lambda sink: sink.close())

    def _each(self, tell: Callable[[Sink], None]) -> None:
        for sink in self._sinks:
            with self._telling:
                tell(sink)


def _snapshot_text(snapshot: MonitorSnapshot) -> str:
    shares = "; ".join(_share_text(group, snapshot.corrected) for group in snapshot.groups)
    lost = sum(snapshot.dropped.values())
    return (
        f"retrieval skew by {snapshot.by}: {snapshot.n_retrievals} retrieval(s), "
        f"{snapshot.n_documents} document(s), {snapshot.n_empty} empty, {lost} event(s) dropped"
        f"{_where(snapshot.labels)}{': ' if shares else ''}{shares}"
    )


def _share_text(group: GroupShare, corrected: Mapping[str, float]) -> str:
    baseline = "" if group.baseline is None else f", baseline {group.baseline:.3f}"
    if group.measure == "exposure" and group.group in corrected:
        baseline = f", corrected for tag errors {corrected[group.group]:.3f}{baseline}"
    return (
        f"{group.group or 'untagged'} {_MEASURES.get(group.measure, group.measure)} "
        f"{group.share:.3f} [{group.lower:.3f}, {group.upper:.3f}]{baseline}"
        f"{', ALARM' if group.alarm else ''}"
    )


def _where(labels: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f" ({pairs})" if labels else ""


# One HTTP endpoint that takes alarms: its URL, its requests, its answers.


_MAY_PASS = (408, 425, 429)  # statuses
_LONGEST_PAUSE = 60.0  # seconds


class _Poster:
    """The observer of a sink's queue, which holds it: it may not be the sink itself.

    No message repeats the path of the URL or the secret.
    """

    def __init__(
        self,
        url: str,
        dropped: DroppedEvents,
        *,
        timeout: float,
        secret: str | bytes | None,
        attempts: int,
        pause: float,
    ) -> None:
        require_at_least(1, attempts=attempts)
        for name, seconds in (("pause", pause), ("timeout", timeout)):
            if not 0 < seconds < math.inf:
                raise DataError(f"{name} must be a number of seconds above 0, got {seconds}")
        if secret is not None and not secret:
            raise DataError("secret of the webhook is empty; give None to send no signature")
        self._dropped, self._url, self.shown = dropped, url, _shown(url)
        self._timeout, self._attempts, self._pause = timeout, attempts, pause
        self._key = secret.encode() if isinstance(secret, str) else secret
        self._open = build_opener(ProxyHandler({}), _NoRedirect()).open
        self._after_fork()
        renews_after_fork(self)

    def _after_fork(self) -> None:
        self.hurry = threading.Event()  # its lock may have been held at the fork

    def observe(self, event: Alarm) -> None:
        """Deliver one alarm, or count it as dropped; each attempt says the same delivery id."""
        body = encode({"kind": "alarm", "version": 1, "alarm": event})
        delivery = str(uuid.uuid4())
        pause = self._pause
        reason = ""
        for attempt in range(self._attempts):
            if attempt:
                self.hurry.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if self.hurry.is_set():
                reason = "webhook was closed before its endpoint took the alarm"
                break
            reason, may_pass = self._send(body, delivery)
            if not reason:
                return
            if not may_pass:
                break
        self._dropped.add(reason)

    def _send(self, body: bytes, delivery: str) -> tuple[str, bool]:
        """Try once; return "", or why it failed and whether another request may succeed."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rag-sourcebias",
            "Rag-Sourcebias-Delivery": delivery,
        }
        if self._key is not None:
            stamp = str(int(time.time()))
            signed = hmac.new(self._key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers["Rag-Sourcebias-Timestamp"] = stamp
            headers["Rag-Sourcebias-Signature"] = f"sha256={signed}"
        try:
            with self._open(Request(self._url, body, headers), timeout=self._timeout):
                return "", False  # its content is of no use
        except HTTPError as error:
            error.close()
            may_pass = error.code in _MAY_PASS or error.code >= 500
            return f"webhook endpoint answered with status {error.code}", may_pass
        except TimeoutError:
            return "webhook endpoint did not answer in time", True
        except (OSError, HTTPException):
            return "webhook endpoint could not be reached", True


class _NoRedirect(HTTPRedirectHandler):
    """Take a redirection for the answer that it is: an alarm goes where it was sent."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


def _shown(url: str) -> str:
    """Return a URL without what may be secret in it, if it can be posted to."""
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise DataError("URL of the webhook holds spaces or characters that a URL has to escape")
    try:
        parts = urlsplit(url)
        _ = parts.port
        (parts.hostname or "").encode("idna")  # what connecting would raise, much later
    except ValueError as error:
        raise DataError("URL of the webhook has no valid host or port") from error
    if parts.scheme not in {"http", "https"}:
        raise DataError(
            f"URL of the webhook must start with http:// or https://, got scheme {parts.scheme!r}"
        )
    if not parts.hostname:
        raise DataError("URL of the webhook has no host; give one such as https://host/path")
    if "@" in parts.netloc:
        raise DataError("URL of the webhook holds a user or password, which would not be sent")
    return f"{parts.scheme}://{parts.netloc}/…"


# Tell an HTTP endpoint of alarms, without making the application wait for it.


class WebhookSink:
    """POST each alarm as JSON, from a thread of its own.

    The body is ``{"kind": "alarm", "version": 1, "alarm": {…}}``, with the fields of
    :class:`~rag_sourcebias.monitor.Alarm`; numbers that are not finite are null. Any 2xx
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
        self.dropped = DroppedEvents()
        self._poster = _Poster(
            url, self.dropped, timeout=timeout, secret=secret, attempts=attempts, pause=pause
        )
        self._queue: EventQueue[Alarm] = EventQueue(self._poster, self.dropped, capacity=capacity)

    def __repr__(self) -> str:
        return f"WebhookSink({self._poster.shown!r})"

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
            self._poster.hurry.set()
