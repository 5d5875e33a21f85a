"""Pairs whose versions differ in known ways, an encoder that likes one of them, and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tagged_texts import Row, dataset_of

from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.data import Dataset

LLM = "llm:x"
N_PAIRS, PER_QUERY = 120, 2
FAVOUR = 0.8


def explained_dataset(
    *, sources: Sequence[str] = (LLM,), judged: bool = True, n: int = N_PAIRS, seed: int = 0
) -> Dataset:
    """Rewrites drop some of the topic words, and hold "moreover" a few times.

    The other sources differ in nothing but their tag, so that one planted shift serves all.
    """
    rng = np.random.default_rng(seed)
    filler = np.array([f"w{i}" for i in range(40)])
    rows: list[Row] = []
    qrels: dict[str, dict[str, int]] = {}
    for pair in range(n):
        topic = [f"t{pair // PER_QUERY}a", f"t{pair // PER_QUERY}b", f"t{pair // PER_QUERY}c"]
        body = rng.choice(filler, rng.integers(12, 20)).tolist()
        kept = [word for word in topic if rng.random() > 0.3]
        rewritten = [*kept, *body[: len(body) - int(rng.integers(0, 5))]]
        rewritten += ["moreover"] * int(rng.integers(1, 4))
        for source, words in (("human", [*topic, *body]), *((s, rewritten) for s in sources)):
            doc_id = f"{pair}@{source}"
            rows.append((doc_id, source, str(pair), " ".join(words)))
            qrels.setdefault(f"q{pair // PER_QUERY}", {})[doc_id] = 1
    if not judged:
        qrels = {}
    queries = {name: f"t{name[1:]}a t{name[1:]}b t{name[1:]}c" for name in qrels}
    return dataset_of(rows, queries, qrels, name="explained")


class LikingEncoder:
    """Words in hashed directions, and one direction of its own for "moreover".

    Queries point that way too, so that a text scores higher the more it has of it.
    """

    name = "liking"
    fingerprint = "liking-1"

    def __init__(self, dimension: int = 24, similarity: str = "") -> None:
        self.settings: Mapping[str, str] = {"model": "liking"} | (
            {"similarity": similarity} if similarity else {}
        )
        self._dimension = dimension
        self.encoded: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._words(texts)
        vectors[:, 0] = FAVOUR * np.linalg.norm(vectors, axis=1)
        return vectors

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded.extend(texts)
        vectors = self._words(texts)
        vectors[:, 0] = [6 * text.split().count("moreover") for text in texts]
        return vectors

    def _words(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                if word != "moreover":
                    seed = int.from_bytes(word.encode(), "big") % 2**32
                    vectors[row, 1:] += np.random.default_rng(seed).normal(size=self._dimension - 1)
        return vectors


class CountingPerplexity:
    """Log-perplexity 4 − 0.2 per "moreover", plus something that depends on the text."""

    kind = "causal"
    fingerprint = "counting-1"
    settings: Mapping[str, str] = {"model": "counting", "longer texts": "windows"}

    def __init__(self, name: str = "counting", *, longest: int = 10**9) -> None:
        self.name = name
        self.longest = longest
        self.read: list[str] = []

    def log_perplexities(self, texts, *, progress=None) -> LogPerplexities:
        self.read.extend(texts)
        if progress is not None:
            progress(len(texts), len(texts))
        values = np.array([4 - 0.2 * t.count("moreover") + 0.01 * (len(t) % 7) for t in texts])
        return self._found(values, texts)

    def conditional(self, prefixes, texts, *, progress=None) -> LogPerplexities:
        found = self.log_perplexities(texts, progress=progress)
        shared = [
            len(set(a.split()) & set(b.split())) for a, b in zip(prefixes, texts, strict=True)
        ]
        return self._found(found.values - 0.05 * np.array(shared), texts)

    def _found(self, values, texts) -> LogPerplexities:
        lengths = np.array([len(text.split()) for text in texts])
        return LogPerplexities(
            values=values, tokens=lengths, parts=np.where(lengths > self.longest, 2, 1)
        )


class MaskedCounting(CountingPerplexity):
    """The same without reading after another text."""

    kind = "masked"
    conditional = None  # type: ignore[assignment]
