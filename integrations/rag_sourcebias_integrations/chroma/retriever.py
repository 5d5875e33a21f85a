"""A Chroma collection as a retriever; try another one on live queries and switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from rag_sourcebias.core.data import Corpus, Query, RankedList, Run
from rag_sourcebias.core.errors import DataError, require_at_least, require_one_of
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.retrieval.cache import encode_corpus, query_vectors
from rag_sourcebias.retrieval.search import DenseRetriever
from rag_sourcebias_integrations.chroma.collections import (
    collection_name,
    fill_collection,
    open_client,
)

# A Chroma collection as a retriever, with exact search beside it.


Space = Literal["cosine", "ip"]
_OPTIONS = {"ef_search": "ef_search", "ef_construction": "ef_construction", "m": "max_neighbors"}
_QUERIES = 256  # queries per request


class ChromaSpec:
    """Index a corpus in a Chroma collection and search it as deployed.

    Parameters
    ----------
    encoder : Encoder
        Encodes documents and queries; Chroma only stores and searches vectors.
    place : str, Path or None
        None for an embedded collection in memory, a path for one on disk, an ``http://`` URL for
        a running server.
    space : {"cosine", "ip"}
    hnsw : mapping of str to int, optional
        Index settings (``ef_search``, ``ef_construction``, ``max_neighbors``); Chroma's own
        defaults otherwise.
    prefix : str
        Start of the collection's name; letters, digits, ``.``, ``_`` and ``-``.
    name : str, optional

    Raises
    ------
    DataError
        If the space is unknown; on building, if Chroma refuses a setting or cannot be reached.
    MissingExtraError
        On building, if chromadb is not installed.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        place: str | Path | None = None,
        space: Space = "cosine",
        hnsw: Mapping[str, int] | None = None,
        prefix: str = "rag-sourcebias",
        name: str | None = None,
    ) -> None:
        require_one_of("Chroma space", space, get_args(Space))
        self.name = name or f"chroma:{encoder.name}"
        self._encoder = encoder
        self._place = place
        self._space: Space = space
        self._hnsw = dict(hnsw or {})
        self._prefix = prefix

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        where = "memory" if self._place is None else "disk"
        server = str(self._place).startswith(("http://", "https://"))
        return {
            **self._encoder.settings,
            "search": "Chroma HNSW index",
            "space": self._space,
            "index": ", ".join(f"{k}={v}" for k, v in self._hnsw.items()) or "Chroma's defaults",
            "collection": "server" if server else where,
            "chromadb": version("chromadb"),
        }

    def build(self, corpus: Corpus) -> ChromaRetriever:
        """Fill a collection, or go on with one left by an interrupted run."""
        client = open_client(self._place)
        identity = (
            self._encoder.fingerprint,
            self._space,
            *(f"{k}={v}" for k, v in sorted(self._hnsw.items())),
        )
        vectors = encode_corpus(
            self._encoder, corpus, similarity="cosine" if self._space == "cosine" else "dot"
        )
        collection = fill_collection(
            client,
            collection_name(self._prefix, corpus, identity),
            doc_ids=corpus.doc_ids,
            vectors=vectors.per_document,
            space=self._space,
            hnsw=self._hnsw,
        )
        return ChromaRetriever(
            name=self.name,
            collection=collection,
            encoder=self._encoder,
            beside=DenseRetriever(name=self.name, encoder=self._encoder, vectors=vectors),
        )


@dataclass(kw_only=True)
class ChromaRetriever:
    """Search of one collection.

    Parameters
    ----------
    collection : chromadb Collection
    encoder : Encoder
        For the query side.
    exact : DenseRetriever
        The same vectors with exact search.
    """

    name: str
    collection: Any
    encoder: Encoder
    beside: DenseRetriever

    def exact(self) -> DenseRetriever:
        """Return exact search over the same vectors."""
        return self.beside

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query, in the order Chroma gives them.

        Scores are 1 − distance: cosine similarity or inner product, higher is better.
        """
        require_at_least(1, depth=depth)
        if not queries:
            return Run.from_lists([], name=self.name)
        vectors = query_vectors(self.encoder, queries, similarity=self.beside.vectors.similarity)
        lists: list[RankedList] = []
        for start in range(0, len(queries), _QUERIES):
            part = queries[start : start + _QUERIES]
            found = self.collection.query(
                query_embeddings=vectors[start : start + _QUERIES],
                n_results=min(depth, max(self.collection.count(), 1)),
                include=["distances"],
            )
            lists += [
                RankedList(
                    query_id=query.query_id,
                    doc_ids=tuple(ids),
                    scores=(1 - np.asarray(distances)).astype(np.float32),
                )
                for query, ids, distances in zip(
                    part, found["ids"], found["distances"], strict=True
                )
            ]
        return Run.from_lists(lists, name=self.name)


def chroma_spec(encoder: Encoder, **options: str) -> ChromaSpec:
    """Build a :class:`ChromaSpec` from options on the command line.

    Parameters
    ----------
    **options : str
        ``path`` or ``url``, ``space`` (cosine or ip), ``ef_search``, ``ef_construction``, ``m``.
    """
    known = ("path", "url", "space", *_OPTIONS)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise DataError(
            f"retriever kind 'chroma' has no option {', '.join(unknown)}; there are "
            f"{', '.join(known)}"
        )
    if "path" in options and "url" in options:
        raise DataError("a Chroma collection is either on disk (path) or on a server (url)")
    hnsw = {}
    for option, setting in _OPTIONS.items():
        if option in options:
            if not options[option].isdecimal() or int(options[option]) < 1:
                raise DataError(f"option {option}={options[option]!r} must be a whole number")
            hnsw[setting] = int(options[option])
    return ChromaSpec(
        encoder,
        place=options.get("url", options.get("path")),
        space=cast("Space", options.get("space", "cosine")),
        hnsw=hnsw,
    )
