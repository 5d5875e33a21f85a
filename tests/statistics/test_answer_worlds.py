"""Worlds of known truth for correctness scores, read off the public verb; small, fixed seeds.

The full ones are in ``benchmarks/validity/answers.py``.
"""

from __future__ import annotations

import pytest
from benchmark_modules import load
from simulation import FLOOR, acceptable

(worlds,) = load("validity", "answers")

pytestmark = pytest.mark.slow
RUNS = 60
MOST = 1 - acceptable(0.95, RUNS)  # of a claim that may be wrong one time in 20


@pytest.mark.parametrize("world", ["correctness, systems differ", "style, systems differ"])
def test_what_a_score_is_made_of_is_what_is_said(world):
    found = worlds.counts(world, 400, RUNS, 900)["counts"]
    styled = (found["style rewards"] + found["style slight"]) / RUNS
    if world.startswith("style"):
        assert styled >= acceptable(0.9, RUNS)
        assert found["use useless"] / RUNS >= acceptable(0.9, RUNS)
        # The AUC over all systems takes the better systems' style for skill.
        assert found["pooled"] / RUNS > 0.5
    else:
        assert styled <= MOST
        assert found["use separates"] / RUNS >= acceptable(0.9, RUNS)
    for key in ("auc", "unfairness"):
        assert found[key] / found[f"{key}_tested"] >= acceptable(FLOOR, RUNS)


def test_a_score_of_nothing_is_called_useless():
    found = worlds.counts("noise", 400, RUNS, 901)["counts"]
    assert found["use useless"] / RUNS >= acceptable(0.9, RUNS)
    assert (found["style rewards"] + found["style slight"]) / RUNS <= MOST


def test_at_the_border_a_score_is_rarely_called_either():
    found = worlds.counts("barely useful", 120, RUNS, 902)["counts"]
    assert found["use useless"] / RUNS <= MOST
    assert found["use separates"] / RUNS <= MOST
