"""Style audits of encoders, BM25 and whole retrievers, with an encoder that counts words."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.infer.means import adjust_p_values
from rag_sourcebias.measure.relevance import relative_delta
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec
from rag_sourcebias.style.audit import audit_style, measure_style_bias
from rag_sourcebias.style.data import StyleConfig

CONFIG = StyleConfig(resamples=300, cutoffs=(1, 3))
DOCS, FORMS = ("human", "chatty", "terse"), ("original", "chatty")


def texts(n=24, **changes):
    rng = np.random.default_rng(0)
    queries, documents, others = {f: [] for f in FORMS}, {s: [] for s in DOCS}, []
    for i in range(n):
        topic = [f"t{int(k)}" for k in rng.integers(0, 40, 6)]
        filler = [f"f{int(k)}" for k in rng.integers(0, 60, 12)]
        queries["original"].append(" ".join(topic[:3]))
        queries["chatty"].append(" ".join(["lol", "so", *topic[:2], filler[0]]))
        documents["human"].append(" ".join(topic + filler[:6]) + f" n{i}")
        documents["chatty"].append(" ".join(["lol", "so", *topic[:4], *filler]))
        documents["terse"].append(" ".join(topic[:5]))
        others.append(" ".join(f"t{int(k)}" for k in rng.integers(0, 40, 9)))
    values = {
        "query_ids": tuple(f"q{i}" for i in range(n)),
        "doc_ids": tuple(f"doc{i}" for i in range(n)),
        "queries": {form: tuple(column) for form, column in queries.items()},
        "documents": {style: tuple(column) for style, column in documents.items()},
        "distractors": tuple(others),
    }
    return StyledTexts(**{**values, **changes})


class WordVectors(HashingEncoder):
    """Sums a random vector for each word, so that different texts do not tie."""

    def _encode(self, texts):
        self.calls.append(list(texts))
        rows = np.zeros((len(texts), self.dimension))
        for i, text in enumerate(texts):
            for word in text.split():
                rng = np.random.default_rng(zlib.crc32(word.encode()))
                rows[i] += rng.normal(size=self.dimension)
        return rows.astype(np.float32)


def cosine(encoder, data):
    def unit(columns):
        rows = np.stack([encoder._encode(column) for column in columns.values()], axis=1)
        return rows / np.linalg.norm(rows, axis=2, keepdims=True)

    return np.einsum("nqe,nde->nqd", unit(data.queries), unit(data.documents))


def test_an_encoder_is_measured_by_the_cosine_of_its_vectors():
    data, encoder = texts(), HashingEncoder(256)
    stages = []
    report = audit_style(
        data, encoders=[encoder], config=CONFIG, text_statistics=False, on_stage=stages.append
    )
    asked = [text for call in encoder.calls for text in call]
    assert len(asked) == len(set(asked)) == 2 * 24 + 3 * 24 + 24  # each text once
    expected = measure_style_bias(
        {"hashing": cosine(HashingEncoder(256), data)}, data, config=CONFIG
    ).system("hashing")
    found = report.system("hashing")
    assert np.array_equal(found.ranks, expected.ranks)
    assert (found.rows, found.matching) == (expected.rows, expected.matching)
    assert found.settings["model"] == "hashing"
    assert found.settings["similarity"] == "cosine"
    assert report.data.n_distractors == 24
    assert stages[0] == "hashing: encoding 96 documents"
    assert any("an index of 48 documents" in stage for stage in stages)


def own_ranks(encoder, queries, documents, others):
    """Rank of each query's own document among all."""
    index = encoder._encode([*documents, *others])
    asked = encoder._encode(queries)
    index /= np.linalg.norm(index, axis=1, keepdims=True)
    scores = asked @ index.T
    own = scores[np.arange(len(queries)), np.arange(len(queries))][:, None]
    return 1 + (scores > own + 1e-6).sum(axis=1)


@pytest.mark.parametrize("original", ["human", "terse"])
def test_quality_counts_the_own_document_among_originals_and_distractors(original):
    data, encoder = texts(), WordVectors()
    config = replace(CONFIG, original=original)
    report = audit_style(data, encoders=[encoder], config=config, text_statistics=False)
    values = {}
    for form in FORMS:
        rank = own_ranks(encoder, data.queries[form], data.documents[original], data.distractors)
        values[form, "NDCG@1"] = (rank == 1).astype(float)
        values[form, "NDCG@3"] = np.where(rank <= 3, 1 / np.log2(1 + rank), 0)
        values[form, "Recall@3"] = (rank <= 3).astype(float)
    quality = report.systems[0].quality
    assert [(q.query_style, q.measure) for q in quality] == list(values)
    for row in quality:
        column = values[row.query_style, row.measure]
        assert row.mean == row.score.estimate == pytest.approx(column.mean())
        if row.query_style == "original":
            assert (row.change, row.p_value, row.p_adjusted) == (None, None, None)
        else:
            base = values["original", row.measure]
            assert row.change.estimate == pytest.approx((column - base).mean())
            assert (row.p_value < 0.05) == row.change.excludes(0)
    tested = [row for row in quality if row.p_value is not None]
    assert [row.p_adjusted for row in tested] == adjust_p_values([row.p_value for row in tested])


