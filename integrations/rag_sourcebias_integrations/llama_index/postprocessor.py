"""Where a mitigation enters a LlamaIndex application: reorder the nodes of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore
from pydantic import PrivateAttr

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.protocols import Rescorer
from rag_sourcebias.core.tags import TagStore, from_metadata
from rag_sourcebias.instrument.events import DroppedEvents, guarded
from rag_sourcebias_integrations._rescoring import check_rescorer, order_by, scores_from
from rag_sourcebias_integrations.llama_index.observe import query_text

_dispatcher = get_dispatcher(__name__)
_UNKNOWN = DocTags()


class DebiasPostprocessor(BaseNodePostprocessor):
    """Reorder nodes; ``as_query_engine(node_postprocessors=[...])`` uses it.

    Returns new ``NodeWithScore`` objects with the new scores around the same nodes, best first;
    equal scores keep their order. Emits ``ReRankStartEvent`` and ``ReRankEndEvent``. When the
    rescorer fails, such as because there are no scores, the nodes are returned in their order, as
    they came, and the failure is counted in :attr:`dropped`.

    Parameters
    ----------
    rescorer : Rescorer
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the nodes' metadata.
    top_n : int, optional
        Nodes to return, at least 1; all by default. Retrieve more than are shown.
    name : str
        Shown in the events as the model's name.
    score_of : callable, optional
        From the score of a node to what the rescorer was fitted on. A calibration is in units of
        the cosine, as LlamaIndex's own store gives it; ``ChromaVectorStore`` gives exp(−distance),
        which for ``space: cosine`` ``lambda s: 1 + math.log(s)`` takes back.
    encoder : Encoder or BaseEmbedding or str, optional
        Where the scores come from; a rescorer that was fitted on another encoder is refused.

    Raises
    ------
    DataError
        If the rescorer cannot be called or was fitted on another encoder, or ``top_n`` is below 1.

    Examples
    --------
    ::

        engine = index.as_query_engine(
            similarity_top_k=40,
            node_postprocessors=[DebiasPostprocessor(calibration, encoder=encoder, top_n=10)],
        )
    """

    top_n: int | None = None
    name: str = "rag-sourcebias"
    _rescorer: Rescorer = PrivateAttr()
    _tag_store: TagStore | None = PrivateAttr()
    _score_of: Callable[[float], float] | None = PrivateAttr()
    _dropped: DroppedEvents = PrivateAttr()

    def __init__(
        self,
        rescorer: Rescorer,
        *,
        tag_store: TagStore | None = None,
        top_n: int | None = None,
        name: str = "rag-sourcebias",
        score_of: Callable[[float], float] | None = None,
        encoder: Any = None,  # noqa: ANN401
    ) -> None:
        check_rescorer(rescorer, encoder=encoder, top_n=top_n)
        super().__init__(top_n=top_n, name=name)
        self._rescorer, self._tag_store, self._score_of = rescorer, tag_store, score_of
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
        found = nodes if wanted >= len(nodes) else nodes[:wanted]
        with guarded(self._dropped, "rescorer failed"):
            given = self._new_scores(nodes, query_text(query_bundle))
            if given is not None:
                ranked, scores = order_by(given, len(nodes))
                found = [
                    NodeWithScore(node=nodes[i].node, score=scores[i]) for i in ranked[:wanted]
                ]
        _dispatcher.event(ReRankEndEvent(nodes=found))
        return found

    def _new_scores(self, nodes: Sequence[Any], query: str) -> Sequence[float] | None:
        plain = [found.node for found in nodes]
        doc_ids = [node.node_id for node in plain]
        return self._rescorer(
            query,
            doc_ids=doc_ids,
            texts=[node.get_content(metadata_mode=MetadataMode.NONE) for node in plain],
            tags=self._tags(doc_ids, plain),
            scores=scores_from([found.score for found in nodes], self._score_of),
        )

    def _tags(self, doc_ids: Sequence[str], nodes: Sequence[Any]) -> list[DocTags]:
        inside = [from_metadata(node.metadata) for node in nodes]
        if self._tag_store is None:
            return inside
        stored = self._tag_store.get(doc_ids)
        return [b if a == _UNKNOWN else a for a, b in zip(stored, inside, strict=True)]
