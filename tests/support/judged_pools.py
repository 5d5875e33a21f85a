"""Pools of graded documents, with judges that know much, little or the contrary of them."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.judged.crc import RankedLabels, dcg_weights

GAINS = np.array([0.0, 1.0, 3.0, 7.0])
EYE = np.eye(4)


def pool(kind="doubt", n_queries=60, n_docs=12, seed=0, cutoff=10):
    """A judged pool and the human gain of every document."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0.4, 0.8, (n_queries, 1)) - 0.4 * np.log(np.arange(1, n_docs + 1))
    truth = level + rng.normal(0, 0.9, (n_queries, n_docs))
    grade = np.digitize(truth, [0.0, 1.0, 2.0])
    seen = np.digitize(0.6 * truth + 1 + rng.normal(0, 0.7, truth.shape), [0.0, 1.0, 2.0])
    probs = {
        "doubt": 0.6 * EYE[seen] + 0.1,
        "one hot": EYE[seen],
        "one vote": EYE[np.minimum(seen, 1) * 2],
        "constant": np.full((*grade.shape, 4), 0.25),
        "constant one hot": EYE[np.full_like(grade, 2)],
        "inverted": EYE[3 - grade],
        "perfect": EYE[grade],
    }[kind]
    weights = dcg_weights(np.arange(1, n_docs + 1), cutoff)
    return RankedLabels.from_grid(probs, weights, GAINS), GAINS[grade].ravel()
