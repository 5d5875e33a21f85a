"""A judged data set of twins, and an encoder that favours the LLM's versions by a known amount."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from tagged_texts import Row, dataset_of

from rag_sourcebias.core.data import Dataset

FAVOUR = 0.05
LLM = "llm:x"
N_TOPICS, N_PAIRS = 60, 6
Vectors = npt.NDArray[np.float32]


class FavouringEncoder:
    """The cosine of a topic and a text on it is the text's worth, and more for an LLM's."""

    name = "favouring"
    fingerprint = "favouring-1"
    settings: Mapping[str, str] = {"model": "favouring"}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), N_TOPICS + 1), np.float32)
        rows[np.arange(len(texts)), [int(text.split()[1]) for text in texts]] = 1
        return rows

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), N_TOPICS + 1), np.float32)
        words = [text.split() for text in texts]
        worth = np.array([float(w[3]) + FAVOUR * (w[5] != "human") for w in words])
        rows[np.arange(len(texts)), [int(w[1]) for w in words]] = worth
        rows[:, -1] = np.sqrt(1 - worth**2)
        return rows


def favoured_dataset(
    *,
    sources: Sequence[str] = ("human", LLM),
    grade: Callable[[int], int] = lambda pair: 2 if pair == 0 else 1,
) -> Dataset:
    """``N_PAIRS`` pairs for each topic; what grade a pair has depends on its number."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    judged: dict[str, dict[str, int]] = {}
    for topic in range(N_TOPICS):
        for pair in range(N_PAIRS):
            worth = rng.uniform(0.3, 0.8)
            for source in sources:
                doc_id = f"{topic}-{pair}@{source}"
                own = worth + rng.normal(0, 0.04)
                text = f"topic {topic} worth {own:.7f} by {source}"
                rows.append((doc_id, source, f"{topic}-{pair}", text))
                judged.setdefault(str(topic), {})[doc_id] = grade(pair)
    queries = {str(topic): f"topic {topic}" for topic in range(N_TOPICS)}
    return dataset_of(rows, queries, judged, name="favoured", design="unknown")
