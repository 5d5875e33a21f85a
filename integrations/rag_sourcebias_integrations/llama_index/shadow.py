"""Try another retriever on live queries: compare in the background, switch, roll back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.instrument.events import guarded
from rag_sourcebias.instrument.shadow import ShadowComparison, ShadowControls, ShadowRunner, Side
from rag_sourcebias.instrument.tags import MetadataTags


class ShadowedRetriever(ShadowControls, BaseRetriever):
    """One of two retrievers answers; the other is asked afterwards and compared with it.

    The application gets the very nodes of the one that answers, or its exception. The other one is
    asked on a thread of its own, by its sync ``retrieve`` (an async client belongs to the
    application's event loop), without the context of the call, and not observed. It embeds the
    query itself. It never delays a query; when it is slower than the queries come, queries are
    dropped and counted, and so are its exceptions.

    Nodes are matched by id. Two indexes built from the same documents have other node ids: name
    the document, ``doc_id=lambda found: found.node.ref_doc_id``.

    Parameters
    ----------
    current, candidate : BaseRetriever
        The current one answers until :meth:`switch`.
    comparison : ShadowComparison, optional
        A new one by default.
    share : float
        Part of the queries that is compared, in [0, 1], drawn at random with the seed ``rng``.
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    doc_id : callable, optional
        From a ``NodeWithScore`` to an id.
    query_key : bytes, optional
        Keep hashes of the most changed queries under this key
        (:func:`~rag_sourcebias.instrument.hash_query`).
    capacity : int
        Queries that may wait for the other one, at least 1.
    rng : int

    Raises
    ------
    DataError
        If one is no retriever, or a number is outside its range.

    Examples
    --------
    ::

        retriever = ShadowedRetriever(index.as_retriever(), debiased.as_retriever(), share=0.1)
        engine = RetrieverQueryEngine.from_args(retriever)
        ...                       # serve from it as before
        print(retriever.comparison.summary())
        retriever.switch()        # the candidate answers
        retriever.roll_back()     # and no more
        retriever.close()
    """

    def __init__(
        self,
        current: Any,  # noqa: ANN401
        candidate: Any,  # noqa: ANN401
        *,
        comparison: ShadowComparison | None = None,
        share: float = 1.0,
        tag_store: TagStore | None = None,
        doc_id: Callable[[Any], Any] | None = None,
        query_key: bytes | None = None,
        capacity: int = 100,
        rng: int = 0,
    ) -> None:
        for one in (current, candidate):
            if not isinstance(one, BaseRetriever):
                raise DataError(
                    f"an object of type {type(one).__qualname__} is not a retriever; expected a "
                    "LlamaIndex retriever, such as index.as_retriever()"
                )
        self._runner = ShadowRunner[Any](
            current,
            candidate,
            read=_Reader(doc_id),
            comparison=comparison,
            share=share,
            tag_store=tag_store,
            query_key=query_key,
            capacity=capacity,
            rng=rng,
        )
        super().__init__(callback_manager=getattr(current, "callback_manager", None))

    # LlamaIndex passes query_bundle by name: another name would fail, in the async path only.
    def _retrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        side, active, other = self._runner.roles()
        started = time.perf_counter()
        nodes: list[Any] = active.retrieve(query_bundle)
        self._answered(side, nodes, query_bundle, time.perf_counter() - started, other)
        return nodes

    async def _aretrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        side, active, other = self._runner.roles()
        started = time.perf_counter()
        nodes: list[Any] = await active.aretrieve(query_bundle)
        self._answered(side, nodes, query_bundle, time.perf_counter() - started, other)
        return nodes

    # The inner retriever has followed its index nodes; doing it again could follow them further.
    def _handle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    async def _ahandle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    def _get_prompt_modules(self) -> dict[str, Any]:
        _, active, other = self._runner.roles()
        return {"retriever": active, "shadow": other}

    def _answered(
        self,
        side: Side,
        nodes: list[Any],
        query: Any,  # noqa: ANN401
        seconds: float,
        other: Any,  # noqa: ANN401
    ) -> None:
        with guarded(self.comparison.dropped, "query could not be read"):
            ask = partial(other.retrieve, _copied(query))
            self._runner.answered(side, nodes, query=query.query_str, seconds=seconds, ask=ask)


class _Reader:
    """Ids and tags of nodes; holds no retriever."""

    def __init__(self, doc_id: Callable[[Any], Any] | None) -> None:
        self._doc_id = doc_id
        self._tags = MetadataTags()

    def __call__(self, nodes: Sequence[Any]) -> tuple[tuple[str, ...], tuple[DocTags, ...]]:
        name = self._doc_id
        ids = [found.node.node_id if name is None else str(name(found)) for found in nodes]
        return tuple(ids), self._tags.read([found.node.metadata for found in nodes])[0]


def _copied(query: Any) -> Any:  # noqa: ANN401
    """Copy a query without its vector, which the active retriever has left there: it is its own."""
    strings = query.custom_embedding_strs
    return QueryBundle(
        query.query_str,
        custom_embedding_strs=None if strings is None else list(strings),
        image_path=query.image_path,
    )
