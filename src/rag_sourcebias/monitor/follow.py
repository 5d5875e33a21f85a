"""Feed a monitor from an event log that other processes write."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.private import PRIVATE, check_mode
from rag_sourcebias.monitor.follow_state import (
    START_ANEW,
    STATE_FILE,
    Position,
    read_position,
    write_position,
)
from rag_sourcebias.monitor.log.tail import Tail, read_tail
from rag_sourcebias.monitor.replay import events_of
from rag_sourcebias.monitor.sinks import Sink
from rag_sourcebias.monitor.skew_monitor import SkewMonitor

__all__ = ["LogFollower"]

_logger = logging.getLogger("rag_sourcebias.monitor")
_SAVE_SHARE = 20  # of the time, at most one part in so many goes into writing the state


class LogFollower:
    """Read what any process appends to an event log, and give it to a monitor.

    With a state file a restart goes on where the last process stopped: position and monitor are
    written together, so that a retrieval counts once, whenever the process is killed. Sinks may be
    told again of alarms that were raised after the state was last written. A log that is not there
    yet, locked or removed is waited for. Retrievals that retention took before they were read are
    counted in ``dropped``. Another log under the same path, or an older copy of this one, is read
    from its beginning, and the monitor starts anew with it (its list of alarms stays).

    Parameters
    ----------
    path : str or Path
        The log, which need not exist yet.
    monitor : SkewMonitor
        A new one: its settings are taken, and its state where there is no other. What follows is
        given to :attr:`monitor`, whose alarms go to ``sinks`` and nowhere else.
    state : Path or None
        The state file; None keeps the state in memory.
    sinks : Sink or None
        Told of alarms and states; closing them is up to their owner.
    interval : float
        Seconds between looks at the log.
    save_seconds, sink_seconds : float
        Seconds after which the state is written, and given to the sinks, again; where writing
        takes long it is done less often. 0 does it with every part that is read.
    anew : bool
        Ignore what the state file holds.
    file_mode : int
        Of a new state file; one that is there keeps its own.

    Attributes
    ----------
    monitor : SkewMonitor
    dropped : DroppedEvents
        Retrievals that could not be read, and calls of sinks that raised, by reason.

    Raises
    ------
    DataError
        If an interval is out of range, or the state file is unusable or of other settings.
    UnsupportedVersionError
        If another release wrote the state file.
    """

    def __init__(
        self,
        path: str | Path,
        monitor: SkewMonitor,
        *,
        state: Path | None = None,
        sinks: Sink | None = None,
        interval: float = 1.0,
        save_seconds: float = 5.0,
        sink_seconds: float = 15.0,
        anew: bool = False,
        file_mode: int = PRIVATE,
    ) -> None:
        if not 0 < interval <= 3_600:
            raise DataError(f"interval must be in (0, 3600] seconds, got {interval}")
        if not (0 <= save_seconds <= 3_600 and 0 <= sink_seconds <= 3_600):
            raise DataError(
                f"save_seconds and sink_seconds must be in [0, 3600], got {save_seconds} and "
                f"{sink_seconds}"
            )
        self.path, self.dropped = Path(path), DroppedEvents()
        self._state, self._sinks, self._interval = state, sinks, interval
        self._file_mode = check_mode(file_mode)
        self._save_seconds, self._sink_seconds = save_seconds, sink_seconds
        given = monitor.to_dict()
        self.settings: dict[str, Any] = dict(given["settings"])
        self._position, kept = Position(), given
        stored = None if state is None or anew else read_position(state)
        if stored is not None:
            self._position, kept = stored
            if _plain(kept.get("settings")) != _plain(given["settings"]):
                raise DataError(
                    f"state file {state} belongs to other settings (baseline, groups, labels, …); "
                    "give the settings it was written with, start anew, or name another state file"
                )
            for reason, n in self._position.dropped.items():
                if n > 0:
                    self.dropped.add(reason, n=n)
        on_alarm = None if sinks is None else sinks.alarm
        # What was not stored is the state of the given monitor: nothing can be wrong with it.
        with sound(state or "", STATE_FILE, remedy=START_ANEW, names_file=stored is None):
            self.monitor = SkewMonitor.from_dict(kept, on_alarm=on_alarm)
        self._last = self._position.number or 0
        self._changed, self._save_due, self._sink_due = False, 0.0, 0.0
        self._errors: dict[str, str] = {}
        self._telling = guarded(self.dropped, "sink raised")
        self._stepping, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def n_read(self) -> int:
        """Retrievals given to the monitor."""
        return self._position.n_read

    @property
    def behind(self) -> int:
        """Retrievals that were in the log at the last look and are not read yet."""
        return self.behind_of(self._last)

    def behind_of(self, n_written: int) -> int:
        """Return how many retrievals are not read yet of a log in which so many were written."""
        return max(n_written - (self._position.number or 0), 0)

    @property
    def error(self) -> str | None:
        """What is wrong now, in a sentence that names no path; None when all is well."""
        return next(iter(tuple(self._errors.values())), None)

    def step(self) -> int:
        """Read all that is in the log now; return how many retrievals that were.

        Raises nothing that the log, the state file or a sink is to blame for.
        """
        n = 0
        with self._stepping:
            while (tail := self._look()) is not None:
                n += self._feed(tail)
                if tail.number >= tail.last:
                    self.monitor.tick()  # time passes in a quiet log, too; not in what is caught up
                    break
                if self._stop.is_set():
                    break
                self._save_if_due()
            self._save_if_due()
            self._tell_if_due()
        return n

    def _look(self) -> Tail | None:
        """Return the next part of the log, None where there is nothing to read or an error."""
        try:
            if not self.path.is_file() or not self.path.stat().st_size:
                self._wrong("log", "the log is not there yet", logging.INFO)
                return None
            tail = read_tail(self.path, after=self._position.number)
            position = self._position
            if position.log not in (None, tail.log) or tail.last < (position.number or 0):
                self._start_anew()
                tail = read_tail(self.path, after=None)
        except UnsupportedVersionError as error:
            self._wrong("log", "the log has a version that this release does not read", error)
        except (DataError, OSError) as error:
            self._wrong("log", "the log cannot be read now", error)
        else:
            self._errors.pop("log", None)
            return tail
        return None

    def _start_anew(self) -> None:
        _logger.warning(
            "%s is another log, or an older copy, than the one read up to retrieval %s: starting "
            "anew with it",
            *(self.path, self._position.number),
        )
        self.monitor.reset()
        self._position = Position()
        self._changed = True

    def _feed(self, tail: Tail) -> int:
        position = self._position
        n = self.monitor.record_many(item for part in tail.parts for item in events_of(part))
        for reason, lost in (
            ("removed before it was read", tail.removed),
            ("could not be decoded", tail.broken),
        ):
            if lost:
                self.dropped.add(reason, n=lost)
        self._changed |= position.number != tail.number or position.log != tail.log
        position.log, position.number = tail.log, tail.number
        position.n_read += n
        self._last = tail.last
        return n

    def _save_if_due(self) -> None:
        if self._changed and time.monotonic() >= self._save_due:
            self._save()

    def _save(self) -> None:
        if self._state is None:
            return
        start = time.monotonic()
        self._position.dropped = self.dropped.by_reason
        try:
            data = self.monitor.to_dict()
            write_position(self._state, self._position, data, mode=self._file_mode)
        except DataError as error:
            self._wrong("state", "the state file cannot be written now", error)
        else:
            self._changed = False
            self._errors.pop("state", None)
        now, wanted = time.monotonic(), self._save_seconds
        self._save_due = now + (max(wanted, _SAVE_SHARE * (now - start)) if wanted else 0.0)

    def _tell_if_due(self) -> None:
        if self._sinks is None or time.monotonic() < self._sink_due:
            return
        with self._telling:
            self._sinks.snapshots(self.monitor.snapshot())
        self._sink_due = time.monotonic() + self._sink_seconds

    def _wrong(self, what: str, sentence: str, cause: Exception | int) -> None:
        """Say what is wrong, once until it changes."""
        if self._errors.get(what) != sentence:
            if isinstance(cause, Exception):
                _logger.warning("%s: %s", sentence, cause)
            else:
                _logger.log(cause, "%s: waiting for %s", sentence, self.path)
        self._errors[what] = sentence

    def start(self) -> None:
        """Follow the log on a thread of its own, until :meth:`close`.

        Raises
        ------
        DataError
            If it was started or closed before.
        """
        if self._thread is not None or self._stop.is_set():
            raise DataError("a follower is started once; make another one")
        self._thread = threading.Thread(target=self._run, name="rag-sourcebias-follower")
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.step()
                self._errors.pop("follower", None)
            except Exception as error:  # noqa: BLE001 - the thread has to live on
                self._wrong("follower", "following the log failed", error)
            self._stop.wait(self._interval)

    def close(self) -> None:
        """Stop after the part that is being read, and write the state."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._stepping:
            if self._changed:
                self._save()

    def __enter__(self) -> LogFollower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain(value: Any) -> Any:  # noqa: ANN401 - settings of any kind
    """Return settings as JSON would give them back."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
