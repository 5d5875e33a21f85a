"""Systems and data with nothing to find, for the controls of the checks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus

SEED = 0


class ConstantEncoder:
    """The same vector for every text."""

    name = "constant"
    fingerprint = "constant"
    settings: Mapping[str, str] = {"vectors": "all alike"}

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)

    encode_documents = encode_queries


class RandomReranker:
    """A score that is a hash of query and text: it knows nothing of either."""

    name = "random reranker"
    fingerprint = "random reranker"
    settings: Mapping[str, str] = {"scores": "SHA-256 of query and text"}

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        digests = (hashlib.sha256("\n".join(pair).encode()).digest() for pair in pairs)
        numbers = [int.from_bytes(digest[:3], "big") for digest in digests]
        return np.array(numbers, dtype=np.float32)


def with_shuffled_sources(corpus: Corpus) -> Corpus:
    """The same texts; which source each document of a pair has is drawn anew."""
    rng = np.random.default_rng(SEED)
    codes = corpus.tags.source_codes.copy()
    pairs = corpus.tags.pair_codes
    for pair in np.unique(pairs[pairs >= 0]):
        rows = np.flatnonzero(pairs == pair)
        codes[rows] = rng.permutation(codes[rows])
    return replace(corpus, tags=replace(corpus.tags, source_codes=codes))
