"""``ties="trec"`` is trec_eval, to 1e-12, whatever the run looks like."""

from __future__ import annotations

import numpy as np
import pytest
from measure_oracles import build, pytrec, random_case

from rag_sourcebias.core import data
from rag_sourcebias.measure import relevance
from rag_sourcebias.measure.relevance import MEASURES, score_run

CUTOFFS = (1, 2, 3, 5, 10, 40)  # 40 is beyond every list
KINDS = ("few values", "float32 collisions", "distinct", "extreme", "all tied")


def trec(run, qrels, cutoffs=CUTOFFS):
    return score_run(
        *build(run, qrels), measures=MEASURES, cutoffs=cutoffs, ties="trec", gain="linear"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_equals_pytrec_eval_per_query(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    compared = 0
    for _ in range(150):
        run, qrels = random_case(rng, kind)
        ours, theirs = trec(run, qrels), pytrec(run, qrels, CUTOFFS)
        assert ours.query_ids == tuple(qrels)
        for i, query in enumerate(ours.query_ids):
            for name, value in theirs[query].items():
                measure = "MRR@40" if name == "MRR" else name
                assert ours.of(measure, "all")[i] == pytest.approx(value, abs=1e-12), (run, qrels)
                compared += 1
    assert compared > 5_000


def test_trec_ties_are_those_of_single_precision():
    """pytrec_eval keeps scores as C floats: 1 and 1 + 1e-9 tie, and ids decide (descending)."""
    qrels = {"q": {"a": 1, "b": 0}}
    close, apart = {"q": {"a": 1 + 1e-9, "b": 1.0}}, {"q": {"a": 1 + 1e-6, "b": 1.0}}
    assert pytrec(close, qrels, (1,))["q"]["NDCG@1"] == 0.0
    assert pytrec(apart, qrels, (1,))["q"]["NDCG@1"] == 1.0
    assert trec(close, qrels, (1,)).of("NDCG@1", "all")[0] == 0.0
    assert trec(apart, qrels, (1,)).of("NDCG@1", "all")[0] == 1.0
    unequal = score_run(*build(close, qrels), measures=["NDCG"], cutoffs=[1])
    assert unequal.values.item() == 1.0  # only equal numbers tie, but where trec_eval is asked for


@pytest.mark.parametrize(
    "scores",
    [(1e300, 1e301), (float("inf"), float("inf")), (-float("inf"), -1e300), (0.0, -0.0)],
)
def test_overflowing_and_infinite_scores_tie(scores):
    run = {"q": dict(zip(("a", "b"), scores, strict=True))}
    qrels = {"q": {"b": 1}}
    assert pytrec(run, qrels, (1,))["q"]["NDCG@1"] == 1.0
    assert trec(run, qrels, (1,)).of("NDCG@1", "all")[0] == 1.0


def test_document_ids_break_ties_by_code_point_as_strcmp_does_on_utf8():
    ids = ["a", "B", "é", "日本", "\U0001f600", "\ue000", "-1", "1", "10", "9"]
    run = {"q": dict.fromkeys(ids, 1.0)}
    for relevant in ids:
        qrels = {"q": {relevant: 1}}
        mine = trec(run, qrels).of("MRR@40", "all")[0]
        assert mine == pytest.approx(pytrec(run, qrels, (1,))["q"]["MRR"], abs=1e-12)


def test_a_run_is_joined_with_the_same_judgments_once():
    run, qrels = build({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}})
    first = relevance.join(run, qrels)
    assert relevance.join(run, qrels) is first
    assert relevance.join(run, qrels, ties="trec") is not first
    _, others = build({"q": {"a": 2.0}}, {"q": {"a": 1}})
    assert relevance.join(run, others).start.tolist() == [0]
    assert relevance.join(run, qrels).start.tolist() == [1]


@pytest.mark.parametrize("half", ["", "\ud800"])
def test_many_names_are_placed_as_few_are(monkeypatch, half):
    names, vocabulary = (("b", f"ä{half}", "", "c"), (f"ä{half}", "c", "d"))
    few, more = map(data.Vocabulary, (vocabulary, names))
    one_by_one = data.places_of(names, vocabulary)
    assert data.places_of(more, few).tolist() == one_by_one.tolist() == [-1, 0, -1, 1]
    monkeypatch.setattr(data, "MANY_IDS", 0)
    assert data.coded([*names, "b"])[1].tolist() == [0, 1, 2, 3, 0]
    assert data.coded([*names, "b"])[0] == data.coded(names)[0] == names
    assert data.places_of(data.Vocabulary(names), few).tolist() == [-1, 0, -1, 1]
    assert data.places_of(few, more).tolist() == data.places_of(vocabulary, names).tolist()
    assert data.places_of(few, more).tolist() == [1, 3, -1]
