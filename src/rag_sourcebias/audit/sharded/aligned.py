"""Shards that begin and end where texts are cut into calls of the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rag_sourcebias.audit.sharded.folder import identity
from rag_sourcebias.audit.sharded.joined import joined_tags
from rag_sourcebias.audit.sharded.over import OverCorpus
from rag_sourcebias.protocols import ShardedCorpus
from rag_sourcebias.retrieval.vectors import ENCODED_TOGETHER
from rag_sourcebias.types.documents import Corpus
from rag_sourcebias.types.shards import Shard

__all__ = ["AlignedCorpus"]


@dataclass(frozen=True, slots=True)
class AlignedCorpus(OverCorpus):
    """A corpus in shards of a whole number of encoder calls, whatever file the rows are in.

    The texts that an encoder gets together then do not depend on the shards. Rows of two shards
    of the corpus beneath are read from both.

    Parameters
    ----------
    corpus : ShardedCorpus
    documents : int
        Documents of a shard, rounded up to a multiple of 1,024.
    """

    documents: int

    @property
    def fingerprint(self) -> str:
        """Identity of the corpus beneath and of the size of shards."""
        return identity(self.corpus.fingerprint, self._size)

    @property
    def shards(self) -> Sequence[Shard]:
        """Shards of equal size, but for the last one."""
        last = self.corpus.shards[-1].rows.stop if self.corpus.shards else 0
        return tuple(
            Shard(index=index, first_row=start, n_documents=min(self._size, last - start))
            for index, start in enumerate(range(0, last, self._size))
        )

    def read(self, shard: Shard) -> Corpus:
        """Read the documents of a shard from the shards beneath that hold them."""
        parts = []
        for under in self.corpus.shards:
            start = max(shard.rows.start, under.rows.start)
            stop = min(shard.rows.stop, under.rows.stop)
            if start < stop:
                found = _read(_Held(self.corpus), under)
                whole = stop - start == under.n_documents
                rows = np.arange(start - under.first_row, stop - under.first_row)
                parts.append(found if whole else found.take(rows))
        if len(parts) == 1:
            return parts[0]
        texts = tuple(text for part in parts for text in part.texts)
        return Corpus(texts=texts, tags=joined_tags([part.tags for part in parts]))

    @property
    def _size(self) -> int:
        return -(-self.documents // ENCODED_TOGETHER) * ENCODED_TOGETHER


@dataclass(frozen=True, slots=True)
class _Held:
    corpus: ShardedCorpus

    def __hash__(self) -> int:
        return hash(self.corpus.fingerprint)


# The next shard usually needs the rest of the one that was read last.
@lru_cache(maxsize=1)
def _read(held: _Held, shard: Shard) -> Corpus:
    return held.corpus.read(shard)
