from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from tagged_texts import corpus_of

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.texts import text_statistics
from rag_sourcebias.measure.texts import TEXT_STATISTICS, text_scores
from rag_sourcebias.source.audit import source_text_statistics
from support.real_data import data_folder

pytest.importorskip("sacrebleu")
pytest.importorskip("nltk")
pytest.importorskip("rouge_score")

CHEAP = ("words", "Jaccard", "overlap")
VOCABULARY = [f"word{i}" for i in range(60)]


def sentences(seed, n, longest=30):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(VOCABULARY, size=rng.integers(2, longest))) for _ in range(n)]


def one(found, group, name):
    (statistic,) = [s for s in found if (s.group, s.name) == (group, name)]
    return statistic


def test_summaries_are_those_of_the_scores():
    texts, originals = sentences(1, 50), sentences(2, 50)
    found = text_statistics(
        {"human": originals, "llm": texts}, originals, original="human", confidence_level=0.9
    )
    assert [(s.group, s.name) for s in found] == [
        ("human", "words"),
        *[("llm", name) for name in TEXT_STATISTICS],
    ]
    for name in TEXT_STATISTICS:
        values = text_scores(name, texts, originals)
        summary = one(found, "llm", name)
        assert summary.n == 50
        assert summary.average == pytest.approx(values.mean())
        assert summary.quantiles == pytest.approx(
            np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
        )
        low, high = stats.t.interval(0.9, 49, values.mean(), stats.sem(values))
        assert summary.mean.lower == pytest.approx(max(low, 0))
        assert summary.mean.upper == pytest.approx(high)
        assert summary.mean.confidence_level == 0.9


def test_an_interval_of_a_similarity_stays_within_its_range():
    texts = ["a b c", "a b c", "x y z"]
    mean = one(text_statistics({"g": texts}, ["a b c"] * 3, statistics=["Jaccard"]), "g", "Jaccard")
    assert mean.mean.estimate == pytest.approx(2 / 3)
    assert (mean.mean.lower, mean.mean.upper) == (0.0, 1.0)


def test_missing_texts_and_references_are_left_out_and_counted():
    texts = ["a b", None, "a", "a b c", None]
    references = ["a b", "a b", None, ["x", "a b c d"], "a"]
    found = text_statistics({"g": texts}, {"g": references}, statistics=CHEAP)
    counted = one(found, "g", "words")
    assert (counted.n, counted.average) == (3, 2.0)
    assert counted.mean.notes == (InferCode.TEXTS_MISSING(n=2, of=5),)
    overlap = one(found, "g", "overlap")
    assert (overlap.n, overlap.average) == (2, pytest.approx((1 + 3 / 4) / 2))
    missing = InferCode.TEXTS_MISSING(n=2, of=5)
    assert overlap.mean.notes == (missing, InferCode.NO_REFERENCE(n=1, of=5))


def test_no_interval_where_none_can_be_had():
    found = text_statistics({"one": ["a b"], "same": ["a", "b"], "none": [None]}, None)
    assert [(s.group, s.name, s.n, s.mean) for s in found] == [
        ("one", "words", 1, None),
        ("same", "words", 2, None),
    ]
    assert found[0].quantiles == (2.0,) * 5


def test_large_groups_are_sampled_for_similarities_only():
    texts, originals = sentences(1, 400), sentences(2, 400)
    texts[7] = None
    groups = {"a": texts, "b": texts}
    found = text_statistics(groups, originals, statistics=CHEAP, sample=100, rng=3)
    assert one(found, "a", "words").n == 399
    sampled = one(found, "a", "Jaccard")
    assert sampled.n == 100
    assert InferCode.TEXTS_DRAWN(n=100, of=399) in sampled.mean.notes
    # The same rows in both groups, the same draw for the same seed, another for another seed.
    assert one(found, "b", "Jaccard").quantiles == sampled.quantiles
    again = text_statistics(groups, originals, statistics=CHEAP, sample=100, rng=3)
    assert again == found
    other = text_statistics(groups, originals, statistics=CHEAP, sample=100, rng=4)
    assert one(other, "a", "Jaccard").average != sampled.average
    everything = one(text_statistics(groups, originals, statistics=CHEAP), "a", "Jaccard")
    assert everything.n == 399
    assert sampled.mean.lower < everything.average < sampled.mean.upper


def test_a_level_in_percent_is_refused():
    with pytest.raises(DataError, match=r"confidence_level 95 is outside \(0, 1\)"):
        text_statistics({"g": ["a", "b"]}, references=["a", "b"], confidence_level=95)


def corpus():
    rows = [
        ("h1", "human", "p1", "the cat sat"),
        ("h2", "human", "p1", "a cat sat down"),  # another accepted wording of p1
        ("h3", "human", None, "alone in the world"),
        ("l1", "llm:x", "p1", "a cat sat down today"),
        ("l2", "llm:x", "p9", "no original here"),
        ("l3", "llm:x", None, "unpaired"),
        ("u1", None, "p1", "nobody knows"),
        ("m1", "a-machine", "p1", "sat the cat"),
    ]
    return corpus_of(*rows)


def test_sources_are_compared_with_their_twins_of_the_baseline():
    found = source_text_statistics(corpus(), "human", statistics=CHEAP)
    assert [(s.group, s.name, s.n) for s in found] == [
        ("human", "words", 3),
        ("a-machine", "words", 1),
        ("a-machine", "Jaccard", 1),
        ("a-machine", "overlap", 1),
        ("llm:x", "words", 3),
        ("llm:x", "Jaccard", 1),
        ("llm:x", "overlap", 1),
    ]
    assert one(found, "llm:x", "overlap").average == 1.0  # of h2, the nearer of the two
    assert one(found, "llm:x", "Jaccard").average == pytest.approx(4 / 5)
    assert one(found, "human", "words").average == pytest.approx(11 / 3)


def test_a_baseline_that_no_document_has():
    with pytest.raises(
        DataError, match="no document has source 'people'; sources are a-machine, h"
    ):
        source_text_statistics(corpus(), "people")
    part = corpus().take(np.array([3, 4]))
    with pytest.raises(DataError, match="no document has source 'human'; sources are llm:x"):
        source_text_statistics(part, "human")


@pytest.mark.data
def test_real_styles_differ_in_length_as_published():
    path = data_folder() / "nq-utd-styles" / "styles.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = {s: [row["doc_styles"][s] for row in rows] for s in map(str, range(9))}
    texts["human"] = [row["human"] for row in rows]
    found = text_statistics(texts, texts["human"], original="human")
    length = {s.group: s.mean for s in found if s.name == "words"}
    # [W] Fig. 1a: styles 5 to 8 are longer than the originals.
    assert all(length[s].lower > length["human"].upper for s in "5678")
    # Rewrites keep half of the wording and more, never all of it.
    for statistic in found:
        if statistic.name != "words":
            assert 0.2 < statistic.average < 0.9, statistic
