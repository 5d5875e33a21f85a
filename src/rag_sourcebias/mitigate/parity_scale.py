"""A share of a parity calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.parity import ParityCalibration, ScoreMap

__all__ = ["scaled_calibration"]


def scaled_calibration(calibration: ParityCalibration, share: float) -> ParityCalibration:
    """Move scores by a share of what a calibration moves them by; 1 is the calibration itself.

    Gaps and numbers of pairs stay those measured.

    Raises
    ------
    DataError
        If the share is negative or not finite, or so large that a map of quantiles would no longer
        keep the order of scores.

    Examples
    --------
    >>> import numpy as np
    >>> found = ParityCalibration(
    ...     encoder="e", baseline="human", form="offset", sources=("llm:x",), gaps=(),
    ...     n_pairs=(), maps=(ScoreMap(knots=np.zeros(1), values=np.array([-0.004])),),
    ... )
    >>> scaled_calibration(found, 0.5).maps[0].values.tolist()
    [-0.002]
    """
    if not (np.isfinite(share) and share >= 0):
        raise DataError(f"share {share!r} of a calibration must be a number of at least 0")
    maps = []
    for source, found in zip(calibration.sources, calibration.maps, strict=True):
        values = found.knots + share * (found.values - found.knots)
        if share != 1 and not (np.diff(values) > 0).all():
            raise DataError(
                f"share {share:g} of the calibration of {source!r} would not keep the order of "
                f"scores; use a share of at most {_largest_share(found):.3g}, or form='offset'"
            )
        maps.append(found if share == 1 else ScoreMap(knots=found.knots, values=values))
    return replace(calibration, maps=tuple(maps))


def _largest_share(found: ScoreMap) -> float:
    """Share from which on the flattest part of a map would turn around, rounded down."""
    slope = float((np.diff(found.values) / np.diff(found.knots)).min())
    return max(float(np.floor(100 / (1 - slope))) / 100 - 0.01, 1.0)
