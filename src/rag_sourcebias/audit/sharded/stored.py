"""Where the vectors of a shard are, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.folder import WorkFolder
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import VectorFile
from rag_sourcebias.retrieval.vectors import Similarity, checked_vectors
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.shards import Shard

__all__ = ["EncodedVectors", "GivenVectors", "StoredVectors"]


class StoredVectors(Protocol):
    """Vectors that a worker can read."""

    def read(self, shard: Shard) -> Float32Array:
        """Return the vectors of the documents of a shard, shape ``(n_documents, dimension)``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EncodedVectors:
    """Vectors of the work folder, see :class:`~rag_sourcebias.audit.sharded.encode.Places`."""

    folders: tuple[WorkFolder, ...]
    n_shards: int
    file: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]

    def read(self, shard: Shard) -> Float32Array:
        """Return the vectors of a shard, from all files that hold some of them."""
        result: Float32Array | None = None
        for number in np.unique(self.file).tolist():
            stored = self.folders[number // self.n_shards].map_array(number % self.n_shards)
            here = np.flatnonzero(self.file == number)
            if int(self.index[here].max()) >= len(stored):
                path = self.folders[number // self.n_shards].file(number % self.n_shards, "npy")
                raise DataError(f"{path} holds too few vectors; delete it and start again")
            if result is None:
                result = np.empty((shard.n_documents, stored.shape[1]), dtype=np.float32)
            result[here] = stored[self.index[here]]
        return np.empty((0, 0), dtype=np.float32) if result is None else result


@dataclass(frozen=True, slots=True, eq=False)
class GivenVectors:
    """Vectors of a file whose rows are those of the corpus."""

    file: VectorFile
    similarity: Similarity

    def read(self, shard: Shard) -> Float32Array:
        """Return the vectors of a shard, normalised for cosine similarity."""
        rows = shard.rows
        return checked_vectors(
            self.file.rows(rows.start, rows.stop),
            what=str(self.file.path),
            names=[f"row {row}" for row in rows],
            similarity=self.similarity,
        )
