"""Spectra against numpy's SVD, and bands against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.vectors import spectrum


def twins(seed: int, n: int = 120, d: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Versions of documents; the other source has larger leading and smaller trailing values."""
    rng = np.random.default_rng(seed)
    scale = np.linspace(2, 0.3, d)
    shared = rng.standard_normal((n, d)) * scale
    own = 0.5 * rng.standard_normal((2, n, d)) * scale
    return shared + own[0], shared * np.linspace(1.1, 0.9, d) + own[1]


def numpy_values(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.svd(matrix, compute_uv=False)


@pytest.mark.parametrize(
    ("centre", "normalise", "prepare"),
    [
        (False, False, lambda m: m),
        (True, False, lambda m: m - m.mean(axis=0)),
        (False, True, lambda m: m / np.linalg.norm(m, axis=1, keepdims=True)),
    ],
)
def test_values_are_those_of_numpy(centre, normalise, prepare) -> None:
    human, other = twins(0)
    human = human + 3.0
    found = spectrum(human, other, resamples=50, centre=centre, normalise=normalise)
    h, o = numpy_values(prepare(human)), numpy_values(prepare(other))
    np.testing.assert_allclose(found.human, h, rtol=1e-10)
    np.testing.assert_allclose(found.other, o, rtol=1e-10)
    np.testing.assert_allclose(found.difference, 100 * (o - h) / h, rtol=1e-8)
    assert (found.centred, found.normalised) == (centre, normalise)


def test_ends_hold_what_other_samples_give() -> None:
    ratios = [np.log(numpy_values(o) / numpy_values(h)) for h, o in map(twins, range(1000, 1600))]
    truth = 100 * np.expm1(np.mean(ratios, axis=0))
    runs = [spectrum(*twins(seed), resamples=60, rng=seed) for seed in range(60)]
    at_once = np.mean([np.all((r.band_lower <= truth) & (truth <= r.band_upper)) for r in runs])
    assert at_once > 0.88  # 60 runs of a nominal .95
    head, tail = (
        100 * np.expm1(np.mean(np.array(ratios)[:, part])) for part in (slice(0, 1), slice(8, 16))
    )
    assert np.mean([not r.head.excludes(head) for r in runs]) > 0.88
    assert np.mean([not r.tail.excludes(tail) for r in runs]) > 0.88
    large = spectrum(*twins(9, n=2000), resamples=60)
    assert large.head.lower > 0 > large.tail.upper


def test_values_that_resamples_cannot_hold_have_no_intervals() -> None:
    """No difference: with an interval for all of them, the band would hold in none of the runs."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        human, other = rng.normal(size=(2, 60, 60))
        found = spectrum(human, other, resamples=60, rng=seed)
        assert found.tail is None
        assert found.n_supported == 36
        assert np.isfinite(found.band_upper[:36]).all()
        assert np.isnan(found.band_upper[36:]).all()
        assert np.isfinite(found.difference).all()
        band = (found.band_lower <= 0) & (found.band_upper >= 0)
        held.append(band[:36].all() and not found.head.excludes(0))
    assert np.mean(held) >= 0.85  # 40 runs


def test_directions_that_no_vector_uses_are_left_out() -> None:
    human, other = twins(3)
    found = spectrum(np.pad(human, ((0, 0), (0, 4))), np.pad(other, ((0, 0), (0, 4))))
    assert len(found.difference) == 16
    assert np.all(np.isfinite(found.band_lower))


def test_what_cannot_be_compared_is_refused() -> None:
    human, other = twins(5)
    with pytest.raises(InsufficientDataError, match="19 pairs; at least 20"):
        spectrum(human[:19], other[:19])
    with pytest.raises(DataError, match="resamples must be at least 50, got 10"):
        spectrum(human, other, resamples=10)
    with pytest.raises(InsufficientDataError, match="all alike"):
        spectrum(np.zeros((30, 4)), other[:30, :4])
