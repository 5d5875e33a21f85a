"""A small version of ``benchmarks/validity``: verdicts on rankers in worlds of known truth.

The rule is that of the page: an exact binomial test at .001. What sign flips call significant,
and intervals that take dependent queries as independent, are rejected by the same rule.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load

from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.source.audit import measure_source_bias

rates, source, worlds = load("validity", "rates", "source", "worlds")

pytestmark = pytest.mark.slow
RUNS = 200
WORLD = {world.name: world for world in worlds.WORLDS}


@pytest.fixture(scope="module", params=["8 human, 2 LLM", "paraphrases in fives", "graded"])
def counted(request):
    name = request.param
    return {
        (name, 100, planted): [source.counts(name, 100, planted, RUNS, 1)]
        for planted in (False, True)
    }


def test_no_bar_is_missed(counted):
    figures = source.rows(counted)
    assert {"rejection", "favours", "coverage", "power"} <= {row["kind"] for row in figures}
    assert [row for row in figures if row["met"] is False] == []


@pytest.mark.parametrize("name", ["half without a copy", "8 human, 2 LLM", "three LLMs merged"])
def test_the_published_figure_fails_where_sources_have_unequal_numbers(name):
    rng, runs = np.random.default_rng(2), 60
    alarms = 0
    for _ in range(runs):
        system = source.audit(WORLD[name], 100, 0.0, rng).systems[0]
        alarms += system.cells[0].interval.excludes(0)
    assert rates.missed(alarms, runs, 0.05, at_least=False)


def test_paraphrases_taken_as_independent_fail():
    rng, runs, world = np.random.default_rng(3), 150, WORLD["paraphrases in fives"]
    favoured = 0
    for _ in range(runs):
        fixed, run = world.draw(300, 0.0, rng)
        verdict = measure_source_bias(run, fixed.qrels, fixed.tags).systems[0].verdicts[0]
        favoured += verdict.code in (SkewCode.FAVOURS_BASELINE, SkewCode.FAVOURS_OTHER)
    assert rates.missed(favoured, runs, 0.05, at_least=False)
