"""What must hold for every run, qrels and tag table."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.measure.relevance import MEASURES, awrf, exposure, score_run
from rag_sourcebias.source.audit import twin_ranks

CUTOFFS = (1, 2, 5)
DOCS = [f"d{i}" for i in range(8)]
QUERIES = ["q1", "q2", "q3"]
SOURCES = ["human", "llm:x", "llm:y", None]

docs = st.sampled_from(DOCS)
scores = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.0, -3.5]) | st.floats(-1e6, 1e6)
runs = st.dictionaries(st.sampled_from([*QUERIES, "q9"]), st.dictionaries(docs, scores))
judgments = st.dictionaries(
    st.sampled_from(QUERIES), st.dictionaries(docs, st.integers(-1, 4), min_size=1), min_size=1
)
sources = st.fixed_dictionaries({d: st.sampled_from(SOURCES) for d in DOCS})
gains = st.sampled_from(["linear", "exponential"])


def tag(table):
    return TagTable.from_tags(
        (d, DocTags(source=s, pair_id=f"p{int(d[1:]) // 3}")) for d, s in table.items()
    )


def score(run, qrels, **options):
    return score_run(
        Run.from_dict(run), Qrels.from_dict(qrels), measures=MEASURES, cutoffs=CUTOFFS, **options
    )


@given(runs, judgments, gains, st.permutations(range(8)))
def test_expected_scores_do_not_depend_on_document_ids(run, qrels, gain, order):
    new = {d: f"n{i}" for d, i in zip(DOCS, order, strict=True)}

    def rename(mapping):
        return {q: dict(sorted((new[d], v) for d, v in row.items())) for q, row in mapping.items()}

    one, two = score(run, qrels, gain=gain), score(rename(run), rename(qrels), gain=gain)
    np.testing.assert_allclose(one.values, two.values, atol=1e-12)


@given(runs, sources, st.sampled_from(["dcg", "top-1", "top-3", "rbp-0.7"]))
def test_exposure_is_shared_out_completely(run, table, browsing):
    found = exposure(Run.from_dict(run), tag(table), browsing=browsing)
    assert (found.shares >= 0).all()
    np.testing.assert_allclose(found.shares.sum(axis=0), 1.0)
    if found.shares.shape[1]:
        target = dict.fromkeys(found.sources, 1 / len(found.sources))
        fairness = awrf(found, target)
        assert ((fairness >= 0) & (fairness <= 1)).all()


@given(runs, judgments)
def test_twins_are_antisymmetric(run, qrels):
    table = TagTable.from_tags(
        (d, DocTags(source="human" if i % 2 else "llm:x", pair_id=f"p{i // 2}"))
        for i, d in enumerate(DOCS)
    )
    run_, qrels_ = Run.from_dict(run), Qrels.from_dict(qrels)
    one = twin_ranks(run_, qrels_, table, baseline="human", other="llm:x")
    two = twin_ranks(run_, qrels_, table, baseline="llm:x", other="human")
    np.testing.assert_array_equal(one.above, 1 - two.above)
    np.testing.assert_array_equal(one.baseline_rank, two.other_rank)
    assert one.n_unseen == two.n_unseen


@settings(max_examples=30)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=40), st.integers(1, 8))
def test_cutting_a_run_does_not_change_what_is_above_the_cut(sizes, depth):
    run = Run.from_dict(
        {f"q{i}": {f"d{j}": float(-j) for j in range(n)} for i, n in enumerate(sizes)}
    )
    qrels = Qrels.from_dict({f"q{i}": {"d0": 1, "d2": 1, "d5": 1} for i in range(len(sizes))})
    options = {"measures": MEASURES, "cutoffs": [depth]}
    np.testing.assert_array_equal(
        score_run(run, qrels, **options).values, score_run(run.top(depth), qrels, **options).values
    )
