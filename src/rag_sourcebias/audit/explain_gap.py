"""What the score gap of relevant pairs goes with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.explain.decomposition import decompose_gap
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.explain import GapDecomposition
from rag_sourcebias.types.explain_report import ExplainConfig

__all__ = ["MAX_PERPLEXITIES", "explain_gap"]


#: Perplexities entered together: of two models they say nearly the same.
MAX_PERPLEXITIES = 2
_CONSTANT = 1e-9


def explain_gap(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    perplexities: Mapping[str, FloatArray],
    *,
    queries: IntArray,
    config: ExplainConfig,
    notes: list[str],
) -> GapDecomposition | None:
    """Decompose the score gap by all factors for which there is enough data.

    A factor that does not vary is left out, then perplexities, which not every pair has; ``notes``
    are told.

    Parameters
    ----------
    gaps : float64 array of shape (m,)
        One entry per relevant (query, pair).
    factors, perplexities : mapping of name to float64 array of shape (m,)
        No difference is 0. Rows where one is NaN are left out.
    queries : integer array of shape (m,)

    Returns
    -------
    GapDecomposition or None
        None if there is too little data even without perplexities.
    """
    chosen = dict(list(perplexities.items())[:MAX_PERPLEXITIES])
    while True:
        try:
            return _decompose(gaps, {**factors, **chosen}, queries, config, notes)
        except InsufficientDataError as error:
            if not chosen:
                notes.append(f"the score gap is not decomposed: {error}")
                return None
            name, _ = chosen.popitem()
            notes.append(f"{name} is not part of the decomposition: {error}")


def _decompose(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    queries: IntArray,
    config: ExplainConfig,
    notes: list[str],
) -> GapDecomposition:
    kept = np.logical_and.reduce([np.isfinite(column) for column in factors.values()])
    varying = {
        name: column[kept]
        for name, column in factors.items()
        if column[kept].max(initial=-np.inf) - column[kept].min(initial=np.inf) > _CONSTANT
    }
    found = decompose_gap(
        gaps[kept],
        varying,
        queries=queries[kept],
        confidence_level=config.confidence_level,
        resamples=config.resamples,
        rng=config.seed,
    )
    notes.extend(
        f"{name} is the same for every relevant pair: not part of the decomposition"
        for name in factors
        if name not in varying
    )
    if n := int(np.count_nonzero(~kept)):
        notes.append(
            f"the decomposition is of {len(gaps) - n:,} of {len(gaps):,} relevant pairs: the "
            "others lack a perplexity"
        )
    return found
