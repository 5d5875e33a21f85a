"""Second step: the vector of every distinct text, in files of the work folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.facts import CorpusFacts
from rag_sourcebias.audit.sharded.folder import WorkFolder
from rag_sourcebias.protocols import Encoder, Engine, ShardedCorpus
from rag_sourcebias.retrieval.vectors import ENCODED_TOGETHER, Similarity, checked_vectors
from rag_sourcebias.types.shards import Shard

__all__ = ["Places", "encode", "places"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where the vector of each document is stored.

    Equal texts share a vector, so that exact copies tie exactly in whatever shard they are.

    Parameters
    ----------
    file : int32 array of shape (n,)
        Number of the file: that of the shard in which the text occurs first.
    index : int32 array of shape (n,)
        Row within that file.
    own : bool array of shape (n,)
        Whether the text occurs first in this very row, so that this shard encodes it.
    """

    file: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    own: npt.NDArray[np.bool_]


def places(facts: CorpusFacts, *, known: tuple[CorpusFacts, Places] | None = None) -> Places:
    """Find where every text occurs first, and with that where its vector is stored.

    Parameters
    ----------
    known : CorpusFacts and Places, optional
        Of a corpus whose vectors exist already, with as many shards: texts that it holds are not
        encoded again. Files of this corpus are counted on from its files.
    """
    n_known = 0 if known is None else len(known[0])
    text = facts.text if known is None else np.concatenate((known[0].text, facts.text))
    owner = _first_rows(text)[n_known:]
    own = owner == np.arange(n_known, n_known + len(facts))
    shard_of = np.repeat(np.arange(len(facts.shards)), [s.n_documents for s in facts.shards])
    starts = np.array([s.first_row for s in facts.shards])
    before = np.cumsum(own) - own  # texts encoded before each row, then within its shard
    file = shard_of.astype(np.int32)
    index = (before - before[starts][shard_of]).astype(np.int32)
    if known is not None:
        file = np.concatenate((known[1].file, file + len(known[0].shards)))
        index = np.concatenate((known[1].index, index))
    return Places(file=file[owner].astype(np.int32), index=index[owner], own=own)


def _first_rows(text: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return for each digest the first row that has it."""
    order = np.lexsort((text[:, 1], text[:, 0]))  # stable: the first row leads its group
    ordered = text[order]
    leads = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    first = np.empty(len(text), dtype=np.int64)
    first[order] = order[leads][np.cumsum(leads) - 1]
    return first


class _Item(NamedTuple):
    shard: Shard
    own: npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Encode:
    corpus: ShardedCorpus
    folder: WorkFolder
    encoder: Encoder
    similarity: Similarity

    def __call__(self, item: _Item) -> None:
        corpus = self.corpus.read(item.shard)
        rows = np.flatnonzero(item.own)
        part = (rows + item.shard.first_row) // ENCODED_TOGETHER
        groups = np.split(rows, np.flatnonzero(np.diff(part)) + 1) if len(rows) else []
        found = [
            checked_vectors(
                self.encoder.encode_documents([corpus.texts[row] for row in group]),
                what=f"encoder {self.encoder.name!r}, documents",
                names=[corpus.doc_ids[row] for row in group],
                similarity=self.similarity,
            )
            for group in groups
        ]
        nothing = np.empty((0, 0), dtype=np.float32)
        self.folder.write_array(item.shard.index, np.concatenate(found) if found else nothing)


def _prepare(
    corpus: ShardedCorpus,
    folder: WorkFolder,
    make_encoder: Callable[[], Encoder],
    similarity: Similarity,
) -> _Encode:
    return _Encode(corpus, folder, make_encoder(), similarity)


def encode(
    corpus: ShardedCorpus,
    own: npt.NDArray[np.bool_],
    folder: WorkFolder,
    engine: Engine,
    *,
    make_encoder: Callable[[], Encoder],
    similarity: Similarity,
    on_done: Callable[[int, int], None] | None = None,
) -> None:
    """Encode the texts that occur first in their row; finished shards are left as they are.

    Texts are handed to the encoder as :func:`rag_sourcebias.retrieval.vectors.encode_corpus` does,
    so that the vectors are the same to the last digit.
    """
    shards: Sequence[Shard] = corpus.shards
    items = [_Item(s, own[s.first_row : s.first_row + s.n_documents]) for s in shards]
    left = [item for item in items if not folder.file(item.shard.index, "npy").exists()]
    prepare = partial(_prepare, corpus, folder, make_encoder, similarity)
    engine.map(prepare, left, on_done=on_done)
