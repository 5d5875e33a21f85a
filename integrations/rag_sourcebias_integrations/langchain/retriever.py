"""A LangChain retriever that is observed, and one that is compared with another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.observe.events import MetadataTags, guarded
from rag_sourcebias.observe.recorder import Recorder
from rag_sourcebias.observe.shadow import Shadow, Shadowed
from rag_sourcebias_integrations._require import require_kind
from rag_sourcebias_integrations.langchain.observe import (
    Holding,
    asking,
    ids_of,
    scores_in,
    searching,
)

# A retriever that observes another one, with scores.


def _runnable(given: Any) -> Any:  # noqa: ANN401
    """Return a retriever, of a vector store as well."""
    found = given.as_retriever() if isinstance(given, VectorStore) else given
    require_kind(
        found,
        Runnable,
        "retriever; expected one of LangChain, a vector store, or a runnable that returns "
        "documents",
    )
    return found


class InstrumentedRetriever(Holding, BaseRetriever):
    """Observe a retriever, with the scores that LangChain's callbacks do not carry.

    Documents are those the inner retriever returns: the same objects in the same order. Scores
    come from the scored search that a vector store makes for itself to answer a plain one; there
    is no second search. Where the store makes none, or does not say what its scores mean, the
    event has no scores.

    Parameters
    ----------
    retriever : BaseRetriever, Runnable or VectorStore
        What is observed; anything whose ``invoke`` takes a query and returns documents.
    observer : Observer of RetrievalEvent
    score_key : str, optional
        Return copies of the documents that hold their score under this key of the metadata
        ("rsb_score"). Without it nothing is changed or copied.
    **options
        ``labels``, ``take_labels``, ``tags``, ``doc_id``, ``query_key`` and ``queue``, as for
        :func:`~rag_sourcebias.instrument`. LangChain's own tags are given by ``with_config``.

    Raises
    ------
    DataError
        If the retriever is none, the observer has no ``observe``, or an option is out of range.
    """

    retriever: Any
    score_key: str | None = None

    _recorder: Recorder = PrivateAttr()
    _stopped: bool = PrivateAttr(default=False)

    def __init__(
        self,
        retriever: Any,  # noqa: ANN401
        observer: Any,  # noqa: ANN401
        *,
        score_key: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        recorder = Recorder(observer, **options)
        super().__init__(retriever=_runnable(retriever), score_key=score_key)
        self._recorder = recorder
        self._hold()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        config: Any = {"callbacks": run_manager.get_child()}
        with self._observed(query, config) as found:
            found.append(self.retriever.invoke(query, config=config, **kwargs))
        return found[-1]  # type: ignore[no-any-return]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        config: Any = {"callbacks": run_manager.get_child()}
        with self._observed(query, config) as found:
            found.append(await self.retriever.ainvoke(query, config=config, **kwargs))
        return found[-1]  # type: ignore[no-any-return]

    @contextmanager
    def _observed(self, query: str, config: Any) -> Iterator[list[Any]]:  # noqa: ANN401
        """Stand around one retrieval; the last item of the list is what it returns."""
        ends_in_store = getattr(self.retriever, "vectorstore", None) is not None

        def recorders_now() -> list[Recorder]:
            return [] if self._stopped else [self._recorder]

        with searching() as searches:
            scores_of = partial(scores_in, searches if ends_in_store else [])
            full = ensure_config(config)
            with asking(self.retriever, query, full, recorders_now, scores_of) as found:
                yield found
        documents, key = found[0], self.score_key
        scores = None if key is None else scores_of(documents, self.dropped)
        if scores is not None:
            with guarded(self.dropped, "scores could not be written"):
                found.append(
                    [
                        document.model_copy(update={"metadata": {**document.metadata, key: score}})
                        for document, score in zip(documents, scores, strict=True)
                    ]
                )


# Try another retriever on live queries.


class ShadowedRetriever(Shadowed, BaseRetriever):
    """One retriever answers; a candidate is asked afterwards and compared with it.

    The application gets the very documents of the current one, or its exception. The candidate is
    asked on a thread of its own, by its sync ``invoke`` (an async client belongs to the
    application's event loop), without the callbacks and the context of the call, and not observed.
    It never delays a query; when it is slower than the queries come, queries are dropped and
    counted, and so are its exceptions.

    Documents are matched by id, so both must name a document alike: where a store makes ids up,
    give ``doc_id``.

    Parameters
    ----------
    current, candidate : BaseRetriever, Runnable or VectorStore
    depth : int
        Ranks compared; have both retrievers return as many.
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    doc_id : callable, optional
        From a document to its id.
    capacity : int
        Queries that may wait for the candidate, at least 1.

    Raises
    ------
    DataError
        If one is no retriever, or a number is outside its range.

    Examples
    --------
    ::

        retriever = ShadowedRetriever(store.as_retriever(), debiased.as_retriever())
        ...                       # serve from it as before
        print(retriever.comparison.summary())
        retriever.close()
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    current: Any
    candidate: Any

    _shadow: Shadow = PrivateAttr()

    def __init__(
        self,
        current: Any,  # noqa: ANN401
        candidate: Any,  # noqa: ANN401
        *,
        depth: int = 10,
        tag_store: Any = None,  # noqa: ANN401
        doc_id: Callable[[Any], Any] | None = None,
        capacity: int = 100,
        **options: Any,  # noqa: ANN401 - name, tags and metadata of a retriever
    ) -> None:
        tags = MetadataTags()
        shadow = Shadow(
            lambda found: (ids_of(found, doc_id), tags.read(d.metadata for d in found)[0]),
            depth=depth,
            tag_store=tag_store,
            capacity=capacity,
        )
        super().__init__(current=_runnable(current), candidate=_runnable(candidate), **options)
        self._shadow = shadow

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        config = {"callbacks": run_manager.get_child()}
        return self._answered(self.current.invoke(query, config, **kwargs), query, kwargs)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        config = {"callbacks": run_manager.get_child()}
        return self._answered(await self.current.ainvoke(query, config, **kwargs), query, kwargs)

    def _answered(self, found: list[Any], query: str, kwargs: dict[str, Any]) -> list[Any]:
        self._shadow.answered(found, partial(self.candidate.invoke, query, _SHADOW, **kwargs))
        return found


_SHADOW: Any = {"run_name": "shadow", "callbacks": []}
