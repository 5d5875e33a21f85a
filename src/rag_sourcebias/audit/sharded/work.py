"""One retriever on a sharded corpus: from texts to runs, each step kept in the work folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from rag_sourcebias.audit.sharded.collect import Excerpt, collect
from rag_sourcebias.audit.sharded.encode import Places, encode, places
from rag_sourcebias.audit.sharded.facts import CorpusFacts, gather
from rag_sourcebias.audit.sharded.folder import WorkFolder, identity
from rag_sourcebias.audit.sharded.retriever import ShardedRetriever
from rag_sourcebias.audit.sharded.scan import scan
from rag_sourcebias.audit.sharded.search import MIXED, Searched, search, views_of
from rag_sourcebias.audit.sharded.stored import EncodedVectors, GivenVectors, StoredVectors
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import ShardedDataset
from rag_sourcebias.protocols import Encoder, Engine, ShardedCorpus
from rag_sourcebias.retrieval.exact import Best
from rag_sourcebias.retrieval.vectors import checked_vectors, query_vectors
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.shards import Shard

__all__ = ["Found", "Job", "Known"]


class Known(NamedTuple):
    """A corpus that was scanned: its facts and where its files are kept."""

    corpus: ShardedCorpus
    facts: CorpusFacts
    folder: WorkFolder


class Found(NamedTuple):
    """What a retriever found, by view, and the documents in it together with the judged ones."""

    best: Mapping[str, Best]
    excerpt: Excerpt


@dataclass(slots=True)
class Job:
    """Everything that stays the same during an audit."""

    dataset: ShardedDataset
    folder: WorkFolder
    engine: Engine
    begin: Callable[[str], None]
    advance: Callable[[int, int], None] | None
    texts: bool  # whether the texts of what was retrieved are needed
    _encoded: dict[str, tuple[Known, Places, WorkFolder]] = field(default_factory=dict)

    def scanned(self, corpus: ShardedCorpus, what: str) -> Known:
        """Read a corpus once, for what has to be known of all its documents."""
        folder = self.folder.sub(identity(corpus.fingerprint))
        self.begin(what)
        found = scan(corpus, folder.sub("scan"), self.engine, on_done=self.advance)
        return Known(corpus, gather(corpus, found), folder)

    def encoder(self, retriever: ShardedRetriever) -> Encoder | None:
        """Build the encoder of a retriever, for queries and settings."""
        return None if retriever.make_encoder is None else retriever.make_encoder()

    def queries(self, retriever: ShardedRetriever, encoder: Encoder | None) -> Float32Array:
        """Vectors of the queries, as they are searched."""
        if encoder is not None:
            return query_vectors(encoder, self.dataset.queries, similarity=retriever.similarity)
        if retriever.vectors is None:
            raise DataError(f"retriever {retriever.name!r} has neither an encoder nor vectors")
        return checked_vectors(
            retriever.vectors.queries.take(self.dataset.query_rows),
            what=str(retriever.vectors.queries.path),
            names=[query.query_id for query in self.dataset.queries],
            similarity=retriever.similarity,
        )

    def find(
        self,
        known: Known,
        retriever: ShardedRetriever,
        encoder: Encoder | None,
        *,
        queries: Float32Array,
        depth: int,
        alone: bool,
        index: str,
    ) -> Found:
        """Search a corpus, and read what was found and what is judged."""
        stored = self._vectors(known, retriever, encoder)
        name = retriever.name
        self.begin(f"{name}: searching {len(known.facts):,} documents, {_named(index)}")
        asked = identity(
            retriever.fingerprint(encoder), depth, alone, index, queries.tobytes().hex()
        )
        best = search(
            known.facts,
            views_of(known.facts, alone=alone),
            stored,
            known.folder.sub("found", asked),
            self.engine,
            searched=Searched(queries, depth, index),
            on_done=self.advance,
        )
        self.begin(f"{name}: reading what was found")
        judged = known.facts.judged_rows(self.dataset.judged.doc_ids)
        found = np.concatenate([one.row for one in best.values()])
        excerpt = collect(
            known.corpus,
            known.facts,
            self.engine,
            rows=found,
            # Twins are compared by their texts; a reranker reads what was retrieved.
            with_text=np.concatenate((judged, best[MIXED].row)) if self.texts else judged,
            on_done=self.advance,
        )
        return Found(best, excerpt)

    def _vectors(
        self, known: Known, retriever: ShardedRetriever, encoder: Encoder | None
    ) -> Callable[[Shard], StoredVectors]:
        if retriever.vectors is not None:
            given = GivenVectors(retriever.vectors.documents, retriever.similarity)
            return lambda _: given
        if encoder is None or retriever.make_encoder is None:
            raise DataError(f"retriever {retriever.name!r} has neither an encoder nor vectors")
        identified = retriever.fingerprint(encoder)
        # Texts that the uncut corpus holds already keep their vectors.
        before = self._encoded.get(identified)
        earlier = None if before is None or before[0] is known else before
        own = places(known.facts, known=None if earlier is None else (earlier[0].facts, earlier[1]))
        folder = known.folder.sub("vectors", identified)
        self.begin(f"{retriever.name}: encoding {int(own.own.sum()):,} texts")
        encode(
            known.corpus,
            own.own,
            folder,
            self.engine,
            make_encoder=retriever.make_encoder,
            similarity=retriever.similarity,
            on_done=self.advance,
        )
        self._encoded.setdefault(identified, (known, own, folder))
        folders = (folder,) if earlier is None else (earlier[2], folder)
        return partial(_encoded_of, folders, len(known.facts.shards), own)


def _encoded_of(
    folders: tuple[WorkFolder, ...], n_shards: int, own: Places, shard: Shard
) -> EncodedVectors:
    part = slice(shard.rows.start, shard.rows.stop)
    return EncodedVectors(folders, n_shards, own.file[part].copy(), own.index[part].copy())


def _named(index: str) -> str:
    return "exactly" if index == "exact" else f"with one {index} index per shard"
