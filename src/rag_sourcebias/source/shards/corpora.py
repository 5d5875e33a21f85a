"""The corpus whose pairs are cut to equal length, shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rag_sourcebias.core.data import Corpus, Shard
from rag_sourcebias.core.protocols import ShardedCorpus
from rag_sourcebias.retrieval.vectors import ENCODED_TOGETHER
from rag_sourcebias.source.shards.facts import (
    CorpusFacts,
    OverCorpus,
    WorkFolder,
    identity,
    joined_tags,
)
from rag_sourcebias.stats.texts import cut_to_words, word_counts

# Shards that begin and end where texts are cut into calls of the encoder.


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


# The corpus whose pairs are cut to equal length, shard by shard.


@dataclass(frozen=True, slots=True)
class CutCorpus(OverCorpus):
    """A corpus with every version of a document as short as its shortest version, in words.

    :func:`rag_sourcebias.stats.texts.match_lengths` for corpora that do not fit in memory.

    Parameters
    ----------
    corpus : ShardedCorpus
    folder : WorkFolder
        Holds the words to keep of each document.
    """

    folder: WorkFolder

    @property
    def fingerprint(self) -> str:
        """Identity of the uncut corpus, and that it is cut."""
        return identity(self.corpus.fingerprint, "equal length")

    @property
    def shards(self) -> Sequence[Shard]:
        """Shards of the uncut corpus."""
        return self.corpus.shards

    def read(self, shard: Shard) -> Corpus:
        """Read a shard and cut its texts."""
        corpus = self.corpus.read(shard)
        keep: Any = self.folder.map_array(shard.index)
        texts = list(corpus.texts)
        for row in np.flatnonzero(word_counts(corpus.texts) > keep):
            texts[row] = cut_to_words(texts[row], int(keep[row]))
        return Corpus(texts=tuple(texts), tags=corpus.tags)


def cut(corpus: ShardedCorpus, facts: CorpusFacts, folder: WorkFolder) -> CutCorpus:
    """Cut the pairs of a corpus to equal length."""
    shortest = facts.shortest_of_pair()
    for shard in facts.shards:
        if not folder.file(shard.index, "npy").exists():
            folder.write_array(shard.index, shortest[shard.rows.start : shard.rows.stop])
    return CutCorpus(corpus, folder)
