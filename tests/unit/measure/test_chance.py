"""Expectations over permuted source labels, against every arrangement of the labels."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.measure.relevance import MEASURES, chance_scores, group_scores, join

CUTOFFS = (1, 3, 5)
DOCS = [f"d{i}" for i in range(8)]


def own_scores(run, qrels, groups, gain):
    """Measures of the two sources, shape (M, 2), from the scorer that is held to trec_eval."""
    found = group_scores(
        run, qrels, groups, ("a", "b"), measures=MEASURES, cutoffs=CUTOFFS, gain=gain
    )
    return found.values[:, :, 0]


def chance(run, qrels, groups, gain):
    return chance_scores(
        join(run, qrels), qrels, groups, measures=MEASURES, cutoffs=CUTOFFS, gain=gain
    )


def brute_force(run, qrels, groups, gain, *, within_grades=True):
    """Mean over every arrangement of the labels that relevant documents of a grade carry."""
    grades = dict(zip(qrels.doc_codes.tolist(), qrels.grades.tolist(), strict=True))
    relevant = [d for d in range(len(groups)) if grades[d] > 0 and groups[d] >= 0]
    classes = {grades[d] if within_grades else 0 for d in relevant}
    blocks = [[d for d in relevant if grades[d] == c or not within_grades] for c in classes]
    found = []
    for labels in product(*(set(permutations(groups[block].tolist())) for block in blocks)):
        arranged = groups.copy()
        for block, label in zip(blocks, labels, strict=True):
            arranged[block] = label
        found.append(own_scores(run, qrels, arranged, gain))
    return np.mean(found, axis=0)


def case(rng, *, tied, graded):
    """One query of eight judged documents, most retrieved, a third source among them."""
    run = {
        d: float(rng.integers(0, 4) if tied else rng.random()) for d in DOCS if rng.random() < 0.9
    }
    grades = {d: int(rng.integers(0, 4 if graded else 2)) for d in DOCS}
    labels = rng.choice([0, 0, 0, 1, 1, -1], len(DOCS))
    relevant = [i for i, d in enumerate(DOCS) if grades[d] > 0]
    if not {0, 1} <= set(labels[relevant].tolist()):
        return case(rng, tied=tied, graded=graded)
    return Run.from_dict({"q": run}), Qrels.from_dict({"q": grades}), labels.astype(np.int64)


def assert_exact(run, qrels, groups, gain):
    expected = brute_force(run, qrels, groups, gain)
    found = chance(run, qrels, groups, gain)
    beyond = own_scores(run, qrels, groups, gain) - expected
    np.testing.assert_allclose(found.skew()[:, 0], beyond[:, 0] - beyond[:, 1], atol=1e-12)
    np.testing.assert_allclose(found.base()[:, 0], expected.mean(axis=1), atol=1e-12)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_expectation_is_the_mean_over_all_arrangements(tied, graded, gain):
    rng = np.random.default_rng(3)
    for _ in range(25):
        assert_exact(*case(rng, tied=tied, graded=graded), gain)


def test_queries_without_one_of_the_sources_are_left_out():
    run = Run.from_dict({"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}, "q3": {}})
    qrels = Qrels.from_dict({"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"a": 1, "b": 1}})
    found = chance(run, qrels, np.array([0, 1]), "linear")
    assert found.both.tolist() == [True, False, True]
    assert not found.skew()[:, 1].any()
    assert not found.base()[:, 1].any()
    assert found.skew()[0].tolist() == [1.0, 0.0, 0.0]


def test_queries_are_kept_apart():
    """Several queries at once give what each gives alone, in whatever order they come."""
    rng = np.random.default_rng(8)
    ids = ["q3", "q1", "q0", "q2"]
    docs = {q: [f"{q} {d}" for d in DOCS] for q in ids}
    run = {q: {d: float(rng.integers(0, 4)) for d in docs[q]} for q in ids}
    qrels = Qrels.from_dict({q: {d: int(rng.integers(0, 3)) for d in docs[q]} for q in sorted(ids)})
    labels = rng.integers(0, 2, len(qrels.doc_ids))
    together = chance(Run.from_dict(run), qrels, labels, "linear")
    assert together.both.sum() == 4
    for at, query in enumerate(qrels.query_ids):
        mine = qrels.take(qrels.query_codes == at)
        alone = chance(Run.from_dict({query: run[query]}), mine, labels, "linear")
        np.testing.assert_allclose(together.skew()[:, at], alone.skew()[:, at], atol=1e-12)
        np.testing.assert_allclose(together.base()[:, at], alone.base()[:, at], atol=1e-12)
