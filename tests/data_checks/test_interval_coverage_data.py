"""Coverage when real data are resampled; a few of the sets of the benchmark, fewer runs.

The bound is the binomial tolerance: 1 chance in 1,000 to fail at a true coverage of exactly .93.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load
from scipy.special import bdtr

from support.real_data import data_folder

study, read = load("coverage", "study", "real_sets")
coverage_study, real_sets = study.coverage_study, read.real_sets

pytestmark = [pytest.mark.data, pytest.mark.slow]
RUNS = 300
BOUND = float(np.searchsorted(bdtr(np.arange(RUNS + 1), RUNS, 0.93), 0.001)) / RUNS
SETS = [
    "interval_labels/dl19_dl20_bm25_umbrela3votes",
    "interval_labels/dl20_bm25_promptdist",
    "dl_human_llm/dl19 umbrela_gpt4 NDCG@10",
    "dl_human_llm/dl20 umbrela_llama32 DCG@10",
    "judge_logits/Summeval_coherence qwen",
    "judge_logits/Summeval_relevance 4omini",
    "judge_logits/Summeval_relevance 4o 5 prompts",
    "judge_logits/GEval_gsm8k dsr1",
    "evouna/NQ chatgpt",
    "evouna/TQ newbing",
    "openqa_eval/gpt-4",
    "pandalm/gpt-3.5-turbo",
]
AT_THE_CEILING = ["judge_logits/Summeval_fluency 4omini", "judge_logits/Summeval_consistency dsr1"]


@pytest.fixture(scope="module")
def sets():
    return {found.name: found for found in real_sets(data_folder())}


def lowest(data, **options):
    studied = coverage_study(
        data.y,
        data.yhat,
        sizes=[10, 20, 100],
        methods=["regression"],
        n_unlabeled=100 if data.clusters is not None else 300,
        n_runs=RUNS,
        clusters=data.clusters,
        rng=np.random.default_rng(list(data.name.encode())),
        **options,
    )
    return min(cell.coverage for cell in studied)


# every set for the population, some for the pool, too
TARGETS = [(name, "population") for name in SETS] + [(name, "pool") for name in SETS[::3]]


@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_default_method_covers(sets, name, target):
    assert lowest(sets[name], target=target) >= BOUND


@pytest.mark.parametrize("name", AT_THE_CEILING)
def test_values_at_the_end_of_their_scale(sets, name):
    """Seven or eight of ten summaries have the best grade: the range of the scale is needed."""
    data = sets[name]
    assert np.mean(data.y == data.y.max()) > 0.7
    assert lowest(data, bounds=data.bounds) >= BOUND


def test_the_sets_are_what_they_were(sets):
    assert len(sets) == 74
    votes = sets["interval_labels/dl19_dl20_bm25_umbrela3votes"]
    assert len(votes.y) == 97
    assert votes.y.mean() == pytest.approx(10.104, abs=1e-3)
    assert votes.yhat.mean() == pytest.approx(14.405, abs=1e-3)
    # BM25: nDCG@10 with linear gains is .5058 and .4796; gains 2^r − 1 give less
    assert sets["dl_human_llm/dl19 umbrela_gpt4 NDCG@10"].y.mean() == pytest.approx(0.436, abs=2e-3)


@pytest.mark.parametrize("name", [name for name in SETS if "openqa" not in name])
def test_a_judge_hardly_costs_width_and_a_useful_one_saves_some(sets, name):
    data = sets[name]
    correlation = abs(np.corrcoef(data.y, data.yhat)[0, 1])
    studied = coverage_study(
        data.y,
        data.yhat,
        sizes=[15, 30, 60],
        methods=["regression", "labels"],
        n_unlabeled=500,
        n_runs=RUNS,
        bounds=data.bounds,
        rng=np.random.default_rng(2),
    )
    width = {(cell.method, cell.n): cell.mean_width for cell in studied}
    for n in (15, 30, 60):
        most = 1.0 if correlation >= 0.4 else 1.1 if n == 15 else 1.05
        assert width["regression", n] <= (most + 0.01) * width["labels", n]
