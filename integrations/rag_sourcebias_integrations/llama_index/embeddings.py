"""Our encoders as LlamaIndex embeddings, and a postprocessor that reorders nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.evaluation import EvaluationResult, SemanticSimilarityEvaluator
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore
from pydantic import PrivateAttr

from rag_sourcebias.answers.measure import StyleAdjustment
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder, Rescorer
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.observe.events import DroppedEvents, guarded
from rag_sourcebias_integrations._require import require_encoder
from rag_sourcebias_integrations._rescoring import adjustable, adjusted, check_rescorer, rescored
from rag_sourcebias_integrations.llama_index.observe import query_text

# An encoder of this library as LlamaIndex's embedding model.


_SENT = ("model_name", "embed_batch_size", "num_workers")


class EncoderEmbedding(BaseEmbedding):
    """Queries and texts go to the two sides of an encoder; the async methods use a thread.

    Do not share one ``embeddings_cache`` between models: LlamaIndex's key is the text alone, so
    that even the query and the text side of one model mix there.

    Parameters
    ----------
    encoder : Encoder
        Its fingerprint is a field, so that the cache of an ``IngestionPipeline`` notices another
        encoder.
    **options
        As for ``BaseEmbedding``; ``embed_batch_size`` is 64 unless given.

    Raises
    ------
    DataError
        If ``encoder`` is none.
    """

    fingerprint: str
    _encoder: Any = PrivateAttr()

    def __init__(self, encoder: Encoder, **options: Any) -> None:  # noqa: ANN401
        require_encoder(encoder)
        # LlamaIndex's own default, 10, starves an encoder that batches by itself
        options.setdefault("embed_batch_size", 64)
        options.setdefault("model_name", encoder.name)
        super().__init__(fingerprint=encoder.fingerprint, **options)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "EncoderEmbedding"

    def __reduce__(self) -> tuple[Callable[..., EncoderEmbedding], tuple[Any, ...]]:
        # LlamaIndex's way leaves out, silently, whatever does not pickle: here the encoder.
        options = {name: getattr(self, name) for name in _SENT}
        return partial(EncoderEmbedding, **options), (self._encoder,)

    def _get_query_embedding(self, query: str) -> list[float]:
        return cast("list[float]", self._encoder.encode_queries([query])[0].tolist())

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return cast("list[list[float]]", self._encoder.encode_documents(texts).tolist())

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


# LlamaIndex's semantic similarity without what the style of a response adds.


class AdjustedResult(EvaluationResult):
    """``score`` is ``similarity`` − ``offset``, kept within [−1, 1]."""

    similarity: float
    offset: float


class StyleAdjustedSimilarity(SemanticSimilarityEvaluator):
    """Cosine of response and reference, less what the length of the response adds.

    Works wherever ``SemanticSimilarityEvaluator`` does (``BatchEvalRunner`` included). The texts
    embedded are the same. The adjusted score of an average answer of the fit is its raw cosine;
    short answers score lower, long ones higher, and a threshold chosen for the raw cosine no
    longer fits.

    Parameters
    ----------
    embed_model : Encoder or BaseEmbedding
        What the adjustment was fitted on; checked where both are known.
    adjustment : StyleAdjustment
        Of :func:`~rag_sourcebias.answers.fit_similarity_adjustment` or
        :func:`~rag_sourcebias.answers.read_adjustment`.
    similarity_threshold : float
        Adjusted score from which on a response passes.

    Raises
    ------
    DataError
        If these do not go together; on evaluation, if a vector is zero or not finite, or
        response or reference is missing.
    """

    def __init__(
        self,
        embed_model: BaseEmbedding | Encoder,
        adjustment: StyleAdjustment,
        *,
        similarity_threshold: float = 0.8,
    ) -> None:
        self._adjustment = adjustment
        super().__init__(
            embed_model=adjustable(embed_model, adjustment, BaseEmbedding, EncoderEmbedding),
            similarity_threshold=similarity_threshold,
        )

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> AdjustedResult:
        """Score one response; both texts are embedded in one call."""
        if response is None or reference is None:
            missing = "response" if response is None else "reference"
            raise DataError(f"{missing} is missing; both response and reference are compared")
        vectors = await self._embed_model.aget_text_embedding_batch([response, reference])
        similarity, offset, score = adjusted(self._adjustment, response, vectors)
        return AdjustedResult(
            query=query,
            contexts=contexts,
            response=response,
            score=score,
            passing=score >= self._similarity_threshold,
            feedback=f"cosine {similarity:.4f}, of which style {offset:+.4f}",
            similarity=similarity,
            offset=offset,
        )


# Where a mitigation enters a LlamaIndex application: reorder the nodes of a query.


_dispatcher = get_dispatcher(__name__)


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
    _rescorer: Rescorer = PrivateAttr()
    _tag_store: TagStore | None = PrivateAttr()
    _score_of: Callable[[float], float] | None = PrivateAttr()
    _dropped: DroppedEvents = PrivateAttr(default_factory=DroppedEvents)

    def __init__(
        self,
        rescorer: Rescorer,
        *,
        tag_store: TagStore | None = None,
        top_n: int | None = None,
        score_of: Callable[[float], float] | None = None,
        encoder: Any = None,  # noqa: ANN401
    ) -> None:
        check_rescorer(rescorer, encoder=encoder, top_n=top_n)
        super().__init__(top_n=top_n)
        self._rescorer, self._tag_store, self._score_of = rescorer, tag_store, score_of

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
            ReRankStartEvent(
                query=query_bundle, nodes=nodes, top_n=wanted, model_name="rag-sourcebias"
            )
        )
        found = nodes if wanted >= len(nodes) else nodes[:wanted]
        with guarded(self._dropped, "rescorer failed"):
            plain = [one.node for one in nodes]
            given = rescored(
                self._rescorer,
                query_text(query_bundle),
                doc_ids=[node.node_id for node in plain],
                texts=[node.get_content(metadata_mode=MetadataMode.NONE) for node in plain],
                metadata=(node.metadata for node in plain),
                scores=[one.score for one in nodes],
                score_of=self._score_of,
                tag_store=self._tag_store,
            )
            if given is not None:
                ranked, scores = given
                found = [NodeWithScore(node=plain[i], score=scores[i]) for i in ranked[:wanted]]
        _dispatcher.event(ReRankEndEvent(nodes=found))
        return found
