"""Hard negatives: the most similar documents that are not relevant, from both sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from tiny_training import paired_texts

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import training_pairs
from rag_sourcebias.neural.training_data import mine_negatives

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
