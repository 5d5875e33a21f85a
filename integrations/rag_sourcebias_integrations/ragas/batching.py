"""One call of an encoder for what many coroutines ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["JoinedCalls"]

Rows = npt.NDArray[np.float32]


@dataclass(slots=True)
class _Batch:
    texts: list[str] = field(default_factory=list)
    task: asyncio.Task[Rows] | None = None


class JoinedCalls:
    """Encode in a thread, one call at a time for each event loop.

    ragas scores each row in a coroutine of its own, and embeds one text at a time. What is asked
    while the encoder works waits, and goes into its next call together.

    Parameters
    ----------
    encode : function
        Texts to an array with one row for each. It sees each text of a call once.
    """

    def __init__(self, encode: Callable[[list[str]], Rows]) -> None:
        self._encode = encode
        self._open: dict[asyncio.AbstractEventLoop, _Batch] = {}  # may still grow
        self._last: dict[asyncio.AbstractEventLoop, _Batch] = {}

    async def __call__(self, texts: Sequence[str]) -> Rows:
        """Encode some texts; a row for each, in order."""
        loop = asyncio.get_running_loop()
        batch = self._open.get(loop)
        if batch is None or batch.task is None:
            batch = self._open[loop] = _Batch()
            batch.task = loop.create_task(self._run(loop, batch, self._last.get(loop)))
            self._last[loop] = batch
        start = len(batch.texts)
        batch.texts += texts
        rows = await asyncio.shield(batch.task)  # one caller's timeout is not the others'
        return rows[start : start + len(texts)]

    async def _run(
        self, loop: asyncio.AbstractEventLoop, batch: _Batch, previous: _Batch | None
    ) -> Rows:
        try:
            if previous is not None and previous.task is not None:
                await asyncio.wait([previous.task])
            _forget(self._open, loop, batch)
            place = {text: row for row, text in enumerate(dict.fromkeys(batch.texts))}
            rows = await asyncio.to_thread(self._encode, list(place))
        finally:
            _forget(self._open, loop, batch)
            _forget(self._last, loop, batch)
        return rows[[place[text] for text in batch.texts]]


def _forget(known: dict[Any, _Batch], loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
    """A closed loop must not be kept, nor a batch of it be waited for."""
    if known.get(loop) is batch:
        del known[loop]
