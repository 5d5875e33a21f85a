"""An encoder of this library as a ragas embedding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from ragas.embeddings.base import BaseRagasEmbedding

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder

# One call of an encoder for what many coroutines ask at once.


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


# An encoder of this library as a ragas embedding.


Vector = list[float]


class EncoderEmbedding(BaseRagasEmbedding):
    """Embed with an encoder, in every metric of ragas that embeds; texts arrive unaltered.

    ragas' similarity metrics know no query side: texts are encoded as documents. Only
    ``embed_query``, which the legacy answer relevancy calls, encodes a query. The async methods
    use a thread, and join concurrent calls into one of the encoder. To keep vectors between
    runs give it a :class:`rag_sourcebias.retrieval.CachedEncoder`: the key of a ragas cache does
    not name the model.

    Parameters
    ----------
    encoder : Encoder

    Raises
    ------
    DataError
        If ``encoder`` is none.
    """

    def __init__(self, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise DataError(
                f"an object of type {type(encoder).__qualname__} is no encoder; expected one with "
                "name, fingerprint, settings, encode_queries and encode_documents"
            )
        super().__init__(cache=None)
        self.encoder = encoder
        self._joined = JoinedCalls(encoder.encode_documents)

    def __repr__(self) -> str:
        return f"EncoderEmbedding({self.encoder.name!r})"

    def embed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text."""
        return self.embed_texts([text], **kwargs)[0]

    def embed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401, ARG002
        """Embed texts in one call of the encoder; one vector for each, in order."""
        given = _texts(texts)
        if not given:
            return []
        return cast("list[Vector]", self.encoder.encode_documents(given).tolist())

    async def aembed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text without blocking the event loop."""
        return (await self.aembed_texts([text], **kwargs))[0]

    async def aembed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401, ARG002
        """Embed texts without blocking the event loop; one vector for each, in order."""
        given = _texts(texts)
        if not given:
            return []
        return cast("list[Vector]", (await self._joined(given)).tolist())

    embed_documents = embed_texts
    aembed_documents = aembed_texts

    def embed_query(self, text: str) -> Vector:
        """Embed one query."""
        return cast("Vector", self.encoder.encode_queries([text])[0].tolist())

    async def aembed_query(self, text: str) -> Vector:
        """Embed one query without blocking the event loop."""
        return await asyncio.to_thread(self.embed_query, text)


def _texts(texts: Sequence[str]) -> list[str]:
    """Return a list; ragas too takes a single text for one of one."""
    return [texts] if isinstance(texts, str) else list(texts)
