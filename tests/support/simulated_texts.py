"""Texts whose label shows in how often some words are used, on topics that twins share."""

from __future__ import annotations

import numpy as np

COMMON = [a + b for a in ("ba", "do", "ki", "lu", "me", "ra", "so", "ti") for b in "nrstl"]
TOPIC = [a + b + c for a in "bdfgk" for b in "aeiou" for c in ("mp", "lk", "st", "rn")]

Documents = list[tuple[str, str, str | None]]


def simulated(
    n_pairs: int,
    *,
    seed: int,
    labels: tuple[str, ...] = ("human", "llm:x"),
    strength: float = 0.7,
    n_words: int = 60,
) -> Documents:
    """One text of each label on every topic; ids are those of twins."""
    rng = np.random.default_rng(seed)
    habits = np.random.default_rng(1).normal(size=(len(labels), len(COMMON)))
    documents: Documents = []
    for pair in range(n_pairs):
        topic = rng.choice(TOPIC, size=4, replace=False)
        for label, habit in zip(labels, habits, strict=True):
            weights = np.exp(strength * habit)
            words = rng.choice(COMMON, size=n_words, p=weights / weights.sum())
            words = np.where(rng.random(n_words) < 0.2, rng.choice(topic, n_words), words)
            sentences = [" ".join(words[i : i + 12]).capitalize() for i in range(0, n_words, 12)]
            documents.append((f"p{seed}-{pair}@{label}", ". ".join(sentences) + ".", label))
    return documents
