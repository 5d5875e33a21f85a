"""Try another collection on live queries: compare in the background, switch, roll back."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.instrument.events import guarded
from rag_sourcebias.instrument.shadow import ShadowComparison, ShadowControls, ShadowRunner
from rag_sourcebias.instrument.tags import MetadataTags

_NO_TEXT = "query without text"


class ShadowedCollection(ShadowControls):
    """One of two collections answers; the other is asked afterwards and compared with it.

    Everything but ``query`` is that of the collection that answers, so what is added or deleted
    meanwhile reaches only that one. ``isinstance(x, chromadb.Collection)`` is False.

    ``query(query_texts=…)`` is compared, text by text. A query by vectors or images is not: it is
    in the space of one of the two encoders only; it is counted in ``comparison.dropped``, and a
    caller who makes vectors has to change its encoder at the switch.
    LangChain and LlamaIndex query by vectors: see the ``ShadowedRetriever`` of their adapters.

    Parameters
    ----------
    current, candidate : chromadb.Collection
        Of a synchronous client, such as ``old`` and ``new`` of a :class:`Migration`; each embeds
        queries with its own embedding function. The current one answers until :meth:`switch`.
    comparison : ShadowComparison, optional
        A new one by default.
    share : float
        Part of the queries that is compared, in [0, 1], drawn at random with the seed ``rng``.
    tag_store : TagStore, optional
        Where tags are looked up; the metadata of the current collection, then that of the
        candidate, by default.
    query_key : bytes, optional
        Keep hashes of the most changed queries under this key
        (:func:`~rag_sourcebias.instrument.hash_query`).
    capacity : int
        Queries that may wait for the other one, at least 1; further ones are dropped and counted.
    rng : int

    Raises
    ------
    DataError
        If one is no collection of a synchronous client, or a number is outside its range.
    """

    def __init__(
        self,
        current: Any,  # noqa: ANN401
        candidate: Any,  # noqa: ANN401
        *,
        comparison: ShadowComparison | None = None,
        share: float = 1.0,
        tag_store: TagStore | None = None,
        query_key: bytes | None = None,
        capacity: int = 100,
        rng: int = 0,
    ) -> None:
        for one in (current, candidate):
            query = getattr(one, "query", None)
            if not callable(query) or inspect.iscoroutinefunction(query):
                raise DataError(
                    f"{one!r:.80} cannot be shadowed; expected a Chroma collection of a "
                    "synchronous client"
                )
        self._runner = ShadowRunner[Any](
            current,
            candidate,
            read=_read,
            comparison=comparison,
            share=share,
            tag_store=tag_store or cast("TagStore", _StoredTags(current, candidate)),
            query_key=query_key,
            capacity=capacity,
            rng=rng,
        )
        self._signature = inspect.signature(current.query)

    def query(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Return what the active collection returns."""
        side, active, other = self._runner.roles()
        started = time.perf_counter()
        found = active.query(*args, **kwargs)
        seconds = time.perf_counter() - started
        dropped = self.comparison.dropped
        with guarded(dropped, "query could not be read"):
            given = dict(self._signature.bind_partial(*args, **kwargs).arguments)
            texts = given.pop("query_texts", None)
            texts = [texts] if isinstance(texts, str) else texts
            if texts is None:
                dropped.add(_NO_TEXT, n=max(len(found["ids"]), 1))
                return found
            for row, text in enumerate(texts):
                self._runner.answered(
                    side,
                    found["ids"][row],
                    query=text,
                    seconds=seconds / len(texts),
                    ask=partial(_ask, other, text, given),
                )
        return found

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name == "_runner":  # not there yet: while being copied
            raise AttributeError(name)
        return getattr(self._runner.roles()[1], name)

    def __repr__(self) -> str:
        _, active, other = self._runner.roles()
        return f"ShadowedCollection({active!r} answers, {other!r})"


class _StoredTags:
    """Tags as the collections hold them, asked on the comparison's thread."""

    def __init__(self, *collections: Any) -> None:  # noqa: ANN401
        self._collections = collections
        self._tags = MetadataTags()

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        known: dict[str, DocTags] = {}
        for collection in self._collections:
            missing = [doc_id for doc_id in doc_ids if doc_id not in known]
            if missing:
                page = collection.get(ids=missing, include=["metadatas"])
                known.update(zip(page["ids"], self._tags.read(page["metadatas"])[0], strict=True))
        return [known.get(doc_id, DocTags()) for doc_id in doc_ids]


def _ask(collection: Any, text: str, given: Mapping[str, Any]) -> Sequence[str]:  # noqa: ANN401
    found = collection.query(**{**given, "query_texts": [text], "include": []})
    ids: Sequence[str] = found["ids"][0]
    return ids


def _read(doc_ids: Sequence[str]) -> tuple[Sequence[str], Sequence[DocTags]]:
    return tuple(doc_ids), ()