def test_index_scores_hold_each_style_against_the_original():
    data, encoder = texts(), WordVectors()
    report = audit_style(data, encoders=[encoder], config=CONFIG, text_statistics=False)
    index = [text for column in data.documents.values() for text in column] + [*data.distractors]
    vectors = encoder._encode(index)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = np.round(encoder._encode(data.queries["original"]) @ vectors.T, 5)
    better = scores[:, None, :] > scores[:, : 3 * 24, None]
    rank = 1 + better.sum(axis=2)
    means = {}
    for j, style in enumerate(DOCS):
        own = (np.arange(24), 24 * j + np.arange(24))
        means[style] = np.where(rank[own] <= 3, 1 / np.log2(1 + rank[own]), 0).mean()
    rows = [row for row in report.systems[0].index_scores if row.measure == "NDCG@3"]
    assert [row.doc_style for row in rows] == list(DOCS)
    for row in rows:
        assert row.mean == row.score.estimate == pytest.approx(means[row.doc_style])
        if row.doc_style == "human":
            assert (row.relative_delta, row.interval) == (None, None)
        else:
            delta = relative_delta(means["human"], means[row.doc_style])
            assert row.relative_delta == row.interval.estimate == pytest.approx(delta)


@pytest.mark.frameworks
def test_a_stack_that_returns_everything_ranks_like_its_encoder():
    data = texts()
    spec = DenseSpec(HashingEncoder(256), name="stack")
    report = audit_style(
        data,
        encoders=[HashingEncoder(256)],
        bm25=BM25Spec(),
        retrievers=[spec],
        config=CONFIG,
        text_statistics=False,
    )
    assert [system.name for system in report.systems] == ["bm25", "hashing", "stack"]
    encoder, stack = report.system("hashing"), report.system("stack")
    assert np.array_equal(encoder.ranks, stack.ranks)
    assert encoder.quality == stack.quality
    assert encoder.index_scores == stack.index_scores
    assert "every version was returned" in stack.notes[0]
    assert report.system("bm25").settings["similarity"].startswith("score")


class Stub:
    """Returns fixed lists, as a stack that finds little."""

    name = "stub"
    settings = {"kind": "stub"}  # noqa: RUF012 - never changed

    def __init__(self, found, drop=0):
        self.found, self.drop = found, drop

    def build(self, corpus):
        self.ids = dict(
            zip(
                zip(
                    [corpus.tags.get(d).pair_id for d in corpus.doc_ids],
                    [corpus.tags.get(d).style for d in corpus.doc_ids],
                    strict=True,
                ),
                corpus.doc_ids,
                strict=True,
            )
        )
        self.built = getattr(self, "built", 0) + 1
        return self

    def retrieve(self, queries, depth):
        lists = {
            query.query_id: {
                self.ids[key]: -float(rank)
                for rank, key in enumerate(self.found.get(query.query_id, []))
                if key in self.ids
            }
            for query in queries[self.drop :]
        }
        return Run.from_dict(lists, name=self.name)


def test_versions_that_a_stack_does_not_return_tie_below_the_others():
    data = texts(3)
    found = {
        "q0": [("doc0", "terse"), ("doc2", "human"), ("doc0", "human"), ("doc0", "chatty")],
        "q1": [("doc0", "human"), ("doc1", "chatty")],
    }
    stub = Stub(found)
    report = audit_style(data, retrievers=[stub], config=CONFIG, index=False, text_statistics=False)
    ranks = report.system("stub").ranks
    assert ranks[:, 0].tolist() == [[2, 3, 1], [2.5, 1, 2.5], [2, 2, 2]]
    assert np.array_equal(ranks[:, 0], ranks[:, 1])
    assert "55.6% of the versions were not returned" in report.system("stub").notes[0]
    assert stub.built == 1
    assert report.system("stub").quality == ()
    with pytest.raises(DataError, match="stub: retrieved for 2 queries, not for the 3"):
        audit_style(data, retrievers=[Stub(found, drop=1)], config=CONFIG, text_statistics=False)


