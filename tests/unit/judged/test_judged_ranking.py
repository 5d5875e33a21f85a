"""Per-query values from label distributions against the ordinary measures and enumeration."""

from itertools import product

import numpy as np
import pytest

from rag_sourcebias.core.data import LabelDistributions, Qrels, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.judged.crc import JudgedRanking
from rag_sourcebias.measure.relevance import group_scores, score_run

MEASURES = ("NDCG", "MAP", "MRR", "P", "Recall")


def random_data(seed=0, n_queries=20):
    rng = np.random.default_rng(seed)
    run = Run.from_dict(
        {
            f"q{i}": {f"d{j}": float(-place) for place, j in enumerate(rng.permutation(60)[:30])}
            for i in range(n_queries)
        }
    )
    qrels = Qrels.from_rows(
        (f"q{i}", f"d{j}", int(rng.integers(0, 4)))
        for i in range(n_queries + 1)  # one query the run does not answer
        for j in rng.permutation(60)[:35]
    )
    return run, qrels


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_certain_labels_give_the_ordinary_measures(gain):
    run, qrels = random_data()
    ranking = JudgedRanking.join(run, LabelDistributions.from_qrels(qrels, n_grades=4))
    scores = score_run(run, qrels, measures=MEASURES, cutoffs=[1, 5, 50], gain=gain)
    for measure in scores.measures:
        assert ranking.values(measure, gain=gain) == pytest.approx(
            scores.of(measure, "all"), abs=1e-12
        )


def test_sources_keep_their_ranks_but_do_not_count():
    run, qrels = random_data()
    groups = np.arange(len(qrels.doc_ids)) % 3
    ranking = JudgedRanking.join(run, LabelDistributions.from_qrels(qrels, n_grades=4))
    scores = group_scores(run, qrels, groups, ("a", "b", "c"), measures=MEASURES, cutoffs=[3, 10])
    for code, name in enumerate(scores.sources):
        counted = groups[ranking.labels.doc_codes] == code
        for measure in scores.measures:
            found = ranking.values(measure, gain="linear", counted=counted)
            assert found == pytest.approx(scores.of(measure, name), abs=1e-12)


def test_expectations_over_independent_labels():
    """DCG, P and MRR of a distribution are the mean of the measure over all label outcomes."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=4)
    run = Run.from_dict({"q": {f"d{j}": -float(j) for j in range(4)}})
    judged = JudgedRanking.join(
        run, LabelDistributions.from_rows(("q", f"d{j}", probs[j]) for j in range(4))
    )
    expected = dict.fromkeys(("DCG@3", "P@3", "MRR@3"), 0.0)
    for outcome in product(range(3), repeat=4):
        chance = np.prod([probs[j, grade] for j, grade in enumerate(outcome)])
        certain = JudgedRanking.join(
            run,
            LabelDistributions.from_qrels(
                Qrels.from_rows(("q", f"d{j}", grade) for j, grade in enumerate(outcome)),
                n_grades=3,
            ),
        )
        for measure in expected:
            expected[measure] += chance * certain.values(measure)[0]
    for measure, value in expected.items():
        assert judged.values(measure)[0] == pytest.approx(value)


@pytest.mark.parametrize("measure", ["DCG@10", "P@10"])
def test_weighted_sums_agree_with_the_ranked_labels(measure):
    run, qrels = random_data()
    rng = np.random.default_rng(3)
    labels = LabelDistributions.from_qrels(qrels, n_grades=4)
    soft = LabelDistributions(
        query_ids=labels.query_ids,
        doc_ids=labels.doc_ids,
        query_codes=labels.query_codes,
        doc_codes=labels.doc_codes,
        probs=rng.dirichlet(np.ones(4), len(labels)),
    )
    ranking = JudgedRanking.join(run, soft)
    assert ranking.ranked_labels(measure).utilities() == pytest.approx(ranking.values(measure))
    taken = ranking.ranked_labels(measure).take(np.array([3, 3, 0]))
    assert taken.utilities() == pytest.approx(ranking.values(measure)[[3, 3, 0]])


def test_refusals():
    run, qrels = random_data()
    labels = LabelDistributions.from_qrels(qrels, n_grades=4)
    ranking = JudgedRanking.join(run, labels)
    with pytest.raises(DataError, match="measure 'NDCG' is not one of DCG@k"):
        ranking.values("NDCG")
    with pytest.raises(DataError, match="measure 'ERR@10' is not one of"):
        ranking.values("ERR@10")
    with pytest.raises(DataError, match="gain 'cubic'"):
        ranking.values("DCG@10", gain="cubic")
    other = Run.from_dict({"x": {"d1": 1.0}}, name="elsewhere")
    with pytest.raises(DataError, match=r"run 'elsewhere' and the labels have no query in common"):
        JudgedRanking.join(other, labels)
