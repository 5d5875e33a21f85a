"""Judges that nothing sways, and judges that something does: false alarms and what is found.

A rate of false alarms fails where an exact binomial test rejects 5 % at one in a thousand.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.judged.judge_audit import BiasColumns, judge_biases

pytestmark = pytest.mark.slow
RUNS = 900
TESTED = ("length", "verbosity", "self_preference", "first_place")


def draw(rng, kind, n, size, *, longer=0.0, swayed=0.0):
    """Items in clusters that share difficulty, length and the judge's mood.

    ``longer``: doublings of length for one standard deviation of quality; then the error of a
    judge that is too mild to weak items goes with length, though length does not sway it.
    ``swayed``: in judge units, per doubling of length, for its own family, for the first place.
    """
    clusters = np.arange(n) // size
    g = clusters[-1] + 1
    quality = 0.7 * rng.normal(size=n) + 0.7 * rng.normal(size=g)[clusters]
    doublings = 6 + rng.normal(size=n) + 0.6 * rng.normal(size=g)[clusters] + longer * quality
    mood = 0.6 * rng.normal(size=n) + 0.3 * rng.normal(size=g)[clusters]
    family = np.arange(n) % 3 if size > 1 else rng.permutation(np.arange(n) % 3)
    push = swayed * (doublings - 6) + swayed * (family == 0)
    if kind == "verdicts":
        human = (quality > 0) * 1.0

        def judge(extra):
            return (
                rng.random(n) < 1 / (1 + np.exp(-2 * (human - 0.5 + push + extra) - mood))
            ) * 1.0

    elif kind == "grades":
        human = np.clip(np.round(1.2 * quality + 1.5), 0, 3)

        def judge(extra):
            return np.clip(np.round(human + mood + push + extra + 0.3 * rng.normal(size=n)), 0, 3)

    else:
        human = np.round(5 * quality) / 5

        def judge(extra):
            return 0.5 * human + mood + push + extra + 0.3 * rng.normal(size=n)

    first = judge(0.0)
    items = JudgedItems(
        ids=tuple(map(str, range(n))),
        human=human,
        judge=first,
        groups=tuple(np.array(["gpt-4", "llama-3", "claude-3"])[family].tolist()),
        clusters=None if size == 1 else tuple(map(str, clusters)),
    )
    return items, BiasColumns(
        length=np.exp2(doublings),
        swapped=judge(-2 * swayed),
        judge_name="gpt-4o",
    )


def rates(kind, n, size, runs, **world):
    rng = np.random.default_rng((n, size))
    found, tested = Counter(), Counter()
    for _ in range(runs):
        for bias in judge_biases(*draw(rng, kind, n, size, **world)):
            if bias.p_value is not None:
                tested[bias.kind] += 1
                found[bias.kind] += bias.p_value <= 0.05
    return found, tested


def alarms(found, tested):
    return {
        kind: (found[kind], tested[kind])
        for kind in tested
        if binomtest(found[kind], tested[kind], 0.05, alternative="greater").pvalue < 0.001
    }


@pytest.mark.parametrize(("n", "size"), [(15, 1), (200, 1), (30, 3), (60, 3)])
@pytest.mark.parametrize("kind", ["verdicts", "grades", "values"])
def test_an_even_judge_gives_no_more_than_five_in_a_hundred_false_alarms(kind, n, size):
    assert alarms(*rates(kind, n, size, RUNS)) == {}


def test_at_equal_human_value_better_texts_may_be_longer():
    """The error of a mild judge goes with length, which verbosity does not take for a sway."""
    found, tested = rates("values", 200, 1, RUNS, longer=0.4)
    assert set(alarms(found, tested)) == {"length"}


@pytest.mark.parametrize(("kind", "swayed"), [("verdicts", 0.8), ("grades", 0.4), ("values", 0.4)])
def test_a_swayed_judge_is_found(kind, swayed):
    found, tested = rates(kind, 300, 3, 200, swayed=swayed)
    assert set(tested) == set(TESTED)
    assert all(found[kind] / tested[kind] >= 0.9 for kind in TESTED)
