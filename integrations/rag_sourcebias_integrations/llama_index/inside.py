"""Which of LlamaIndex's spans lie inside one object: a retriever, a query engine or an index."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex

__all__ = ["SpansInside"]

_REMEMBERED = 10_000  # ended spans that may still get children: tasks that outlive a query


class SpansInside:
    """Ids of the spans of one object and of all spans inside them.

    Parameters
    ----------
    target : BaseRetriever or BaseQueryEngine or BaseIndex
        For an index its retrievers count, whoever made them.
    """

    def __init__(self, target: Any) -> None:  # noqa: ANN401
        self._target = target
        self._of_index = isinstance(target, BaseIndex)
        self._open: set[str] = set()
        self._ended: set[str] = set()
        self._order: deque[str] = deque()
        self._lock = threading.Lock()

    def __contains__(self, span_id: str | None) -> bool:
        return span_id in self._open or span_id in self._ended

    def enter(self, span_id: str, instance: Any, parent_id: str | None) -> None:  # noqa: ANN401
        """Note that a span began."""
        if parent_id in self._open or self._is_target(instance) or parent_id in self._ended:
            self._open.add(span_id)

    def leave(self, span_id: str) -> None:
        """Note that a span ended."""
        if span_id not in self._open:
            return
        with self._lock:
            self._ended.add(span_id)
            self._order.append(span_id)
            if len(self._order) > _REMEMBERED:
                self._ended.discard(self._order.popleft())
        self._open.discard(span_id)

    def _is_target(self, instance: Any) -> bool:  # noqa: ANN401
        if not self._of_index:
            return instance is self._target
        return isinstance(instance, BaseRetriever) and _asks(instance, self._target)


def _asks(retriever: Any, index: Any) -> bool:  # noqa: ANN401
    """Whether a retriever searches an index."""
    if getattr(retriever, "_index", None) is index:
        return True
    graph = getattr(index, "property_graph_store", None)  # its retrievers know the graph only
    parts = getattr(retriever, "sub_retrievers", None) or (retriever,)
    return graph is not None and any(getattr(part, "_graph_store", None) is graph for part in parts)
