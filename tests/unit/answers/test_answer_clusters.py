"""Questions that share a topic: whole clusters are flipped, few and uneven ones refused."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.answers.audit import measure_answer_bias, spread_interval
from rag_sourcebias.answers.data import AnswerConfig, AnswerStyle
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import ClusterFlips

N, TOPIC = 120, np.arange(120) % 12


def report(of=None, **more):
    rng = np.random.default_rng(0)
    effects = np.array([0.3, -0.3]) * rng.normal(0.5, 1, size=12)[TOPIC, None]
    correct = np.ones((N, 2))
    correct[::5, 0] = correct[1::5, 1] = 0
    answers = AnswerTexts(
        question_ids=tuple(f"q{i // 2}" for i in range(2 * N)),
        systems=("a", "b") * N,
        answers=tuple("word " * (3 + i % 7) for i in range(2 * N)),
        references=(("word",),) * (2 * N),
        correct=correct.ravel(),
    )
    scores = {"s": (correct + effects + rng.normal(0, 0.3, size=(N, 2))).ravel()}
    clusters = None if of is None else {f"q{i}": str(t) for i, t in enumerate(of)} | more
    config = AnswerConfig(resamples=1_000)
    return measure_answer_bias(
        scores, answers, config=config, clusters=clusters, text_statistics=False
    )


def test_every_interval_goes_by_clusters():
    alone, found = report().scorer("s").raw, report(TOPIC)
    assert found.warnings[0].startswith("Queries come in 12 clusters, which weigh as many as 12.0")
    assert found.warnings[0].endswith("Only statistics of texts do not.")
    assert found.scorer("s").finding.n_needed > N
    raw = found.scorer("s").raw
    assert alone.unfairness.lower > 0 == raw.unfairness.lower
    narrow, wide = (
        (of.unfairness, *of.means, of.differences[0].difference, of.auc, of.auc_within)
        for of in (alone, raw)
    )
    for one, other in zip(narrow, wide, strict=True):
        assert one.n_labeled > 12 == other.n_labeled
        assert other.upper - other.lower > one.upper - one.lower
        assert other.method.code is InferCode.CLUSTER_FLIPS
        assert other.assumptions[0].code is InferCode.CLUSTERS_SAMPLED


def test_the_spread_of_two_systems_is_excluded_where_flips_reject_their_difference():
    rng, topic = np.random.default_rng(3), TOPIC[:60]
    columns = rng.normal(size=(60, 2)) + rng.normal(size=(12, 2))[topic]
    sums = np.bincount(topic, weights=columns[:, 0] - columns[:, 1])
    flips = ClusterFlips(numerator=sums, denominator=np.full(12, 5.0))
    wanted = max(map(abs, flips.ends(0.95))) / 2  # half a difference is the spread of two
    assert spread_interval(columns, topic).upper == pytest.approx(wanted)
    for more, excluded in ((-0.01, True), (0.01, False)):
        found = spread_interval(columns, topic, confidence_level=1 - flips.p_value() + more)
        assert (found.lower > 0) is excluded


@pytest.mark.parametrize(
    ("of", "words"), [(TOPIC % 5, "6 clusters"), (TOPIC * (np.arange(N) > 90), "too few to tell")]
)
def test_too_few_and_uneven_clusters_are_too_few_questions(of, words):
    scorer = report(of).scorer("s")
    assert scorer.finding.style is AnswerStyle.TOO_FEW
    assert scorer.finding.n_needed is None
    assert any("unfairness" in note and words in note for note in scorer.notes)


def test_clusters_of_other_questions_and_of_single_ones_are_refused():
    with pytest.raises(DataError, match=r"1 queries have a cluster or answers, not both.*'x'"):
        report(TOPIC, x="1")
    with pytest.raises(DataError, match="cluster of its own"):
        report(np.arange(N))