def test_equal_versions_tie_exactly_whatever_the_encoder_rounds():
    data = texts()
    same = replace(data, documents={**data.documents, "terse": data.documents["human"]})
    for options in (
        {"encoders": [WordVectors(333)]},
        {"retrievers": [DenseSpec(HashingEncoder())]},
    ):
        report = audit_style(same, **options, config=CONFIG, index=False, text_statistics=False)
        ranks = report.systems[0].ranks
        assert np.array_equal(ranks[:, :, 0], ranks[:, :, 2])
        assert set(np.unique(ranks[:, :, 0])) <= {1.5, 2.5}
        assert any("24 of 24 queries have the same document text" in w for w in report.warnings)
    index = audit_style(same, encoders=[HashingEncoder(333)], config=CONFIG, text_statistics=False)
    rows = {row.doc_style: row for row in index.systems[0].index_scores if row.measure == "NDCG@3"}
    assert rows["terse"].mean == rows["human"].mean > 0
    assert rows["terse"].relative_delta == 0


def test_queries_of_one_document_share_it_in_the_index():
    data = texts(20)
    first = {style: (column[0], column[0], *column[2:]) for style, column in data.documents.items()}
    shared = replace(data, documents=first, doc_ids=("doc0", "doc0", *data.doc_ids[2:]))
    stages = []
    encoder = HashingEncoder()
    report = audit_style(
        shared, encoders=[encoder], config=CONFIG, text_statistics=False, on_stage=stages.append
    )
    assert "hashing: searching an index of 39 documents" in stages
    assert "hashing: searching an index of 77 versions" in stages
    assert any("2 queries share their document" in w for w in report.warnings)
    other = replace(data, doc_ids=("doc0", "doc0", *data.doc_ids[2:]))
    with pytest.raises(DataError, match="'doc0' has different texts in style 'human' for queries"):
        audit_style(other, encoders=[encoder])


def test_distractors_that_are_known_texts_are_left_out():
    data = texts(20)
    copies = replace(
        data, distractors=("x", "x", " ", data.documents["terse"][3], *data.distractors)
    )
    report = audit_style(copies, encoders=[HashingEncoder()], config=CONFIG, text_statistics=False)
    assert report.data.n_distractors == 21
    assert any("3 of 24 distractors are blank, occur twice" in w for w in report.warnings)
    assert any(
        "the index holds 41 documents (21 of them distractors)" in w for w in report.warnings
    )


def test_only_queries_with_every_version_are_encoded():
    data = texts(22)
    holes = replace(
        data,
        documents={**data.documents, "terse": (None, "", *data.documents["terse"][2:])},
        distractors=(),
    )
    encoder = HashingEncoder()
    report = audit_style(holes, encoders=[encoder], config=CONFIG, text_statistics=False)
    assert report.data.dropped == ("q0", "q1")
    assert sum(map(len, encoder.calls)) == 20 * 5
    config = StyleConfig(missing="refuse")
    with pytest.raises(DataError, match="document style 'terse' of query 'q0'"):
        audit_style(holes, encoders=[encoder], config=config)


def test_what_cannot_be_audited_is_refused():
    data, encoder = texts(3), HashingEncoder()
    with pytest.raises(DataError, match=r"different names, got \['hashing', 'hashing'\]"):
        audit_style(data, encoders=[encoder], retrievers=[DenseSpec(encoder)])

    class Lopsided(HashingEncoder):
        def encode_queries(self, texts):
            return super().encode_queries(texts)[:, :10]

    with pytest.raises(DataError, match="10 dimensions, document vectors 64"):
        audit_style(data, encoders=[Lopsided()])

    class Broken(HashingEncoder):
        def encode_queries(self, texts):
            return super().encode_queries(texts)[:-1]

    with pytest.raises(DataError, match="queries: returned shape"):
        audit_style(data, encoders=[Broken()])


def test_texts_are_described_by_what_is_installed(monkeypatch):
    data = texts(20)
    for module in ("style.audit", "measure.texts"):
        monkeypatch.setattr(
            f"rag_sourcebias.{module}.installed_statistics", lambda: ("words", "Jaccard")
        )
    report = audit_style(data, encoders=[HashingEncoder()], config=CONFIG, index=False)
    found = {(s.group, s.name): s for s in report.document_statistics}
    assert list(found) == [
        ("human", "words"),
        ("chatty", "words"),
        ("chatty", "Jaccard"),
        ("terse", "words"),
        ("terse", "Jaccard"),
    ]
    assert found["terse", "words"].average == 5
    assert {s.group for s in report.query_statistics} == set(FORMS)
    assert report.warnings[-1].startswith("text statistics lack BLEU, METEOR, ROUGE-L")
    assert "[text]" in report.warnings[-1]
