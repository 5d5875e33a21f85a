"""Maps of both sources: planted groups stay apart, and a map is the same every time."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.explain import vectors as maps
from rag_sourcebias.explain.vectors import map_sources

N = 60


def groups(seed: int = 0):
    """Three topics far apart; the other version lies near its human one."""
    rng = np.random.default_rng(seed)
    topic = np.arange(N) % 3
    centres = 5 * rng.standard_normal((3, 20))
    human = centres[topic] + rng.standard_normal((N, 20))
    return human, human + 0.1 * rng.standard_normal((N, 20)), topic


def separated(found, topic) -> float:
    """Share of texts whose nearest other text is of their topic."""
    both, twice = np.concatenate((found.human, found.other)), np.tile(topic, 2)
    distances = np.linalg.norm(both[:, None] - both[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return float(np.mean(twice[distances.argmin(axis=1)] == twice))


def test_neighbours_stay_neighbours_and_maps_repeat() -> None:
    human, other, topic = groups()
    found = map_sources(human, other, method="tsne", seed=3)
    assert found.method == "tsne"
    assert found.human.shape == found.other.shape == (N, 2)
    assert found.variance_shares == ()
    assert separated(found, topic) > 0.95
    again = map_sources(human, other, method="tsne", seed=3)
    np.testing.assert_array_equal(found.human, again.human)
    np.testing.assert_array_equal(found.other, again.other)
    # Twins stay close, as t-SNE keeps near neighbours.
    apart = np.linalg.norm(found.human - found.other, axis=1)
    anyone = np.linalg.norm(found.human - np.roll(found.other, 1, axis=0), axis=1)
    assert np.median(apart) < 0.3 * np.median(anyone)


def test_what_is_refused(monkeypatch) -> None:
    human, other, _ = groups()
    with pytest.raises(DataError, match="map method 'som' is not one of pca, tsne"):
        map_sources(human, other, method="som")
    with pytest.raises(InsufficientDataError, match="a tsne map needs at least 10 pairs"):
        map_sources(human[:9], other[:9], method="tsne")
    monkeypatch.setattr(maps, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"a map by tsne needs scikit-learn.*\[maps\]"):
        map_sources(human, other, method="tsne")
    assert importlib.util.find_spec("sklearn") is not None
