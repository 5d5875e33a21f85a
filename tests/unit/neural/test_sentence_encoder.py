"""Sentence encoders: order, shape, settings, and what is said when a model cannot be loaded."""

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.neural.loading import SentenceEncoder

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
