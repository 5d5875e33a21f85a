"""Where a mitigation enters a LlamaIndex application: reorder the nodes of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore
from pydantic import PrivateAttr

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import DroppedEvents, guarded
from rag_sourcebias.protocols import Rescorer
from rag_sourcebias.tagging import TagStore, from_metadata
from rag_sourcebias.types import DocTags
from rag_sourcebias_integrations.llama_index.convert import query_text

__all__ = ["DebiasPostprocessor"]

_dispatcher = get_dispatcher(__name__)
_UNKNOWN = DocTags()


class DebiasPostprocessor(BaseNodePostprocessor):
    """Reorder nodes; ``as_query_engine(node_postprocessors=[...])`` uses it.

    Returns new ``NodeWithScore`` objects with the new scores around the same nodes, best first;
    equal scores keep their order. Emits ``ReRankStartEvent`` and ``ReRankEndEvent``. When the
    rescorer fails, the nodes are returned as they came and the failure is counted in
    :attr:`dropped`.

    Parameters
    ----------
    rescorer : Rescorer
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the nodes' metadata.
    top_n : int, optional
        Nodes to return, at least 1; all by default.
    name : str
        Shown in the events as the model's name.

    Raises
    ------
    DataError
        If the rescorer cannot be called, or ``top_n`` is below 1.
    """

    top_n: int | None = None
    name: str = "rag-sourcebias"
    _rescorer: Rescorer = PrivateAttr()
    _tag_store: TagStore | None = PrivateAttr()
    _dropped: DroppedEvents = PrivateAttr()

    def __init__(
        self,
        rescorer: Rescorer,
        *,
        tag_store: TagStore | None = None,
        top_n: int | None = None,
        name: str = "rag-sourcebias",
    ) -> None:
        if not callable(rescorer):
            raise DataError(f"{rescorer!r:.80} is not a rescorer; expected a function")
        if top_n is not None and top_n < 1:
            raise DataError(f"top_n must be at least 1, got {top_n}")
        super().__init__(top_n=top_n, name=name)
        self._rescorer, self._tag_store = rescorer, tag_store
        self._dropped = DroppedEvents()

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "DebiasPostprocessor"

    @property
    def dropped(self) -> DroppedEvents:
        """Lists that were returned as they came, by reason."""
        return self._dropped

    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:  # noqa: ANN401
        if not nodes:
            return nodes
        wanted = self.top_n or len(nodes)
        _dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=wanted, model_name=self.name)
        )
        found = nodes
        with guarded(self._dropped, "rescorer failed"):
            scores = self._new_scores(nodes, query_text(query_bundle))
            if scores is not None:
                ranked = sorted(range(len(nodes)), key=scores.__getitem__, reverse=True)
                found = [
                    NodeWithScore(node=nodes[i].node, score=scores[i]) for i in ranked[:wanted]
                ]
        _dispatcher.event(ReRankEndEvent(nodes=found))
        return found

    def _new_scores(self, nodes: Sequence[Any], query: str) -> list[float] | None:
        plain = [found.node for found in nodes]
        doc_ids = [node.node_id for node in plain]
        known = [found.score for found in nodes]
        scores = self._rescorer(
            query,
            doc_ids=doc_ids,
            texts=[node.get_content(metadata_mode=MetadataMode.NONE) for node in plain],
            tags=self._tags(doc_ids, plain),
            scores=None if None in known else known,
        )
        if scores is None:
            return None
        numbers = [float(score) for score in scores]
        if len(numbers) != len(nodes) or not all(map(math.isfinite, numbers)):
            raise DataError(
                f"the rescorer returned {len(numbers)} scores for {len(nodes)} nodes; expected "
                "one finite number for each"
            )
        return numbers

    def _tags(self, doc_ids: Sequence[str], nodes: Sequence[Any]) -> list[DocTags]:
        inside = [from_metadata(node.metadata) for node in nodes]
        if self._tag_store is None:
            return inside
        stored = self._tag_store.get(doc_ids)
        return [b if a == _UNKNOWN else a for a, b in zip(stored, inside, strict=True)]
