"""Training data: which pairs make up a step, hard negatives, and settings refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from tiny_training import paired_texts

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import TrainingPairs, training_pairs
from rag_sourcebias.neural.training_data import TrainingSettings, mine_negatives, plan_batches


def many_to_many() -> TrainingPairs:
    """Every query has three relevant pairs, every pair three queries."""
    data = paired_texts(24)
    rows = [(f"q{i}", f"human-{(i + k) % 24}", 1) for i in range(24) for k in range(3)]
    return training_pairs(replace(data, qrels=Qrels.from_rows(rows)))


def test_no_batch_holds_a_document_that_is_relevant_to_another_of_its_queries() -> None:
    pairs = many_to_many()
    relevant = {(q, int(t)) for q, t in zip(pairs.query_ids, pairs.rows, strict=True)}
    batches = plan_batches(pairs, TrainingSettings(batch_size=4, epochs=3))
    assert batches.shape[1] == 4
    assert len(batches) > 30
    for batch in batches.tolist():
        queries = [pairs.query_ids[row] for row in batch]
        twins = [int(pairs.rows[row]) for row in batch]
        hits = [(q, t) for q in queries for t in twins if (q, t) in relevant]
        assert sorted(hits) == sorted(zip(queries, twins, strict=True))


def test_an_epoch_goes_through_the_rows_once_in_an_order_of_its_own() -> None:
    pairs = training_pairs(paired_texts(40))
    first, second = np.split(plan_batches(pairs, TrainingSettings(batch_size=8, epochs=2)), 2)
    assert sorted(first.ravel()) == sorted(second.ravel()) == list(range(40))
    assert first.tolist() != second.tolist()


def test_steps_are_counted_and_seeded() -> None:
    pairs = training_pairs(paired_texts(40))
    settings = TrainingSettings(batch_size=8, max_steps=13)
    batches = plan_batches(pairs, settings)
    assert batches.shape == (13, 8)
    assert np.array_equal(batches, plan_batches(pairs, settings))
    assert not np.array_equal(batches, plan_batches(pairs, replace(settings, seed=1)))
    # A longer training begins as the shorter one does.
    longer = plan_batches(pairs, replace(settings, max_steps=20))
    assert np.array_equal(batches, longer[:13])


# Hard negatives: the most similar documents that are not relevant, from both sources


SOURCES = ("human", "llm:x")


def mined(data: Dataset, **options) -> np.ndarray:
    pairs = training_pairs(data)
    given = {"per_source": 1, "depth": 5, "seed": 0, **options}
    rows = np.arange(len(pairs))
    return mine_negatives(data, pairs, rows, HashingEncoder(512), **given)


def small() -> Dataset:
    """Queries "a b" and "x y"; the human version of the second pair of "a b" is not judged."""
    texts = {
        "h0": "a b c",
        "l0": "a b d",
        "h1": "a b",
        "l1": "a b a b",
        "h2": "a b e f g",  # the nearest human document that is not relevant to "a b"
        "l2": "b e f g h",
        "h3": "x y z",
        "l3": "x y",
        "h4": "i j k l",
        "l4": "a i j k l",  # the nearest other LLM document, but for l2
        "h5": " ",
    }
    tags = [
        (doc_id, DocTags(source=SOURCES[doc_id[0] == "l"], pair_id=f"p{doc_id[1]}"))
        for doc_id in texts
    ]
    return Dataset(
        name="small",
        corpus=Corpus(texts=tuple(texts.values()), tags=TagTable.from_tags(tags)),
        queries=(Query(query_id="1", text="a b"), Query(query_id="2", text="x y")),
        qrels=Qrels.from_rows([("1", "h0", 2), ("1", "l1", 1), ("2", "h3", 1), ("2", "h4", 0)]),
    )


def test_the_nearest_documents_that_are_neither_relevant_nor_twins() -> None:
    data = small()
    ids = np.array(data.corpus.doc_ids)[mined(data, depth=3)]
    pairs = training_pairs(data)
    assert list(pairs.query_ids) == ["1", "1", "2"]
    # h1 is the twin of a relevant document, and the best of all for the query.
    assert ids[:2].tolist() == [["h2", "l2"], ["h2", "l2"]]
    assert {ids[2, 0][0], ids[2, 1][0]} == {"h", "l"}
    assert not set(ids[2]) & {"h3", "l3", "h5"}


def test_negatives_of_a_synthetic_corpus_are_never_relevant() -> None:
    data = paired_texts(40)
    negatives = mined(data, per_source=2, depth=10)
    pairs = training_pairs(data)
    assert negatives.shape == (40, 4)
    tags = data.corpus.tags
    codes = tags.source_codes[negatives]
    assert (codes[:, :2] == tags.sources.index("human")).all()
    assert (codes[:, 2:] == tags.sources.index("llm:x")).all()
    own = np.array([tags.pair_ids.index(pairs.twins.pair_ids[row]) for row in pairs.rows])
    assert (tags.pair_codes[negatives] != own[:, None]).all()
    assert all(len(set(row)) == 4 for row in negatives.tolist())


def test_a_short_ranking_is_filled_up_and_a_small_corpus_refused() -> None:
    data = paired_texts(6)
    negatives = mined(data, per_source=3, depth=1)
    assert all(len(set(row)) == 6 for row in negatives.tolist())
    with pytest.raises(DataError, match=r"query 'q\d' has 5 documents .* asks for 6"):
        mined(data, per_source=6)


def test_a_copy_of_the_document_under_another_id_is_no_negative() -> None:
    data = paired_texts(6)
    texts = list(data.corpus.texts)
    texts[2] = texts[0]  # human-1 says the same as human-0
    corpus = replace(data.corpus, texts=tuple(texts))
    negatives = mined(replace(data, corpus=corpus), per_source=4, depth=12)
    assert 2 not in negatives[0]


# Settings of a debiased training: what is refused, and how they read in a report


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"debias_weight": -1.0}, "debias_weight is -1.0; accepted is a finite number at least 0"),
        ({"reduction": "max"}, "reduction 'max' is not one of sum, mean"),
        ({"rank_columns": "llm"}, "rank_columns 'llm' is not one of human, both, all"),
        ({"precision": "int8"}, "precision 'int8' is not one of auto, float32, bf16"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"hard_negatives": -1}, "hard_negatives must be at least 0, got -1"),
        ({"epochs": 2, "max_steps": 10}, "epochs is 2 and max_steps 10; give one of them"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; accepted is a number above 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"warmup_ratio": 1.0}, r"warmup_ratio is 1.0; accepted is a number in \[0, 1\)"),
        ({"batch_size": 1, "hard_negatives": 0}, "nothing to rank in a batch of 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TrainingSettings(**given)
