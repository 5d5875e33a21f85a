from __future__ import annotations

import hashlib
import importlib.resources
import io
import json
import re
import zipfile

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.samples import (
    PUBLIC_SETS,
    PublicSet,
    list_datasets,
    load_dataset,
    load_sample,
)


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


def test_samples_carry_licence_and_attribution():
    root = importlib.resources.files("rag_sourcebias.io") / "samples"
    for name in ("crowdrag-rewrites", "crowdrag25"):
        files = {entry.name: entry for entry in (root / name).iterdir()}
        assert files["LICENSE"].read_text().startswith("Attribution 4.0 International")
        attribution = files["ATTRIBUTION.md"].read_text()
        for words in ("CC BY 4.0", "Webis CrowdRAG-25", "Changes made"):
            assert words in attribution
        assert all(len(entry.read_bytes()) < 2_000_000 for entry in files.values())


def test_the_list_agrees_with_the_data():
    infos = {info.name: info for info in list_datasets()}
    assert list(infos)[:2] == ["crowdrag-rewrites", "crowdrag25"]
    for name in ("crowdrag-rewrites", "crowdrag25"):
        data = load_dataset(name)
        assert (infos[name].n_documents, infos[name].n_queries, infos[name].license) == (
            len(data.corpus),
            len(data.queries),
            data.license,
        )
        assert infos[name].how == "bundled"
    assert "downloads it once" in infos["nq-utd"].how
    assert "not downloaded" in infos["scifact"].how
    accesses = [infos[name].access for name in ("crowdrag25", "nq-utd", "scifact")]
    assert accesses == ["bundled", "downloaded", "by hand"]
    assert all(info.description and info.license for info in infos.values())


def test_unknown_names_list_the_known_ones():
    with pytest.raises(
        DataError,
        match=r"no data set 'nq-utd2'.* crowdrag-rewrites, crowdrag25, outfox-essays, nq-utd",
    ):
        load_dataset("nq-utd2")
    with pytest.raises(DataError, match="no bundled sample 'nq-utd'; there are crowdrag-rewrites"):
        load_sample("nq-utd")


def zipped(prefix="nq-utd/", extra=()):
    rows = {
        "corpus/human.jsonl": [{"_id": "d1", "text": "by hand"}],
        "corpus/llama.jsonl": [{"_id": "d1", "text": "by machine"}],
        "queries.jsonl": [{"_id": "q", "text": "?"}],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in rows.items():
            file.writestr(prefix + name, "".join(json.dumps(r) + "\n" for r in content))
        file.writestr(prefix + "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td1\t2\n")
        for name in extra:
            file.writestr(name, "x")
    return buffer.getvalue()


def entry(data, **changes):
    fields = {
        "name": "small",
        "n_documents": 2,
        "n_queries": 1,
        "checksum": "md5:" + hashlib.md5(data).hexdigest(),
        "license": "some licence",
    }
    return PublicSet(**(fields | changes))


def load_public_set(info, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PUBLIC_SETS, info.name, info)
        return load_dataset(info.name, **options)


@pytest.mark.parametrize("prefix", ["", "small/", "deeply/nested/Small/"])
def test_a_named_set_from_download_to_dataset(tmp_path, server, prefix):
    data = zipped(prefix, extra=["__MACOSX/queries.jsonl", "__MACOSX/corpus/x", "README"])
    server.files["/sets/small.zip"] = data
    info = entry(data, base_url=f"{server.url}/sets")
    seen = []
    found = load_public_set(info, cache=tmp_path, progress=lambda n, total: seen.append(n))
    assert dict(found.corpus) == {"d1@human": "by hand", "d1@llm:llama": "by machine"}
    assert found.name == "small"
    assert found.license == "some licence"
    assert "Cocktail" in found.attribution
    assert found.qrels.grades.tolist() == [2, 2]
    assert seen[-1] == len(data)
    load_public_set(info, cache=tmp_path)
    assert len(server.ranges) == 1  # the second time needs no connection
    with pytest.raises(DataError, match=r"no split 'dev'.*\['test'\]"):
        load_public_set(info, cache=tmp_path, split="dev")


def test_the_cache_folder_of_the_environment_is_used(tmp_path, server, monkeypatch):
    monkeypatch.setenv("RAG_SOURCEBIAS_CACHE", str(tmp_path / "cache"))
    data = zipped()
    server.files["/small.zip"] = data
    load_public_set(entry(data), base_url=server.url + "/")
    assert (tmp_path / "cache" / "datasets" / "small.zip").read_bytes() == data


def test_a_mirror_must_serve_the_published_archive(tmp_path, server):
    server.files["/nq-utd.zip"] = zipped()
    with pytest.raises(DataError, match="expected md5:2e12e66393829cd4be715718f99d2436"):
        load_dataset("nq-utd", cache=tmp_path, base_url=server.url)
    assert list((tmp_path / "datasets").iterdir()) == []


def test_sets_without_address(tmp_path):
    with pytest.raises(DataError, match=r"'scifact' is not downloaded: .*scifact\.zip is missing"):
        load_dataset("scifact", cache=tmp_path)
    data = zipped()
    (tmp_path / "datasets").mkdir()
    archive = tmp_path / "datasets" / "small.zip"
    archive.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"small\.zip is with another checksum"):
        load_public_set(entry(data), cache=tmp_path)
    archive.write_bytes(data)  # put there by hand
    assert len(load_public_set(entry(data), cache=tmp_path).corpus) == 2


def test_an_archive_of_something_else(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("readme.txt", "x")
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "small.zip").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match=r"no folder with queries.jsonl .*\['readme.txt'\]"):
        load_public_set(entry(buffer.getvalue()), cache=tmp_path)
