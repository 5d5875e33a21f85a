"""A projection inside a model folder: the same vectors wherever the folder is loaded."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

import sentence_transformers as library
from static_model import static_model

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.projection import fit_projection
from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model
from rag_sourcebias.retrieval.projection import (
    PROJECTION_FILE,
    ProjectedEncoder,
    SourceProjection,
    read_projection,
)

pytestmark = pytest.mark.frameworks

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "mu"]
TEXTS = ["alpha beta", "gamma delta epsilon zeta", "mu", "kappa lambda mu eta", "theta ?"]


def projection_for(folder: Path, **options) -> SourceProjection:
    """Twins in the space of the model: the vectors of texts, moved to one side."""
    encoder = SentenceEncoder(folder)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(60)]
    human = encoder.encode_documents(texts)
    shift = rng.normal(size=human.shape[1]) * 0.1
    other = human + shift + 0.02 * rng.normal(size=human.shape)
    return fit_projection(human, other, encoder=encoder.fingerprint, **options)


@pytest.fixture(scope="module")
def normalized_folder(encoder_folder: Path, tmp_path_factory) -> Path:
    from sentence_transformers.sentence_transformer.modules import Normalize

    model = library.SentenceTransformer(str(encoder_folder))
    model.append(Normalize())
    folder = tmp_path_factory.mktemp("normalized") / "tiny-normalized"
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def static_folder(tmp_path_factory) -> Path:
    return static_model(tmp_path_factory.mktemp("static") / "tiny-static", WORDS)


@pytest.mark.parametrize("method", ["mean", "pca"])
@pytest.mark.parametrize("kind", ["encoder_folder", "normalized_folder", "static_folder"])
def test_the_folder_gives_the_projected_vectors(kind, method, request, tmp_path: Path) -> None:
    folder = request.getfixturevalue(kind)
    projection = projection_for(folder, method=method, strength=0.8)
    target = write_projected_model(folder, projection, tmp_path / "debiased")
    plain = SentenceEncoder(folder)
    expected = ProjectedEncoder(plain, projection).encode_documents(TEXTS)
    assert np.abs(expected - plain.encode_documents(TEXTS)).max() > 0.01
    loaded = library.SentenceTransformer(str(target), device="cpu", trust_remote_code=False)
    for encode in (loaded.encode, loaded.encode_query, loaded.encode_document):
        found = encode(TEXTS, normalize_embeddings=True)
        assert np.abs(found - expected).max() <= 1e-5
    again = SentenceEncoder(target)
    assert np.abs(again.encode_queries(TEXTS) - expected).max() <= 1e-5
    assert again.fingerprint != plain.fingerprint
    assert read_projection(target / PROJECTION_FILE).fingerprint == projection.fingerprint
    assert [entry.name for entry in tmp_path.iterdir()] == ["debiased"]


def test_the_modules_are_the_librarys_own_and_the_rest_is_untouched(
    normalized_folder: Path, tmp_path: Path
) -> None:
    target = write_projected_model(
        normalized_folder, projection_for(normalized_folder), tmp_path / "x"
    )
    modules = json.loads((target / "modules.json").read_text())
    kinds = [row["type"].rpartition(".")[2] for row in modules]
    assert kinds == ["Transformer", "Pooling", "Dense", "Normalize"]
    assert all(row["type"].startswith("sentence_transformers.") for row in modules)
    assert [row["idx"] for row in modules] == [0, 1, 2, 3]
    for file in normalized_folder.rglob("*"):
        if file.is_file() and file.name != "modules.json":
            copied = target / file.relative_to(normalized_folder)
            assert copied.read_bytes() == file.read_bytes()
    vectors = library.SentenceTransformer(str(target)).encode(TEXTS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def edited(folder: Path, place: Path, change) -> Path:
    shutil.copytree(folder, place)
    file = place / "modules.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    return place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:1], r"unknown layout \(Transformer\); known"),
        (lambda rows: [*rows, rows[-1]], "unknown layout .*Normalize → Normalize"),
        (lambda rows: rows[1:], "unknown layout .Pooling → Normalize"),
        (lambda rows: [*rows, {**rows[2], "type": "mine.Own"}], "unknown layout .*mine.Own"),
        (lambda rows: [*rows, {**rows[2], "type": "a\nb.Own"}], r"layout .*a\\u000ab.Own\); known"),
        (lambda rows: [], "unknown layout .no modules"),
        (lambda rows: {"a": 1}, "not a list of modules"),
        (lambda rows: [{**rows[0], "path": "../up"}, *rows[1:]], "outside the folder"),
    ],
)
def test_layouts_that_are_not_known_are_refused(
    change, message, normalized_folder: Path, tmp_path: Path
) -> None:
    projection = replace(projection_for(normalized_folder), encoder="")
    model = edited(normalized_folder, tmp_path / "model", change)
    with pytest.raises(DataError, match=message):
        write_projected_model(model, projection, tmp_path / "debiased")
    assert not (tmp_path / "debiased").exists()


def test_a_folder_that_sentence_transformers_did_not_write_is_refused(
    normalized_folder: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(normalized_folder, model)
    (model / "modules.json").unlink()
    with pytest.raises(DataError, match=r"no modules\.json and so no pooling module"):
        write_projected_model(model, projection_for(normalized_folder), tmp_path / "debiased")


def test_what_does_not_fit_the_model_or_the_target_is_refused(
    encoder_folder: Path, static_folder: Path, tmp_path: Path
) -> None:
    projection = projection_for(encoder_folder)
    with pytest.raises(DataError, match="was fitted on vectors of"):
        write_projected_model(static_folder, projection, tmp_path / "debiased")
    unknown = replace(projection, encoder="")
    with pytest.raises(DataError, match=r"makes vectors of 16 dimensions, .* is for 32"):
        write_projected_model(static_folder, unknown, tmp_path / "debiased")
    with pytest.raises(DataError, match="exists; name a folder"):
        write_projected_model(encoder_folder, projection, tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        write_projected_model(encoder_folder, projection, tmp_path / "none" / "debiased")
    with pytest.raises(DataError, match="lies inside the model"):
        write_projected_model(encoder_folder, projection, encoder_folder / "debiased")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing_behind(
    encoder_folder: Path, tmp_path: Path, monkeypatch
) -> None:
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    projection = projection_for(encoder_folder)
    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(DataError, match="debiased cannot be written: No space left on device"):
        write_projected_model(encoder_folder, projection, tmp_path / "debiased")
    assert not list(tmp_path.iterdir())
