"""The whole audit with small retrievers of known behaviour."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tagged_texts import dataset_of

from rag_sourcebias.core.data import Corpus, DocTags, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.source.audit import audit_source
from rag_sourcebias.source.findings import AuditConfig

TOPICS = ["apple", "birch", "cedar", "daisy", "elder", "fig"]
CONFIG = AuditConfig(resamples=200, cutoffs=(1, 2))


class Overlap:
    """Scores a document by shared words per word of the document: short texts win."""

    def __init__(self, corpus, name, depth_loss=0):
        self.corpus, self.name, self.loss = corpus, name, depth_loss

    def retrieve(self, queries, depth):
        found = {}
        for query in queries:
            wanted = set(query.text.split())
            scores = {
                doc: len(wanted & set(text.split())) / len(text.split())
                for doc, text in self.corpus
            }
            ranked = sorted(scores.items(), key=lambda item: -item[1])
            found[query.query_id] = dict(ranked[self.loss : self.loss + depth])
        return Run.from_dict(found, name=self.name)


class Approximate(Overlap):
    """Misses the best document."""

    def exact(self):
        return Overlap(self.corpus, self.name)


class Spec:
    settings = {"kind": "overlap"}  # noqa: RUF012

    def __init__(self, name, loss=None):
        self.name, self.loss, self.built = name, loss, []

    def build(self, corpus):
        self.built.append(len(corpus))
        if self.loss is None:
            return Overlap(corpus, "inner")
        return Approximate(corpus, "inner", self.loss)


@pytest.fixture
def dataset():
    rows, queries, grades = [], {}, {}
    for i, topic in enumerate(TOPICS * 3):
        queries[f"q{i}"] = f"about {topic} number{i}"
        rows.append((f"h{i}", "human", f"p{i}", f"about {topic} number{i} briefly put"))
        rows.append((f"l{i}", "llm:x", f"p{i}", f"about {topic} number{i} briefly"))
        grades[f"q{i}"] = {f"h{i}": 1, f"l{i}": 1}
    return dataset_of(rows, queries, grades, license="CC0", attribution="nobody")


def test_length_explains_a_length_effect(dataset):
    """The retriever prefers short texts; with pairs cut to equal length the skew is gone."""
    stages = []
    report = audit_source(dataset, [Spec("overlap")], config=CONFIG, on_stage=stages.append)
    mixed = report.system("overlap").cell("NDCG@1", "llm:x")
    matched = report.system("overlap", "length-matched").cell("NDCG@1", "llm:x")
    assert mixed.relative_delta == -200
    assert mixed.interval.upper < -100
    assert abs(matched.relative_delta) < 30
    assert report.data.license == "CC0"
    assert any("Documents of llm:x have" in w for w in report.warnings)
    assert any("indexing 36 documents" in s for s in stages)


def test_sole_corpus_check_indexes_each_source_alone(dataset):
    spec = Spec("overlap")
    report = audit_source(dataset, [spec], config=CONFIG, length_matched=False)
    assert sorted(spec.built) == [18, 18, 36]
    checks = report.system("overlap").sole_corpus
    assert [(c.measure, c.other) for c in checks] == [
        (m, "llm:x") for m in ("NDCG@1", "NDCG@2", "MAP@1", "MAP@2")
    ]
    for check in checks:
        assert (check.mean_baseline, check.mean_other) == (1.0, 1.0)
        assert check.p_value == 1.0


def test_approximate_index_is_compared_with_exact_search(dataset):
    report = audit_source(dataset, [Spec("ann", loss=1)], config=CONFIG, length_matched=False)
    ann, exact = report.system("ann"), report.system("ann", "exact")
    assert ann.notes[0].numbers == {"share": 0.5, "cutoff": 2}
    assert exact.cell("NDCG@1", "llm:x").relative_delta == -200
    assert ann.cell("NDCG@1", "llm:x").relative_delta == 200  # the best, an LLM text, is missed
    lossless = audit_source(dataset, [Spec("ann", loss=0)], config=CONFIG, length_matched=False)
    assert lossless.system("ann").notes[0].numbers["share"] == 1
    with pytest.raises(DataError):
        lossless.system("ann", "exact")


def test_a_large_corpus_is_matched_in_length_on_request_or_with_bm25(dataset, monkeypatch):
    monkeypatch.setattr("rag_sourcebias.source.audit.LENGTH_MATCHED_UP_TO", 35)  # of 36 documents
    specs = [Spec("overlap"), BM25Spec()]
    found = audit_source(dataset, specs, config=CONFIG, settings_strip=False)
    repeated = [one.name for one in found.systems if one.variant == "length-matched"]
    assert repeated == [BM25Spec().name]
    assert any("--length-matched" in warning for warning in found.warnings)
    asked = audit_source(dataset, specs[:1], config=CONFIG, length_matched=True)
    assert asked.system("overlap", "length-matched")
    refused = audit_source(dataset, specs, config=CONFIG, length_matched=False)
    for report in (asked, refused):
        assert not any("--length-matched" in warning for warning in report.warnings)


def test_unpaired_documents_are_not_length_matched(dataset):
    tags = TagTable.from_tags(
        (d, DocTags(source=dataset.corpus.tags.get(d).source)) for d in dataset.corpus.doc_ids
    )
    corpus = Corpus(texts=dataset.corpus.texts, tags=tags)
    loose = replace(dataset, corpus=corpus, design="unknown")
    report = audit_source(loose, [Spec("overlap")], config=CONFIG)
    assert [s.variant for s in report.systems] == ["mixed"]
    assert report.system("overlap").twins == ()


def test_bm25_is_repeated_with_other_usual_settings(dataset):
    report = audit_source(dataset, [BM25Spec(k1=0.9, b=0.4)], config=CONFIG, length_matched=False)
    (system,) = report.systems
    assert [row.setting for row in system.strip] == [
        *("k1=1.2, b=0.75", "k1=1.5, b=0", "k1=1.5, b=0.75", "k1=1.5, b=1", "k1=2, b=0.75")
    ]
    by_hand = audit_source(
        dataset, [BM25Spec(k1=1.5, b=1.0)], config=CONFIG, settings_strip=False, sole_corpus=False
    ).systems[0]
    assert by_hand.strip == ()
    verdict = by_hand.verdicts[0]
    row = next(r for r in system.strip if r.setting == "k1=1.5, b=1")
    assert (row.value, row.interval) == (verdict.centred_delta, verdict.interval)
    # the control: short texts win only where b counts length
    assert row.value != next(r for r in system.strip if r.setting == "k1=1.5, b=0").value
    assert audit_source(dataset, [Spec("overlap")], config=CONFIG).systems[0].strip == ()


def test_clusters_reach_every_interval(dataset):
    clusters = {q.query_id: str(i // 3) for i, q in enumerate(dataset.queries)}
    report = audit_source(dataset, [Spec("overlap")], config=CONFIG, clusters=clusters)
    for system in report.systems:
        assert system.verdicts[0].interval.n_labeled == 6
    with pytest.raises(DataError, match="17 queries have a cluster or judgments, not both"):
        audit_source(dataset, [Spec("overlap")], config=CONFIG, clusters={"q0": "a"})


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        ([], {}, "one or more retrievers with different names"),
        ([Spec("a"), Spec("a")], {}, r"\['a', 'a'\]"),
        ([Spec("a")], {"depth": 1}, "depth 1 is smaller than the largest cutoff 2"),
    ],
)
def test_errors(dataset, specs, options, message):
    with pytest.raises(DataError, match=message):
        audit_source(dataset, specs, config=CONFIG, **options)
