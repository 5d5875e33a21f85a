"""Vectors and scores on disk, so that an interrupted job goes on where it stopped."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError

__all__ = ["VectorCache", "fill"]

FloatArray = npt.NDArray[np.float32]
_CHUNK = 900  # below SQLite's oldest limit of variables in one statement
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
)


class VectorCache:
    """float32 vectors by (model fingerprint, side, text) in one SQLite file.

    Every batch is committed, so a kill loses at most the batch in progress. Several processes may
    share a file.

    Parameters
    ----------
    path : path
        Created, with its folder, when missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(_SCHEMA)
            self._connection.commit()
        except (sqlite3.Error, OSError) as error:
            raise DataError(
                f"cache {self.path} cannot be used ({error}); delete the file or name another "
                "cache folder"
            ) from error

    @staticmethod
    def key(fingerprint: str, side: str, text: str) -> bytes:
        """Key of one text; texts never enter the file."""
        digest = blake2b(digest_size=20)
        for part in (fingerprint, side, text):
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
        return digest.digest()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """Return the stored vectors among ``keys``."""
        found: dict[bytes, FloatArray] = {}
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT key, vector FROM vectors WHERE key IN ({marks})",
                part,
            )
            found.update((key, np.frombuffer(raw, dtype="<f4")) for key, raw in rows)
        return found

    def put(self, keys: Sequence[bytes], vectors: FloatArray) -> None:
        """Store vectors and commit."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [
                    (k, np.asarray(v, dtype="<f4").tobytes())
                    for k, v in zip(keys, vectors, strict=True)
                ],
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def fill(
    cache: VectorCache,
    keys: Sequence[bytes],
    compute: Callable[[list[int]], FloatArray],
    *,
    order: Sequence[int],
    batch_size: int,
    progress: Callable[[int, int], None] | None,
) -> FloatArray:
    """Return one row per key, computing and storing only what is missing.

    Parameters
    ----------
    compute : callable
        Positions to rows; called with at most ``batch_size`` positions of distinct keys.
    order : sequence of int
        Order in which positions are computed (by length, so that batches are even).
    """
    if not keys:
        return compute([])
    found = cache.get(keys)
    wanted = {key: position for position, key in reversed(list(enumerate(keys)))}
    missing = [p for p in order if keys[p] not in found and wanted[keys[p]] == p]
    done = len(keys) - len(missing)
    for start in range(0, len(missing), batch_size):
        part = missing[start : start + batch_size]
        rows = compute(part)
        cache.put([keys[p] for p in part], rows)
        found.update((keys[p], row) for p, row in zip(part, rows, strict=True))
        if progress is not None:
            progress(done + start + len(part), len(keys))
    return np.stack([found[key] for key in keys])
