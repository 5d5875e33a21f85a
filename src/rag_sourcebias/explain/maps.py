"""Both sources in a plane: main components, t-SNE ([K] Fig. 4) or UMAP."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.explain.geometry import map_vectors
from rag_sourcebias.explain.vectors import checked_pairs, unit_rows
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain import VectorMap

__all__ = ["MapMethod", "map_sources", "require_map"]

MapMethod = Literal["pca", "tsne", "umap"]

_MIN_PAIRS = 10
_NEIGHBOURS = 15
_TSNE_PERPLEXITY = 30.0
_TSNE_SPREAD, _UMAP_SPREAD = 1e-4, 10.0  # of the start, as both libraries choose it
_LIBRARIES = {"pca": ("", ""), "tsne": ("sklearn", "scikit-learn"), "umap": ("umap", "umap-learn")}


def map_sources(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    method: MapMethod = "pca",
    seed: int = 0,
) -> VectorMap:
    """Place both versions of documents in a plane.

    t-SNE (perplexity 30, or a third of the texts less one) and UMAP (15 neighbours) work on
    vectors of length 1, start from the two main components and take a fixed seed: on one machine
    and with one release of their library, the map is the same every time. Only near neighbours
    mean something there: distances between groups do not.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
        Row i of both is one pair.
    method : {"pca", "tsne", "umap"}

    Raises
    ------
    DataError
        If the method is unknown, or as :func:`~rag_sourcebias.explain.geometry.map_vectors`.
    InsufficientDataError
        If t-SNE or UMAP is asked for with fewer than 10 pairs.
    MissingExtraError
        If scikit-learn (t-SNE) or umap-learn is not installed.
    """
    require_map(method)
    if method == "pca":
        return map_vectors(human_vectors, other_vectors)
    human, other = (
        unit_rows(side) for side in checked_pairs(human_vectors, other_vectors, at_least=1)
    )
    n = len(human)
    if n < _MIN_PAIRS:
        raise InsufficientDataError(
            f"a {method} map needs at least {_MIN_PAIRS} pairs, there are {n}",
            n=n,
            n_needed=_MIN_PAIRS,
        )
    flat = map_vectors(human, other)
    start = np.concatenate((flat.human, flat.other))
    start = start / start[:, 0].std()
    both = np.concatenate((human, other))
    places = _tsne(both, start, seed) if method == "tsne" else _umap(both, start, seed)
    return VectorMap(human=places[:n], other=places[n:], variance_shares=(), method=method)


def require_map(method: str) -> None:
    """Raise unless a method is known and its library is installed.

    Raises
    ------
    DataError, MissingExtraError
        As :func:`map_sources`.
    """
    if method not in _LIBRARIES:
        raise DataError(f"map method {method!r} is not one of {', '.join(_LIBRARIES)}")
    module, package = _LIBRARIES[method]
    if module and find_spec(module) is None:
        raise MissingExtraError(package=package, extra="maps", feature=f"a map by {method}")


def _tsne(vectors: FloatArray, start: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    model = TSNE(
        perplexity=min(_TSNE_PERPLEXITY, (len(vectors) - 1) / 3),
        init=_TSNE_SPREAD * start,
        random_state=seed,
    )
    return np.asarray(model.fit_transform(vectors), dtype=np.float64)


def _umap(vectors: FloatArray, start: FloatArray, seed: int) -> FloatArray:
    with warnings.catch_warnings():
        # On import: that Tensorflow is not there, which is not needed.
        warnings.simplefilter("ignore")
        from umap import UMAP

        model = UMAP(
            n_neighbors=min(_NEIGHBOURS, len(vectors) - 1),
            init=(_UMAP_SPREAD / np.abs(start).max() * start).astype(np.float32),
            random_state=seed,
            n_jobs=1,  # what makes it the same every time
        )
        return np.asarray(model.fit_transform(vectors), dtype=np.float64)
