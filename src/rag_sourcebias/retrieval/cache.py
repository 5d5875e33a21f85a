"""Vectors and scores kept on disk, so that no text is encoded twice.

One SQLite file, readable and writable by several processes at once. Every batch is its own
transaction: a run that is killed loses the batch it was computing and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_sourcebias.io.sqlite_file import MOST_KEYS, SqliteFile

__all__ = ["VectorCache"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    fingerprint TEXT NOT NULL,
    side TEXT NOT NULL,
    text BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (fingerprint, side, text)
) WITHOUT ROWID
"""


class VectorCache:
    """Store of float32 vectors by (fingerprint, side, text).

    The text itself is not stored, only its 128-bit BLAKE2b hash. A connection is opened for each
    call, so one object may be shared between threads and survives a fork.

    Parameters
    ----------
    path : str or Path
        SQLite file; it and its folder are created on first use.

    Raises
    ------
    DataError
        By every method, if the file is damaged, is not such a cache, or cannot be opened or
        written.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path, _SCHEMA)
        self.path = self._file.path

    def get(
        self, fingerprint: str, side: str, texts: Sequence[str]
    ) -> list[npt.NDArray[np.float32] | None]:
        """Return the vector of each text, shape (dimension,); None where there is none."""
        if not self._file.exists:
            return [None] * len(texts)
        keys = [_key(text) for text in texts]
        found: dict[bytes, npt.NDArray[np.float32]] = {}
        with self._file.connection() as database:
            for start in range(0, len(keys), MOST_KEYS):
                part = keys[start : start + MOST_KEYS]
                marks = ",".join("?" * len(part))
                rows = database.execute(
                    "SELECT text, vector FROM vectors "
                    f"WHERE fingerprint = ? AND side = ? AND text IN ({marks})",
                    (fingerprint, side, *part),
                )
                for key, vector in rows:
                    found[key] = self._decoded(vector)
        return [found.get(key) for key in keys]

    def put(
        self, fingerprint: str, side: str, texts: Sequence[str], vectors: npt.NDArray[np.float32]
    ) -> None:
        """Store one vector per text, in one transaction; an existing one is replaced.

        Parameters
        ----------
        vectors : float32 array of shape (len(texts), dimension)
        """
        rows = [
            (fingerprint, side, _key(text), vector.tobytes())
            for text, vector in zip(texts, np.asarray(vectors, dtype="<f4"), strict=True)
        ]
        self._file.create_folder()
        with self._file.connection() as database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def _decoded(self, stored: object) -> npt.NDArray[np.float32]:
        if not isinstance(stored, bytes) or len(stored) % 4:
            raise self._file.damaged("a stored vector is cut off")
        return np.frombuffer(stored, dtype="<f4").astype(np.float32)


def _key(text: str) -> bytes:
    # Lone surrogates occur in scraped text; they must not make a text impossible to cache.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
