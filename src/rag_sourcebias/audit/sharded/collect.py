"""Fourth step: texts and tags of what was retrieved or judged, the only ones a report needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.facts import CorpusFacts
from rag_sourcebias.audit.sharded.joined import joined_tags
from rag_sourcebias.protocols import Engine, ShardedCorpus
from rag_sourcebias.retrieval.exact import Best, best_run
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import Corpus
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.shards import Shard

__all__ = ["Excerpt", "collect"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excerpt:
    """Some documents of a corpus, in row order, with the counts of the whole.

    Parameters
    ----------
    corpus : Corpus
        Its tag table knows the number of documents per source of the whole corpus. Texts that
        nothing needs are empty.
    rows : int64 array of shape (n,)
        Rows of the documents within the whole corpus, rising.
    """

    corpus: Corpus
    rows: IntArray

    def run(self, found: Best, *, query_ids: Sequence[str], name: str) -> Run:
        """Turn what was found into a run over the excerpt."""
        return best_run(
            replace(found, row=np.searchsorted(self.rows, found.row)),
            query_ids=query_ids,
            doc_ids=self.corpus.doc_ids,
            name=name,
        )


class _Item(NamedTuple):
    shard: Shard
    rows: IntArray
    with_text: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Collect:
    corpus: ShardedCorpus

    def __call__(self, item: _Item) -> Corpus:
        found = self.corpus.read(item.shard).take(item.rows - item.shard.first_row)
        texts = zip(found.texts, item.with_text.tolist(), strict=True)
        return Corpus(
            texts=tuple(text if wanted else "" for text, wanted in texts),
            # Names that only other documents of the shard have are not sent along.
            tags=joined_tags([found.tags]),
        )


def collect(
    corpus: ShardedCorpus,
    facts: CorpusFacts,
    engine: Engine,
    *,
    rows: IntArray,
    with_text: IntArray,
    on_done: Callable[[int, int], None] | None = None,
) -> Excerpt:
    """Read the documents of the given rows from the shards that hold them.

    Parameters
    ----------
    rows, with_text : int64 arrays
        Rows of the whole corpus, in any order; the text of a document that is not among
        ``with_text`` is left empty.
    """
    wanted = np.unique(np.concatenate((rows, with_text)))
    texted = np.isin(wanted, with_text)
    items = []
    for shard in facts.shards:
        start, stop = np.searchsorted(wanted, (shard.rows.start, shard.rows.stop))
        if stop > start:
            items.append(_Item(shard, wanted[start:stop].copy(), texted[start:stop].copy()))
    parts = engine.map(partial(_Collect, corpus), items, on_done=on_done)
    tags = joined_tags([part.tags for part in parts], sources=facts.sources)
    texts = tuple(text for part in parts for text in part.texts)
    return Excerpt(
        corpus=Corpus(texts=texts, tags=replace(tags, whole=facts.counts())), rows=wanted
    )
