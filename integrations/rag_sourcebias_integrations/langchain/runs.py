"""The runs a handler has seen begin and not end, and those of them that never will."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseRunManager

__all__ = ["CHAIN", "OpenRun", "OpenRuns"]

_MOST_OPEN = 10_000


#: Query, name and store; then a reference to the UUID, the task or thread the run is in, and the
#: run that was the newest there. A tuple, because one is made for every retrieval.
OpenRun: TypeAlias = tuple[str | None, object, object, "weakref.ref[Any] | None", int, int]
CHAIN: OpenRun = (None, None, None, None, 0, 0)
"""A chain run inside a retrieval."""

_running_loop = asyncio._get_running_loop  # asyncio.current_task raises where there is no loop


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

    def begin(
        self,
        run_id: Any,  # noqa: ANN401 - a UUID
        parent: int | None,
        query: str,
        name: object,
        store: object,
    ) -> int:
        """Add a retriever run and return its number.

        Raises
        ------
        AttributeError, TypeError
            If ``run_id`` is no UUID.
        """
        key: int = run_id.int
        if key in self:  # the handler was added twice
            return key
        loop = _running_loop()
        task = None if loop is None else asyncio.current_task(loop)
        place = threading.get_ident() if task is None else id(task)
        under = self._newest.get(place, 0)
        if under and parent not in self:
            under = self._close_cancelled(under)
        self._newest[place] = key
        self[key] = (query, name, store, weakref.ref(run_id, self._gone), place, under)
        if len(self) > _MOST_OPEN:
            self.end(next(iter(self)))
        return key

    def end(self, key: int | None) -> OpenRun | None:
        """Remove and return a run; None if it is not open."""
        run = self.pop(key, None)  # type: ignore[arg-type]
        if run is not None:
            _, _, _, _, place, under = run
            if self._newest.get(place) == key:
                if under:
                    self._newest[place] = under
                else:
                    self._newest.pop(place, None)
        return run

    def _close_cancelled(self, key: int) -> int:
        """Close runs of a place, newest first, down to one that still runs; return that one."""
        while key and not _on_stack(key):
            run = self.pop(key, None)
            if run is None:
                return 0
            self._ended(key)
            key = run[5]
        return key

    def _is_gone(self, reference: object) -> None:
        for key, run in list(self.items()):
            if run[3] is reference and self.end(key) is not None:
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
