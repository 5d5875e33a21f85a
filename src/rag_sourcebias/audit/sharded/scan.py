"""First step: what has to be known of every document, without its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.folder import Arrays, WorkFolder
from rag_sourcebias.measures import word_counts
from rag_sourcebias.protocols import Engine, ShardedCorpus
from rag_sourcebias.types.shards import Shard

__all__ = ["digests", "scan"]


@dataclass(frozen=True, slots=True)
class _Scan:
    corpus: ShardedCorpus
    folder: WorkFolder

    def __call__(self, shard: Shard) -> None:
        corpus = self.corpus.read(shard)
        tags = corpus.tags
        self.folder.write_arrays(
            shard.index,
            {
                "doc": digests(corpus.doc_ids)[:, 0],
                "judged": digests([self.corpus.judged_as(d) for d in corpus.doc_ids])[:, 0],
                "text": digests(corpus.texts),
                # The last one is taken by code −1, no pair.
                "pair": np.append(digests(tags.pair_ids)[:, 0], np.uint64(0))[tags.pair_codes],
                "words": word_counts(corpus.texts).astype(np.int32),
                "source": tags.source_codes,
                "sources": np.array([name.encode() for name in tags.sources], dtype=np.bytes_),
            },
        )


def scan(
    corpus: ShardedCorpus,
    folder: WorkFolder,
    engine: Engine,
    *,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Arrays]:
    """Read every shard once; what is known from before is not read again.

    Returns
    -------
    list of dict of arrays
        For each shard digests of ids, texts and pairs, words and sources.
    """
    left = [shard for shard in corpus.shards if not folder.file(shard.index, "npz").exists()]
    engine.map(partial(_Scan, corpus, folder), left, on_done=on_done)
    return [folder.read_arrays(shard.index) for shard in corpus.shards]


def digests(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """128-bit BLAKE2b digests of texts as two numbers each; shape ``(len(texts), 2)``."""
    joined = b"".join(
        # Lone surrogates occur in scraped text.
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    )
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, 2)
