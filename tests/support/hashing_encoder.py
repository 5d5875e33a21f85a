"""A small deterministic encoder: hashed words, no model."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np


class HashingEncoder:
    """Counts words in hashed bins; remembers what it was asked for."""

    def __init__(self, dimension: int = 64) -> None:
        self.name = "hashing"
        self.dimension = dimension
        self.calls: list[list[str]] = []
        self.fail_after: int | None = None

    @property
    def fingerprint(self) -> str:
        return f"hashing-{self.dimension}"

    @property
    def settings(self) -> Mapping[str, str]:
        return {"model": "hashing", "dtype": "float32"}

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.fail_after is not None and len(self.calls) >= self.fail_after:
            raise KeyboardInterrupt
        self.calls.append(list(texts))
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.dimension] += 1
        return rows
