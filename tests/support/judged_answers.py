"""Answers of four systems that say the same in more and more words, for tests of adjustments."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.core.texts import AnswerTexts

FILLER = ("", "it is", "well it must be said that this is", "as everybody knows it is of course a")
SYSTEMS = ("terse", "plain", "wordy", "chatty")


def judged_answers(n: int = 30) -> AnswerTexts:
    """All answers are correct, and hold the reference, but those to every fifth question."""
    rows = [(i, s) for i in range(n) for s in range(len(SYSTEMS))]
    right = [i % 5 != 0 for i, _ in rows]
    return AnswerTexts(
        question_ids=tuple(f"q{i}" for i, _ in rows),
        systems=tuple(SYSTEMS[s] for _, s in rows),
        answers=tuple(
            f"{FILLER[s]} {f'name{i} river{i}' if ok else f'stone{i}'}".strip()
            for (i, s), ok in zip(rows, right, strict=True)
        ),
        references=tuple((f"name{i} river{i}",) for i, _ in rows),
        correct=np.array(right, dtype=np.float64),
    )
