"""Real rewrite pairs: Cocktail NQ-UTD, 80 queries, Llama-2 rewrites.

What both sources get of BM25 and the encoder is held in benchmarks/reproduce/o-nq-utd.yaml.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.data import Dataset, Qrels
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.neural.loading import SentenceEncoder, fast_dtype
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.source.audit import audit_source
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport
from support.real_data import data_folder

pytestmark = [pytest.mark.data, pytest.mark.frameworks]

LLM = "llm:llama-2-7b-chat-tmp0.2"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read_beir(data_folder() / "nq-utd")


@pytest.fixture(scope="module")
def report(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> SkewReport:
    cache = VectorCache(tmp_path_factory.mktemp("cache") / "vectors.sqlite")
    # as fast as the processor can: no figure here depends on the last digits
    encoder = CachedEncoder(SentenceEncoder("all-MiniLM-L6-v2", dtype=fast_dtype()), cache)
    specs = [DenseSpec(encoder, name="minilm")]
    # the paper counts each document
    return audit_source(dataset, specs, config=AuditConfig(), length_matched=False, copies="no")


def test_the_data_are_what_the_figures_were_measured_on(dataset: Dataset) -> None:
    assert dataset.corpus.tags.counts() == {"human": 800, LLM: 800}
    assert len(dataset.queries) == 80
    assert dataset.design == "rewrites"


def test_each_corpus_alone_is_searched_equally_well_by_the_encoder(report: SkewReport) -> None:
    check = next(c for c in report.system("minilm").sole_corpus if c.measure == "NDCG@5")
    assert 100 * check.mean_baseline == pytest.approx(70.4, abs=1.0)
    assert 100 * check.mean_other == pytest.approx(71.6, abs=1.0)
    assert check.p_value is not None
    assert check.p_value > 0.05


def test_the_report_states_dtype_and_maximum_length(dataset: Dataset) -> None:
    """With 20 of the pairs: how a model is run does not depend on how much it encodes."""
    corpus = dataset.corpus.take(np.r_[0:20, 800:820])
    rows = [
        (dataset.qrels.query_ids[query], dataset.qrels.doc_ids[doc], int(grade))
        for query, doc, grade in zip(
            dataset.qrels.query_codes, dataset.qrels.doc_codes, dataset.qrels.grades, strict=True
        )
        if dataset.qrels.doc_ids[doc] in corpus.doc_ids
    ]
    some = replace(dataset, corpus=corpus, qrels=Qrels.from_rows(rows))
    spec = DenseSpec(SentenceEncoder("all-MiniLM-L6-v2", max_length=128), name="minilm-128")
    report = audit_source(
        some, [spec], config=AuditConfig(), length_matched=False, sole_corpus=False
    )
    settings = report.system("minilm-128").settings
    assert settings["dtype"] == "float32"
    assert "128" in settings["maximum length"]
