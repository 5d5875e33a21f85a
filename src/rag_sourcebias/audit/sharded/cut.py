"""The corpus whose pairs are cut to equal length, shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.audit.sharded.facts import CorpusFacts
from rag_sourcebias.audit.sharded.folder import WorkFolder, identity
from rag_sourcebias.audit.sharded.over import OverCorpus
from rag_sourcebias.measures import cut_to_words, word_counts
from rag_sourcebias.protocols import ShardedCorpus
from rag_sourcebias.types.documents import Corpus
from rag_sourcebias.types.shards import Shard

__all__ = ["CutCorpus", "cut"]


@dataclass(frozen=True, slots=True)
class CutCorpus(OverCorpus):
    """A corpus with every version of a document as short as its shortest version, in words.

    :func:`rag_sourcebias.measures.match_lengths` for corpora that do not fit in memory.

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
