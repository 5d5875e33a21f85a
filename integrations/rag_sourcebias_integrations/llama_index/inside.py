"""Which of LlamaIndex's spans lie inside one object: a retriever, a query engine or an index."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex

__all__ = ["SpansInside"]

_REMEMBERED = 5_000  # to 10,000 ended spans: tasks that outlive a query have them as parents


class SpansInside:
    """Ids of the spans of one object and of all spans inside them.

    Parameters
    ----------
    target : BaseRetriever or BaseQueryEngine or BaseIndex
        For an index its retrievers count, whoever made them.

    Attributes
    ----------
    open : set of str
        Those that have not ended.
    """

    def __init__(self, target: Any) -> None:  # noqa: ANN401
        # One of both is something that no span has.
        of_index = isinstance(target, BaseIndex)
        self._target = object() if of_index else target
        self._index = target if of_index else None
        self.open: set[str] = set()
        self._ended: set[str] = set()
        self._ended_before: set[str] = set()

    def __contains__(self, span_id: str | None) -> bool:
        return span_id in self.open or span_id in self._ended or span_id in self._ended_before

    # Every argument by name, and no method of our own: each call would otherwise make a dict, and
    # there are four calls in a retrieval.
    def enter(
        self,
        id_: str,
        bound_args: object = None,  # noqa: ARG002 - they hold the query
        instance: Any = None,  # noqa: ANN401
        parent_id: str | None = None,
        tags: object = None,  # noqa: ARG002
        **_: object,
    ) -> None:
        """Note that a span began; takes what LlamaIndex tells a span handler."""
        if (
            instance is self._target
            or parent_id in self.open
            or parent_id in self._ended
            or parent_id in self._ended_before
            or (
                self._index is not None
                and isinstance(instance, BaseRetriever)
                and _asks(instance, self._index)
            )
        ):
            self.open.add(id_)

    def leave(
        self,
        id_: str,
        bound_args: object = None,  # noqa: ARG002
        instance: object = None,  # noqa: ARG002
        result: object = None,  # noqa: ARG002
        err: object = None,  # noqa: ARG002
        **_: object,
    ) -> None:
        """Note that a span ended, or that its call raised."""
        if id_ in self.open:
            ended = self._ended
            ended.add(id_)  # first, so that it is never in neither
            self.open.discard(id_)
            if len(ended) >= _REMEMBERED:  # two halves: to forget one by one costs a microsecond
                self._ended_before, self._ended = ended, set()


def _asks(retriever: Any, index: Any) -> bool:  # noqa: ANN401
    """Whether a retriever searches an index."""
    if getattr(retriever, "_index", None) is index:
        return True
    graph = getattr(index, "property_graph_store", None)  # its retrievers know the graph only
    parts = getattr(retriever, "sub_retrievers", None) or (retriever,)
    return graph is not None and any(getattr(part, "_graph_store", None) is graph for part in parts)
