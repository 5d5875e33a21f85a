"""Answers of three systems as a table; one score falls with their length, another is noise."""

from __future__ import annotations

import numpy as np

HEAD = ("question_id", "system", "answer", "reference", "correct", "sim", "noise")
WORDS = {"short": 2, "middle": 12, "long": 40}


def answer_rows(n: int, rng: np.random.Generator) -> list[list[object]]:
    """Return answers to n questions that are mostly right; ``sim`` is a little lower when wrong."""
    rows: list[list[object]] = []
    for i in range(n):
        for system, words in WORDS.items():
            correct = rng.random() < 0.8
            answer = " ".join(["Straße"] + ["wort"] * (words - 1 + int(rng.integers(3))))
            score = 0.9 - 0.12 * np.log(words) + 0.1 * correct + 0.05 * rng.normal()
            cells = [f"q{i}", system, answer, "Straße", "yes" if correct else "no"]
            rows.append([*cells, f"{score:.4f}", f"{rng.normal():.4f}"])
    return rows
