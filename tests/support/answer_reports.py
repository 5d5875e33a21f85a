"""Answer-style reports whose every number the library computed, from simulated answers."""

from __future__ import annotations

import functools

import numpy as np

from rag_sourcebias.answers.audit import measure_answer_bias
from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.core.texts import AnswerTexts

SYSTEMS = ("terse", "plain", "chatty", "essay")
LENGTHS = (2, 12, 25, 60)
CONFIG = AnswerConfig(resamples=400)


def simulated(*, n=200, p_correct=0.8, seed=0, lengths=LENGTHS, wrong_longer=1.0):
    """Return answers of systems that differ in length only.

    Parameters
    ----------
    wrong_longer : float
        How many times as long wrong answers are, which an adjustment then takes for style.
    """
    rng = np.random.default_rng(seed)
    k = len(lengths)
    right = rng.random((n, k)) < p_correct
    means = np.where(right, lengths, np.multiply(lengths, wrong_longer))
    words = np.maximum(1, rng.poisson(means)).ravel()
    return AnswerTexts(
        question_ids=tuple(f"q{i // k}" for i in range(n * k)),
        systems=SYSTEMS[:k] * n,
        answers=tuple(" ".join(f"word{j}" for j in range(size)) for size in words.tolist()),
        references=(("word0 word1",),) * (n * k),
        correct=right.astype(float).ravel(),
        name="simulated answers",
        license="MIT",
    )


def score(answers, *, slope=0.0, own=0.0, gap=0.25, noise=0.08, seed=1):
    """Return a score of each answer.

    Parameters
    ----------
    slope : float
        What it gains per ln of words.
    own : float
        Bonus of the first system that length does not explain.
    gap : float
        How far correct answers score above wrong ones.
    """
    rng = np.random.default_rng(seed)
    length = np.log1p([len(a.split()) for a in answers.answers])
    values = 0.6 + gap * answers.correct + slope * length + rng.normal(0, noise, len(answers))
    return values + own * (np.asarray(answers.systems) == answers.systems[0])


@functools.cache
def single(slope=-0.08, *, n=200, config=CONFIG, lengths=LENGTHS, wrong_longer=1.0, **changes):
    """Return a report of one score, which by default rewards short answers."""
    answers = simulated(n=n, lengths=lengths, wrong_longer=wrong_longer)
    scores = {"cosine": score(answers, slope=slope, **changes)}
    return measure_answer_bias(scores, answers, config=config, text_statistics=False)
