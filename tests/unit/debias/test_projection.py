"""Directions from pairs, and the projection that removes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError, UnsupportedVersionError
from rag_sourcebias.debias.projection import fit_projection
from rag_sourcebias.retrieval.projection import ProjectedEncoder, read_projection, write_projection

METHODS = ("mean", "pca")


def unit(vectors):
    vectors = np.asarray(vectors, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def twins(m: int = 400, d: int = 24, *, seed: int = 0, shift: float = 0.8):
    """Correlated dimensions, and rewrites moved along one direction that is not an axis of them."""
    rng = np.random.default_rng(seed)
    spread = np.linspace(0.3, 2.0, d)
    human = rng.normal(size=(m, d)) * spread + 0.5
    direction = np.ones(d) / np.sqrt(d)
    return human, human + shift * direction + 0.2 * rng.normal(size=(m, d)), direction


@pytest.mark.parametrize("method", METHODS)
def test_at_strength_1_the_sources_have_one_mean_and_no_method_misses_the_shift(method) -> None:
    human, other, direction = twins()
    projection = fit_projection(human, other, method=method)
    assert abs(float(projection.directions[:, 0] @ direction)) > 0.97
    assert projection.n_pairs == 400
    assert 0.9 < projection.reliability <= 1
    gap = projection.apply(other).mean(axis=0) - projection.apply(human).mean(axis=0)
    before = np.linalg.norm(other.mean(axis=0) - human.mean(axis=0))
    assert np.linalg.norm(gap) < (0.1 if method == "pca" else 1e-5) * before


def test_fewer_pairs_than_dimensions_have_orthonormal_directions() -> None:
    human, other, _ = twins(30, 64, shift=4.0)
    leading = fit_projection(human, other, method="pca", n_directions=2)
    assert leading.directions.shape == (64, 2)
    assert np.allclose(leading.directions.T @ leading.directions, np.eye(2), atol=1e-5)


def test_pairs_that_do_not_determine_a_direction_are_refused_with_the_number_needed() -> None:
    human, other, _ = twins(200, shift=0.03)
    with pytest.raises(InsufficientDataError, match="200 pairs do not determine") as caught:
        fit_projection(human, other)
    needed = caught.value.n_needed
    assert needed is None or needed > 200
    enough, moved, _ = twins(20_000, shift=0.03)
    assert fit_projection(enough, moved).reliability > 0.5
    with pytest.raises(InsufficientDataError, match="at least 40 are needed"):
        fit_projection(human[:39], other[:39], method="pca", n_directions=4)


@pytest.mark.parametrize("method", METHODS)
def test_strength_0_is_the_identity_and_1_is_idempotent(method) -> None:
    human, other, _ = twins()
    projection = fit_projection(human, other, method=method)
    for vectors in (unit(human), human.astype(np.float32)):
        assert replace(projection, strength=0.0).apply(vectors).tobytes() == vectors.tobytes()
        once = projection.apply(vectors)
        assert once.dtype == np.float32
        assert not np.allclose(once, vectors, atol=1e-2)
        assert np.allclose(projection.apply(once), once, atol=5e-6)
        half = replace(projection, strength=0.5)
        assert not np.allclose(half.apply(half.apply(vectors)), half.apply(vectors), atol=1e-3)


def test_apply_is_the_matrix_product_and_only_unit_rows_are_scaled() -> None:
    human, other, _ = twins()
    for method, strength in (("pca", 0.7), ("pca", 1.0), ("mean", 0.2)):
        projection = fit_projection(human, other, method=method, strength=strength)
        mixed = human.astype(np.float32)
        mixed[::2] = unit(mixed[::2])
        expected = mixed @ projection.matrix
        expected[::2] = unit(expected[::2])
        assert np.allclose(projection.apply(mixed), expected, atol=1e-5)
        assert np.allclose(projection.apply(mixed.astype(np.float64)), expected, atol=1e-5)
    along = fit_projection(human, other).directions.T.copy()
    gone = fit_projection(human, other).apply(along)
    assert np.abs(gone).max() < 1e-6  # nothing is left: rounding is not blown up to length 1


def test_many_chunks_and_strided_rows() -> None:
    human, other, _ = twins()
    projection = fit_projection(human, other)
    many = unit(np.random.default_rng(1).normal(size=(20_001, 24)))
    expected = unit(many @ projection.matrix)
    assert np.allclose(projection.apply(many), expected, atol=1e-5)
    wide = np.zeros((20_001, 48), np.float32)
    wide[:, ::2] = many
    view = wide[:, ::2]
    assert np.allclose(projection.apply(view), expected, atol=1e-5)
    assert projection.apply(many[:0]).shape == (0, 24)
    with pytest.raises(DataError, match=r"shape \(4, 25\); expected \(n, 24\)"):
        projection.apply(np.zeros((4, 25), np.float32))
    many[20_000, 3] = np.nan
    with pytest.raises(DataError, match="vector 20000 holds NaN"):
        projection.apply(many)


def test_unusable_pairs_are_refused() -> None:
    human, other, _ = twins()
    with pytest.raises(DataError, match="rows do not look like pairs"):
        fit_projection(human - human.mean(axis=0), other[::-1])
    broken = other.copy()
    broken[[7, 9], 2] = np.nan, np.inf
    with pytest.raises(DataError, match=r"2 other vector.* first in row 7"):
        fit_projection(human, broken)
    with pytest.raises(InsufficientDataError, match="3 pairs are too few"):
        fit_projection(human[:3], other[:3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "svd"}, "'svd' is not one of mean, pca"),
        ({"method": "pca", "n_directions": 24}, "allow 1 to 23"),
        ({"strength": 1.5}, "strength is 1.5"),
        ({"strength": float("nan")}, "strength is nan"),
    ],
)
def test_options_out_of_range_are_refused(options, message) -> None:
    human, other, _ = twins()
    with pytest.raises(DataError, match=message):
        fit_projection(human, other, **options)


def test_a_projection_is_read_back_exactly(tmp_path: Path) -> None:
    human, other, _ = twins()
    projection = fit_projection(human, other, method="pca", strength=0.3, encoder="some:encoder")
    write_projection(projection, tmp_path / "p.npz")
    found = read_projection(tmp_path / "p.npz")
    assert found.fingerprint == projection.fingerprint
    assert found.directions.tobytes() == projection.directions.tobytes()
    for name in ("strength", "method", "n_pairs", "reliability", "encoder"):
        assert getattr(found, name) == getattr(projection, name)
        assert type(getattr(found, name)) is type(getattr(projection, name))
    assert replace(projection, strength=0.4).fingerprint != projection.fingerprint


def test_files_that_hold_no_projection_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.npz"
    with pytest.raises(DataError, match="does not exist"):
        read_projection(file)
    human, other, _ = twins()
    write_projection(fit_projection(human, other), file)
    whole = file.read_bytes()
    for content in (b"", b"not a zip file", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(DataError, match="is not a file of write_projection"):
            read_projection(file)
    np.savez(file, schema_version=2)
    with pytest.raises(UnsupportedVersionError, match="version 2; this release reads version 1"):
        read_projection(file)
    np.savez(file, schema_version=1, strength=1.0)
    with pytest.raises(DataError, match="method"):
        read_projection(file)


def test_parts_that_make_no_projection_are_refused() -> None:
    human, other, _ = twins()
    projection = fit_projection(human, other)
    with pytest.raises(DataError, match="not a projection"):
        replace(projection, directions=2 * projection.directions)
    with pytest.raises(DataError, match=r"directions have shape \(24,\)"):
        replace(projection, directions=projection.directions[:, 0])


class Recorded:
    """An encoder that looks its vectors up."""

    name = "table"
    fingerprint = "table-1"
    settings = {"dtype": "float32"}  # noqa: RUF012

    def __init__(self, vectors) -> None:
        self.vectors = unit(vectors)

    def encode_queries(self, texts):
        return self.vectors[[int(text) for text in texts]]

    encode_documents = encode_queries


def test_a_projected_encoder_projects_both_sides() -> None:
    human, other, _ = twins()
    inner = Recorded(human)
    both = fit_projection(human, other, encoder="table-1")
    expected = both.apply(inner.vectors[:3])
    texts = ["0", "1", "2"]
    projected = ProjectedEncoder(inner, both)
    assert np.array_equal(projected.encode_queries(texts), expected)
    assert np.array_equal(projected.encode_documents(texts), expected)
    assert projected.fingerprint != inner.fingerprint
    assert projected.settings["projection"] == (
        "mean, 1 direction(s), strength 1, fitted on 400 pairs"
    )
    with pytest.raises(DataError, match="fitted on vectors of 'another'"):
        ProjectedEncoder(inner, replace(both, encoder="another"))
    ProjectedEncoder(inner, replace(both, encoder=""))
