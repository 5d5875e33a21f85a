"""The runs a handler has seen begin and not end, and those of them that never will."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from langchain_core.callbacks import BaseRunManager

__all__ = ["OpenRun", "OpenRuns"]

_MOST_OPEN = 10_000


class OpenRun:
    """One retriever run, or a chain run inside one."""

    __slots__ = ("name", "place", "query", "store", "under", "watch")

    def __init__(self, query: str | None = None, name: object = None, store: object = None) -> None:
        self.query, self.name, self.store = query, name, store
        self.place = self.under = 0
        self.watch: weakref.ref[Any] | None = None


class OpenRuns(dict[int, OpenRun]):
    """Open runs by the number of their UUID; a UUID held here would live as long.

    LangChain calls neither end nor error for a run that was cancelled or interrupted. Left open,
    it would make the next retrieval of its task look nested. Two things tell: its UUID is gone,
    which lives in the frame of the run; or another run begins in the same task (or thread) and
    the frame of the first is not below it (a task keeps the frames of what was cancelled until
    its next step, so that a fallback after a timeout comes too early for the first sign).

    Parameters
    ----------
    ended : callable
        Told the number of a run that was cancelled.
    """

    def __init__(self, ended: Callable[[int], object]) -> None:
        super().__init__()
        self._ended = ended
        self._newest: dict[int, int] = {}  # by place
        self._gone = self._is_gone

    def begin(self, run_id: Any, parent: int | None, run: OpenRun) -> int:  # noqa: ANN401 - a UUID
        """Add a retriever run and return its number.

        Raises
        ------
        AttributeError, TypeError
            If ``run_id`` is no UUID.
        """
        key: int = run_id.int
        if key in self:  # the handler was added twice
            return key
        run.watch = weakref.ref(run_id, self._gone)
        loop = asyncio._get_running_loop()
        task = None if loop is None else asyncio.current_task(loop)
        run.place = threading.get_ident() if task is None else id(task)
        under = self._newest.get(run.place, 0)
        if under and parent not in self:
            under = self._close_cancelled(under)
        run.under = under
        self._newest[run.place] = key
        self[key] = run
        if len(self) > _MOST_OPEN:
            self.end(next(iter(self)))
        return key

    def end(self, key: int | None) -> OpenRun | None:
        """Remove and return a run; None if it is not open."""
        run = self.pop(key, None)  # type: ignore[arg-type]
        if run is not None and run.place and self._newest.get(run.place) == key:
            if run.under:
                self._newest[run.place] = run.under
            else:
                self._newest.pop(run.place, None)
        return run

    def _close_cancelled(self, key: int) -> int:
        """Close runs of a place, newest first, down to one that still runs; return that one."""
        while key and not _on_stack(key):
            run = self.pop(key, None)
            if run is None:
                return 0
            self._ended(key)
            key = run.under
        return key

    def _is_gone(self, reference: object) -> None:
        for key, run in list(self.items()):
            if run.watch is reference and self.end(key) is not None:
                self._ended(key)


def _on_stack(key: int) -> bool:
    """Return whether the run of this number is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, BaseRunManager) and getattr(value.run_id, "int", None) == key:
                return True
        frame = frame.f_back
    return False
