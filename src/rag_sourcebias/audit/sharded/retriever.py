"""What retrieves from a sharded corpus: an encoder, or vectors that exist already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rag_sourcebias.audit.sharded.folder import identity
from rag_sourcebias.io import Vectors
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval.faiss_index import require_index
from rag_sourcebias.retrieval.vectors import Similarity

__all__ = ["ShardedRetriever"]


@dataclass(frozen=True, kw_only=True)
class ShardedRetriever:
    """Recipe of a dense retriever over a corpus that is worked on shard by shard.

    Parameters
    ----------
    name : str
    make_encoder : callable, optional
        Returns the encoder; called once in every worker, so that it can be pickled and the encoder
        need not.
    vectors : Vectors, optional
        Vectors of documents and queries that exist already, instead of an encoder.
    similarity : {"cosine", "dot"}
    index : str
        ``"exact"``, or what ``faiss.index_factory`` takes (``"HNSW32,Flat"``): one index per
        shard chooses the documents, exact search is measured beside it.

    Raises
    ------
    DataError, MissingExtraError
        If the index is unknown, or faiss is not installed.
    """

    name: str
    make_encoder: Callable[[], Encoder] | None = field(default=None, repr=False)
    vectors: Vectors | None = field(default=None, repr=False)
    similarity: Similarity = "cosine"
    index: str = "exact"

    def __post_init__(self) -> None:
        require_index(self.index)

    def settings(self, encoder: Encoder | None) -> Mapping[str, str]:
        """Settings a report must state."""
        own = encoder.settings if encoder is not None else {"vectors": self._file_name()}
        return {**own, "similarity": self.similarity, "search": self.index}

    def fingerprint(self, encoder: Encoder | None) -> str:
        """Identity of everything that changes the vectors as they are searched."""
        if self.vectors is not None:
            files = self.vectors.documents.fingerprint, self.vectors.queries.fingerprint
            return identity(*files, self.similarity)
        return identity("" if encoder is None else encoder.fingerprint, self.similarity)

    def _file_name(self) -> str:
        return "" if self.vectors is None else self.vectors.documents.path.name
