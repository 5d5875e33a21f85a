"""Where a mitigation enters a LangChain application: reorder the documents of a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.runnables import RunnableLambda
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import DroppedEvents, TagLookup, guarded
from rag_sourcebias.tagging import from_metadata
from rag_sourcebias.types import DocTags
from rag_sourcebias_integrations.langchain.convert import id_of

__all__ = ["DebiasCompressor"]

_UNKNOWN = DocTags()


class DebiasCompressor(BaseDocumentCompressor):
    """Reorder documents by new scores; for ``ContextualCompressionRetriever`` and pipelines.

    The very documents come back, all of them. Equal scores keep their order. If the rescorer
    raises or returns something unusable, the documents come back unchanged and the failure is
    counted.

    Parameters
    ----------
    rescorer : Rescorer
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    score_key : str
        Key of the metadata under which :class:`InstrumentedRetriever` left the scores.

    Raises
    ------
    DataError
        If the rescorer cannot be called.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rescorer: Any
    tag_store: Any = None
    score_key: str = "rsb_score"

    _dropped: DroppedEvents = PrivateAttr(default_factory=DroppedEvents)

    def __init__(self, rescorer: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(rescorer=rescorer, **options)
        if not callable(rescorer):
            raise DataError(f"{rescorer!r:.80} is not a rescorer; expected a function")

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
            scores = self.rescorer(
                query,
                doc_ids=[id_of(d) for d in documents],
                texts=[d.page_content for d in documents],
                tags=self._tags(documents),
                scores=self._scores(documents),
            )
            if scores is None:
                return documents
            ranked = sorted(range(len(documents)), key=_usable(scores, documents).__getitem__)
            return [documents[index] for index in ranked]
        return documents

    def as_runnable(self) -> Any:  # noqa: ANN401 - a RunnableLambda
        """Return a runnable from ``{"documents": …, "query": …}`` to documents.

        ``{"documents": retriever, "query": RunnablePassthrough()} | compressor.as_runnable()``
        """

        def debias(given: Mapping[str, Any]) -> Sequence[Any]:
            return self.compress_documents(given["documents"], given["query"])

        return RunnableLambda(debias)

    def _tags(self, documents: Sequence[Any]) -> list[DocTags]:
        inside = [from_metadata(document.metadata) for document in documents]
        if self.tag_store is None:
            return inside
        stored = TagLookup(self.tag_store).get([id_of(document) for document in documents])
        return [b if a == _UNKNOWN else a for a, b in zip(stored, inside, strict=True)]

    def _scores(self, documents: Sequence[Any]) -> list[float] | None:
        found = [document.metadata.get(self.score_key) for document in documents]
        numbers = [float(score) for score in found if isinstance(score, float | int)]
        return numbers if len(numbers) == len(documents) else None


def _usable(scores: Sequence[float], documents: Sequence[Any]) -> list[float]:
    """Return what to sort by; a stable sort keeps the order of equal scores."""
    keys = [-float(score) for score in scores]
    if len(keys) != len(documents) or not all(map(math.isfinite, keys)):
        raise DataError(
            f"the rescorer returned {len(keys)} scores for {len(documents)} documents; expected "
            "one finite number for each"
        )
    return keys
