"""Our encoders as LangChain embeddings, and a compressor that reorders documents."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.observe.events import DroppedEvents, guarded
from rag_sourcebias_integrations._require import require_encoder
from rag_sourcebias_integrations._rescoring import check_rescorer, rescored
from rag_sourcebias_integrations.langchain.observe import ids_of

# Our encoders as LangChain embeddings.


class EncoderEmbeddings(Embeddings):
    """Embed documents and queries with an encoder, each by its own method.

    The async methods run in a thread, as LangChain's own default does.

    Parameters
    ----------
    encoder : Encoder

    Raises
    ------
    DataError
        If it has no ``encode_queries`` and ``encode_documents``.
    """

    def __init__(self, encoder: Encoder) -> None:
        require_encoder(encoder)
        self.encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts that are to be indexed; one vector for each, in order."""
        rows = self.encoder.encode_documents(list(texts)).tolist() if texts else []
        return cast("list[list[float]]", rows)

    def embed_query(self, text: str) -> list[float]:
        """Embed one query."""
        return cast("list[float]", self.encoder.encode_queries([text])[0].tolist())


# Where a mitigation enters a LangChain application: reorder the documents of a query.


class DebiasCompressor(BaseDocumentCompressor):
    """Reorder documents by new scores; for ``ContextualCompressionRetriever`` and pipelines.

    The very documents come back. Equal scores keep their order. If the rescorer raises or returns
    something unusable, such as because there are no scores, the documents come back in their order
    and the failure is counted.

    Parameters
    ----------
    rescorer : Rescorer
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    score_key : str
        Key of the metadata under which :class:`InstrumentedRetriever` left the scores.
    score_of : callable, optional
        From such a score to what the rescorer was fitted on. A calibration is in units of the
        cosine; what LangChain calls relevance is the cosine for Chroma with ``space: cosine``, and
        1 − √2·(1 − cosine) for squared distances of unit vectors (Chroma's default, FAISS), which
        ``lambda r: 1 - (1 - r) / 2**0.5`` takes back.
    top_n : int, optional
        Documents to return, at least 1; all by default. Retrieve more than are shown.
    encoder : Encoder or Embeddings or str, optional
        Where the scores come from; a rescorer that was fitted on another encoder is refused.

    Raises
    ------
    DataError
        If the rescorer cannot be called or was fitted on another encoder, or ``top_n`` is below 1.

    Examples
    --------
    ::

        scored = InstrumentedRetriever(
            store.as_retriever(search_kwargs={"k": 40}), observer, score_key="rsb_score"
        )
        retriever = ContextualCompressionRetriever(
            base_compressor=DebiasCompressor(calibration, encoder=encoder, top_n=10),
            base_retriever=scored,
        )
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rescorer: Any
    tag_store: Any = None
    score_key: str = "rsb_score"
    score_of: Callable[[float], float] | None = None
    top_n: int | None = None

    _dropped: DroppedEvents = PrivateAttr(default_factory=DroppedEvents)

    def __init__(self, rescorer: Any, *, encoder: Any = None, **options: Any) -> None:  # noqa: ANN401
        check_rescorer(rescorer, encoder=encoder, top_n=options.get("top_n"))
        super().__init__(rescorer=rescorer, **options)

    @property
    def dropped(self) -> DroppedEvents:
        """Queries whose documents were left in their order because something failed."""
        return self._dropped

    def compress_documents(
        self,
        documents: Sequence[Any],
        query: str,
        callbacks: Any = None,  # noqa: ANN401, ARG002
    ) -> Sequence[Any]:
        """Return the documents in their new order."""
        with guarded(self._dropped, "rescorer failed"):
            found = rescored(
                self.rescorer,
                query,
                doc_ids=ids_of(documents),
                texts=[d.page_content for d in documents],
                metadata=(d.metadata for d in documents),
                scores=[d.metadata.get(self.score_key) for d in documents],
                score_of=self.score_of,
                tag_store=self.tag_store,
            )
            if found is not None:
                return [documents[index] for index in found[0][: self.top_n]]
        return documents if self.top_n is None else documents[: self.top_n]
