"""From what a Chroma query returns to ids, metadata and scores, one ranking per query vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Ranking", "rankings", "space_of"]


class Ranking(NamedTuple):
    """What one query vector found, best first."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, object] | None]
    scores: Sequence[float] | None

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield the documents one by one, as ``doc_id=`` of ``instrument`` is given them."""
        for index, doc_id in enumerate(self.ids):
            yield {
                "id": doc_id,
                "metadata": (self.metadata[index] if self.metadata else None) or {},
                "score": self.scores[index] if self.scores else None,
            }


def rankings(result: Mapping[str, Any], *, space: str) -> Iterator[Ranking]:
    """Yield the ranking of each query vector.

    Parameters
    ----------
    result : mapping
        A ``QueryResult``; fields that were not asked for are None.
    space : str
        "cosine" and "ip" distances d become scores 1 − d, others −d: higher is better.
    """
    metadata, distances = result["metadatas"], result["distances"]
    for index, ids in enumerate(result["ids"]):
        scores = None
        if distances:
            top = 0.0 if space == "l2" else 1.0
            scores = [top - distance for distance in distances[index]]
        yield Ranking(ids, metadata[index] if metadata else (), scores)


def space_of(collection: Any) -> str:  # noqa: ANN401 - a chromadb collection
    """Return the distance of a collection: "cosine", "ip" or "l2"."""
    configuration = collection.configuration_json or {}
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return "cosine" if index.get("space") in ("cosine", "ip") else "l2"
