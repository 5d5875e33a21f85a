"""Try another retriever on live queries: compare in the background, switch, roll back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.shadow import ShadowComparison, ShadowControls, ShadowRunner
from rag_sourcebias.instrument.tags import MetadataTags
from rag_sourcebias_integrations.langchain.observe import ids_of, metadata_of

_configurable: ContextVar[Mapping[str, Any]] = ContextVar(
    "rag_sourcebias_configurable", default=MappingProxyType({})
)


class ShadowedRetriever(ShadowControls, BaseRetriever):
    """One of two retrievers answers; the other is asked afterwards and compared with it.

    The application gets the very documents of the one that answers, or its exception. The other
    one is asked on a thread of its own, by its sync ``invoke`` (an async client belongs to the
    application's event loop), without the callbacks and the context of the call, and not observed.
    It never delays a query; when it is slower than the queries come, queries are dropped and
    counted, and so are its exceptions.

    Documents are matched by id, so both must name a document alike: where a store makes ids up,
    give ``doc_id``.

    Parameters
    ----------
    current, candidate : BaseRetriever, Runnable or VectorStore
        The current one answers until :meth:`switch`.
    comparison : ShadowComparison, optional
        A new one by default.
    share : float
        Part of the queries that is compared, in [0, 1], drawn at random with the seed ``rng``.
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    doc_id : callable, optional
        From a document to its id.
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

        retriever = ShadowedRetriever(store.as_retriever(), debiased.as_retriever(), share=0.1)
        ...                       # serve from it as before
        print(retriever.comparison.summary())
        retriever.switch()        # the candidate answers
        retriever.roll_back()     # and no more
        retriever.close()
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    current: Any
    candidate: Any
    doc_id: Callable[[Any], Any] | None = None

    _runner: ShadowRunner[Any] = PrivateAttr()

    def __init__(
        self,
        current: Any,  # noqa: ANN401
        candidate: Any,  # noqa: ANN401
        *,
        comparison: ShadowComparison | None = None,
        share: float = 1.0,
        tag_store: Any = None,  # noqa: ANN401
        doc_id: Callable[[Any], Any] | None = None,
        query_key: bytes | None = None,
        capacity: int = 100,
        rng: int = 0,
        **options: Any,  # noqa: ANN401 - name, tags and metadata of a retriever
    ) -> None:
        both = [
            one.as_retriever() if isinstance(one, VectorStore) else one
            for one in (current, candidate)
        ]
        for one in both:
            if not isinstance(one, Runnable):
                raise DataError(
                    f"{one!r:.80} is not a retriever; expected a LangChain retriever, a vector "
                    "store, or a runnable that returns documents"
                )
        runner = ShadowRunner[Any](
            *both,
            read=_Reader(doc_id),
            comparison=comparison,
            share=share,
            tag_store=tag_store,
            query_key=query_key,
            capacity=capacity,
            rng=rng,
        )
        super().__init__(current=both[0], candidate=both[1], doc_id=doc_id, **options)
        self._runner = runner

    # Overridden because a retriever does not see the configurable fields it is called with.
    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Any]:  # noqa: ANN401
        """Return what the active retriever returns."""
        with _called_with(config):
            found: list[Any] = super().invoke(input, config, **kwargs)
        return found

    async def ainvoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Any]:  # noqa: ANN401
        """Return what the active retriever returns."""
        with _called_with(config):
            found: list[Any] = await super().ainvoke(input, config, **kwargs)
        return found

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        side, active, other = self._runner.roles()
        config = {"callbacks": run_manager.get_child(), "configurable": _configurable.get()}
        started = time.perf_counter()
        found: list[Any] = active.invoke(query, config, **kwargs)
        seconds = time.perf_counter() - started
        ask = partial(other.invoke, query, _shadow_config(), **kwargs)
        self._runner.answered(side, found, query=query, seconds=seconds, ask=ask)
        return found

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        side, active, other = self._runner.roles()
        config = {"callbacks": run_manager.get_child(), "configurable": _configurable.get()}
        started = time.perf_counter()
        found: list[Any] = await active.ainvoke(query, config, **kwargs)
        seconds = time.perf_counter() - started
        ask = partial(other.invoke, query, _shadow_config(), **kwargs)
        self._runner.answered(side, found, query=query, seconds=seconds, ask=ask)
        return found


class _Reader:
    """Ids and tags of documents; holds no retriever."""

    def __init__(self, doc_id: Callable[[Any], Any] | None) -> None:
        self._doc_id = doc_id
        self._tags = MetadataTags()

    def __call__(self, documents: Sequence[Any]) -> tuple[tuple[str, ...], tuple[DocTags, ...]]:
        return tuple(ids_of(documents, self._doc_id)), self._tags.read(metadata_of(documents))[0]


@contextmanager
def _called_with(config: Any) -> Iterator[None]:  # noqa: ANN401
    token = _configurable.set(ensure_config(config).get("configurable") or {})
    try:
        yield
    finally:
        _configurable.reset(token)


def _shadow_config() -> dict[str, Any]:
    """Return the config of the other one: the same fields, without those of LangGraph's own."""
    given = _configurable.get()
    fields = {key: value for key, value in given.items() if not str(key).startswith("__")}
    return {"run_name": "shadow", "callbacks": [], "configurable": fields}
