"""Answers and texts whose topics suit some systems and styles, declared as clusters or not."""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load
from scipy.stats import binomtest

from rag_sourcebias.answers.data import AnswerStyle
from rag_sourcebias.style.data import StyleCode

answers, style, worlds = load("validity", "answers", "style", "worlds")

pytestmark = pytest.mark.slow
DRAWS = 40


def rewards(own: float, *, declared: bool) -> int:
    """Count the draws in which a score is said to reward a system's style."""
    rng = np.random.default_rng(1)
    drawn = (answers.audit("topics", 400, rng, own, declared=declared) for _ in range(DRAWS))
    return sum(found.finding.style is AnswerStyle.REWARDS for found in drawn)


def favours(shift: float, *, declared: bool) -> int:
    """Count the draws in which styles are said to be ranked apart."""
    rng, found = np.random.default_rng(2), 0
    for _ in range(DRAWS):
        effects, clusters = worlds.topics(100, 4, rng)
        scores = effects + rng.normal(size=effects.shape) + shift * np.eye(4)[0]
        system = style.audit(scores, 100, clusters=clusters if declared else None)
        found += system.finding.code is StyleCode.FAVOURS
    return found


@pytest.mark.parametrize("claims", [rewards, favours])
def test_topics_alone_are_no_style(claims) -> None:
    declared, not_declared = claims(0.0, declared=True), claims(0.0, declared=False)
    assert binomtest(declared, DRAWS, 0.05, alternative="greater").pvalue > 0.001
    assert binomtest(not_declared, DRAWS, 0.05, alternative="greater").pvalue < 0.001


@pytest.mark.parametrize(("claims", "planted"), [(rewards, 2.0), (favours, 2.0)])
def test_a_style_beside_topics_is_found(claims, planted) -> None:
    found = claims(planted, declared=True)
    assert binomtest(found, DRAWS, 0.8, alternative="less").pvalue > 0.001
