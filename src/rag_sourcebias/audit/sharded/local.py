"""The engine that needs nothing: one shard after another, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

__all__ = ["LocalEngine"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class LocalEngine:
    """Work on one item at a time, so that memory is bounded by the largest one."""

    name = "local"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {"engine": self.name}

    def map(
        self,
        prepare: Callable[[], Callable[[ItemT], ResultT]],
        items: Sequence[ItemT],
        *,
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[ResultT]:
        """Apply a function to every item; see :class:`rag_sourcebias.protocols.Engine`."""
        if not items:
            return []
        function = prepare()
        results = []
        for done, item in enumerate(items, start=1):
            results.append(function(item))
            if on_done is not None:
                on_done(done, len(items))
        return results

    def close(self) -> None:
        """Do nothing: nothing was started."""
