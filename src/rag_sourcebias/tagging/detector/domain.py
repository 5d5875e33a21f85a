"""Which texts are of the kind that was labelled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.tagging.detector.features import Features

__all__ = ["Domain", "fit_domain"]

_SHARE = 0.01  # of the labelled documents themselves that count as unlike the others


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """Texts whose n-grams are about as common as those of the labelled documents.

    Another language, genre or length is seen, a finer change is not: on essays a detector for
    encyclopedia passages still feels at home.

    Parameters
    ----------
    centre : float32 array of shape (n_hashed,)
        Mean direction of the labelled documents' n-grams, of length 1.
    limit : float
        Cosine with it below which a text is unlike them.
    """

    centre: npt.NDArray[np.float32]
    limit: float

    def holds(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether each text is alike; shape ``(n,)``. A text without n-grams is not."""
        cosine = features.hashed @ self.centre
        alike: npt.NDArray[np.bool_] = (cosine >= self.limit) & (cosine > 0)
        return alike


def fit_domain(features: Features) -> Domain:
    """Learn the kind of the labelled documents; 1 % of them fall outside."""
    mean = np.asarray(features.hashed.mean(axis=0)).ravel()
    centre = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
    return Domain(centre=centre, limit=float(np.quantile(features.hashed @ centre, _SHARE)))
