from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.samples import list_datasets, load_sample


def test_crowdrag_rewrites():
    data = load_sample()
    assert data.name == "crowdrag-rewrites"
    assert data.design == "rewrites"
    assert data.license == "CC BY 4.0"
    assert "CrowdRAG-25" in data.attribution
    tags = data.corpus.tags
    assert len(data.corpus) == 320
    assert tags.counts() == {"human": 160, "llm:claude": 160}
    assert np.bincount(tags.pair_codes).tolist() == [2] * 160
    assert len(data.queries) == 160
    assert data.qrels.grades.tolist() == [1] * 320
    for q, d in zip(data.qrels.query_codes, data.qrels.doc_codes, strict=True):
        query, doc = data.qrels.query_ids[q], data.qrels.doc_ids[d]
        assert doc in (f"{query}@human", f"{query}@llm:claude")
        assert tags.get(doc).pair_id == query
    assert all(text and text == text.strip() for text in data.corpus.texts)
    assert len(set(data.corpus.texts)) == 320


def test_essays_in_two_halves():
    whole = load_sample("outfox-essays")
    train, test = (load_sample("outfox-essays", split=split) for split in ("train", "test"))
    assert [len(data.queries) for data in (whole, train, test)] == [640, 340, 300]
    assert not {q.query_id for q in train.queries} & {q.query_id for q in test.queries}
    assert train.corpus.texts == test.corpus.texts == whole.corpus.texts
    assert len(set(whole.corpus.texts)) == 1280  # nothing is judged that was fitted on
    assert whole.license == "Apache-2.0"
    for name, split in (("outfox-essays", "dev"), ("crowdrag25", "test")):
        with pytest.raises(DataError, match="train and test"):
            load_sample(name, split=split)


def test_crowdrag25():
    data = load_sample("crowdrag25")
    assert data.design == "independent"
    tags = data.corpus.tags
    assert len(data.corpus) == 1_806
    assert tags.counts() == {"human": 903, "llm:gpt-4o": 903}
    assert tags.styles == ("bullet", "essay", "news")
    assert np.bincount(tags.pair_codes).tolist() == [2] * 903
    assert len(data.queries) == 301
    assert np.bincount(data.qrels.query_codes).tolist() == [6] * 301
    assert set(data.qrels.grades.tolist()) == {1}
    # Citation marks are gone; brackets that hold words or a year are text.
    marks = [m for text in data.corpus.texts for m in re.findall(r"\[[\d\s,.]*\d[\d\s,.]*\]", text)]
    assert marks == []
    assert any("[Winter, 1997]" in text for text in data.corpus.texts)
    assert any("[...]" in text for text in data.corpus.texts)
    first = data.corpus.texts[0]
    assert "somewhat less than that. \n" in first


def test_the_list_agrees_with_the_data():
    infos = {info.name: info for info in list_datasets()}
    assert list(infos) == ["crowdrag-rewrites", "crowdrag25", "outfox-essays"]
    for name, info in infos.items():
        data = load_sample(name)
        assert (info.n_documents, info.n_queries, info.license) == (
            len(data.corpus),
            len(data.queries),
            data.license,
        )


def test_unknown_names_list_the_known_ones():
    with pytest.raises(
        DataError, match=r"no data set 'nq-utd'; there are crowdrag-rewrites, crowdrag25, outfox"
    ):
        load_sample("nq-utd")


def test_cache_dir_order(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAG_SOURCEBIAS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == tmp_path / ".cache" / "rag-sourcebias"
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_dir() == Path("/shared/rag-sourcebias")
    monkeypatch.setenv("RAG_SOURCEBIAS_CACHE", "~/own")
    assert cache_dir() == tmp_path / "own"
