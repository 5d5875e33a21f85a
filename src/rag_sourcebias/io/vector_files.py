"""Vectors that an encoder wrote to files: read a block of rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.arrays import map_array
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.shard_parts import FileState, state_fingerprint

__all__ = ["VectorFile", "Vectors", "open_vectors"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float16))


class VectorFile:
    """A ``.npy`` file with one vector per row, float32 or float16.

    The file is mapped only while rows are read, so that memory is that of the rows asked for, and
    the object can be sent to any process that sees the file under the same path.

    Parameters
    ----------
    path : path
        As ``numpy.save`` writes it.

    Raises
    ------
    DataError
        If the file is missing, not ``.npy``, shorter than it says, or its array is not of shape
        (n, d) with d at least 1 and of one of the two types.
    """

    def __init__(self, path: PathLike) -> None:
        self._state = FileState.of(Path(path).absolute())
        array = self._map()
        if array.ndim != 2 or array.shape[1] < 1:
            raise DataError(
                f"{self.path} holds an array of shape {array.shape}; expected (n, d), one vector "
                "per row"
            )
        if array.dtype not in _DTYPES:
            raise DataError(f"{self.path} holds {array.dtype}; expected float32 or float16")
        self.shape: tuple[int, int] = (array.shape[0], array.shape[1])
        self.dtype = array.dtype.name

    @property
    def path(self) -> Path:
        """Path of the file, absolute."""
        return self._state.path

    @property
    def fingerprint(self) -> str:
        """Identity of the file: its name, size and time of change."""
        return state_fingerprint([self._state], self.path.parent)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"VectorFile({str(self.path)!r}, shape={self.shape}, dtype={self.dtype})"

    def rows(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        """Read the rows from ``start`` up to, not including, ``stop``.

        Returns
        -------
        float32 array of shape (stop - start, d)
            A copy, in row order of memory.

        Raises
        ------
        DataError
            If rows are asked for that do not exist, a value is not finite, or the file changed
            since it was opened.
        """
        if not 0 <= start <= stop <= len(self):
            raise DataError(
                f"{self.path} has {len(self)} rows; rows {start} up to {stop} were asked for"
            )
        self._state.check()
        found = np.array(self._map()[start:stop], dtype=np.float32, order="C")
        return self._finite(found, np.arange(start, stop))

    def take(self, rows: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Read the rows asked for, in that order; shape (len(rows), d).

        Raises
        ------
        DataError
            As :meth:`rows`.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        outside = wanted[(wanted < 0) | (wanted >= len(self))]
        if len(outside):
            raise DataError(
                f"{self.path} has {len(self)} rows; row {outside[0]} (from 0) was asked for"
            )
        self._state.check()
        return self._finite(np.array(self._map()[wanted], dtype=np.float32, order="C"), wanted)

    def _finite(
        self, found: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if len(bad):
            column = int(np.flatnonzero(~np.isfinite(found[bad[0]]))[0])
            raise DataError(
                f"{self.path}: row {rows[bad[0]]} (from 0) holds {found[bad[0], column]} at "
                f"position {column}; expected finite numbers"
            )
        return found

    def _map(self) -> npt.NDArray[np.floating]:
        return map_array(self.path)


class Vectors(NamedTuple):
    """Vectors of all documents, in row order of the corpus, and of all queries, in file order."""

    documents: VectorFile
    queries: VectorFile


def open_vectors(
    documents: PathLike, queries: PathLike, *, n_documents: int, n_queries: int
) -> Vectors:
    """Open the vectors of a corpus and of its queries.

    Parameters
    ----------
    documents : path
        ``.npy``; row i belongs to row i of the corpus. Rows of a folder are in the order of its
        file names, and within a file of its lines.
    queries : path
        ``.npy``; one row for each line of ``queries.jsonl``, those without judgments too.
    n_documents, n_queries : int
        Rows expected.

    Raises
    ------
    DataError
        If a file is not of that form, has another number of rows, or the dimensions differ.
    """
    found = Vectors(documents=VectorFile(documents), queries=VectorFile(queries))
    for file, expected, what, order in (
        (found.documents, n_documents, "documents", "row i belongs to row i of the corpus"),
        (
            found.queries,
            n_queries,
            "queries in queries.jsonl",
            "one row for each of them in the order of that file, judged or not",
        ),
    ):
        if len(file) != expected:
            raise DataError(
                f"{file.path} holds {len(file)} vectors, but there are {expected} {what}; {order}"
            )
    if found.documents.shape[1] != found.queries.shape[1]:
        raise DataError(
            f"{found.documents.path} holds vectors of dimension {found.documents.shape[1]}, but "
            f"{found.queries.path} of {found.queries.shape[1]}; both must come from one encoder"
        )
    return found
