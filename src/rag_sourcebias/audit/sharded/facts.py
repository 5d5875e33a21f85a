"""What is known of a corpus without holding it: about 50 bytes a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.folder import Arrays
from rag_sourcebias.audit.sharded.scan import digests
from rag_sourcebias.audit.system import require_sources
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import ShardedCorpus
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.reports import AuditConfig
from rag_sourcebias.types.shards import Shard

__all__ = ["CorpusFacts", "gather"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorpusFacts:
    """Columns of a whole corpus, one row per document.

    Parameters
    ----------
    shards : tuple of Shard
    sources : tuple of str
        Sorted; ``source_codes`` (n,) index into it, −1 is untagged.
    words : int32 array of shape (n,)
    doc, judged, pair : uint64 arrays of shape (n,)
        Digests of the id, of the id that judgments use, and of the pair id (0 for none).
    text : uint64 array of shape (n, 2)
    """

    shards: tuple[Shard, ...]
    sources: tuple[str, ...]
    source_codes: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]
    doc: npt.NDArray[np.uint64]
    judged: npt.NDArray[np.uint64]
    pair: npt.NDArray[np.uint64]
    text: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.words)

    def require_sources(self, config: AuditConfig) -> None:
        """Refuse tags that allow no comparison with the baseline.

        Raises
        ------
        MissingTagsError, DataError
            As :func:`rag_sourcebias.audit.system.require_sources`.
        """
        nothing = TagTable.from_tags([])
        require_sources(replace(nothing, sources=self.sources, whole=self.counts()), config)

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts untagged ones when there are any."""
        found = np.bincount(self.source_codes + 1, minlength=len(self.sources) + 1).tolist()
        result = dict(zip(self.sources, found[1:], strict=True))
        return result | ({"": found[0]} if found[0] else {})

    def mean_words(self) -> dict[str, float]:
        """Mean document length in words per source."""
        return {
            name: float(self.words[self.source_codes == code].mean(dtype=np.float64))
            for code, name in enumerate(self.sources)
        }

    def n_pairs(self) -> int:
        """Number of pairs with documents of more than one source."""
        rows = np.flatnonzero((self.pair > 0) & (self.source_codes >= 0))
        order = rows[np.lexsort((self.source_codes[rows], self.pair[rows]))]
        pair, source = self.pair[order], self.source_codes[order]
        same = pair[1:] == pair[:-1]
        return len(np.unique(pair[1:][same & (source[1:] != source[:-1])]))

    def judged_rows(self, doc_ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Rows of all versions of judged documents, by the ids that judgments use."""
        return np.flatnonzero(np.isin(self.judged, digests(doc_ids)[:, 0]))

    def shortest_of_pair(self) -> npt.NDArray[np.int32]:
        """Words of the shortest version of each document; its own without a pair."""
        names, code = np.unique(self.pair, return_inverse=True)
        shortest = np.full(len(names), np.iinfo(np.int32).max, dtype=np.int32)
        np.minimum.at(shortest, code, self.words)
        return np.where(self.pair > 0, shortest[code], self.words).astype(np.int32)


def gather(corpus: ShardedCorpus, found: Sequence[Arrays]) -> CorpusFacts:
    """Put together what was found in the shards.

    Raises
    ------
    DataError
        If a document id occurs twice, or the corpus is empty.
    """
    if not found:
        raise DataError(f"corpus {corpus.name!r} has no documents")
    names = [[name.decode() for name in one["sources"].tolist()] for one in found]
    sources = tuple(sorted({name for some in names for name in some}))
    code_of = {name: code for code, name in enumerate(sources)}
    codes = [
        # The last one is taken by code −1, untagged.
        np.array([*(code_of[n] for n in some), -1], dtype=np.int32)[one["source"]]
        for some, one in zip(names, found, strict=True)
    ]
    facts = CorpusFacts(
        shards=tuple(corpus.shards),
        sources=sources,
        source_codes=np.concatenate(codes),
        words=_column(found, "words"),
        doc=_column(found, "doc"),
        judged=_column(found, "judged"),
        pair=_column(found, "pair"),
        text=_column(found, "text"),
    )
    _refuse_twice(corpus, facts)
    return facts


def _column(found: Sequence[Arrays], name: str) -> npt.NDArray[Any]:
    return np.concatenate([one[name] for one in found])


def _refuse_twice(corpus: ShardedCorpus, facts: CorpusFacts) -> None:
    order = np.argsort(facts.doc, kind="stable")
    same = np.flatnonzero(facts.doc[order][1:] == facts.doc[order][:-1])
    for at in same.tolist():
        first, second = (_doc_id(corpus, facts, int(row)) for row in order[at : at + 2])
        if first == second:  # not just two ids with one digest
            raise DataError(
                f"document id {first!r} occurs twice in {corpus.name!r}; each document needs its "
                "own id"
            )


def _doc_id(corpus: ShardedCorpus, facts: CorpusFacts, row: int) -> str:
    shard = next(shard for shard in facts.shards if row in shard.rows)
    return corpus.read(shard).doc_ids[row - shard.first_row]
