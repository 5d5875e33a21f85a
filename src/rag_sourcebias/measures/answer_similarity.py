"""Similarity of answers to references that list several accepted wordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.references import split_references
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["reference_similarity", "split_references"]


def reference_similarity(
    references: Sequence[str | Sequence[str]],
    answers: Sequence[str],
    encoder: Encoder,
    *,
    separator: str | None = "/",
) -> FloatArray:
    """Cosine of each answer with the nearest alternative of its reference ([W] §5).

    Both are encoded as documents, each distinct text once.

    Parameters
    ----------
    references : sequence, length n
        Alternatives of each reference, as :func:`split_references` takes them.
    answers : sequence of str, length n
        An empty answer has no similarity.

    Returns
    -------
    float64 array of shape (n,)
        In [−1, 1]; NaN for an empty answer.

    Raises
    ------
    DataError
        If the lengths differ, a reference is empty (with its row), or a vector is not finite or
        has length 0.
    """
    if len(references) != len(answers):
        raise DataError(f"{len(references)} references for {len(answers)} answers")
    wanted = []
    for row, reference in enumerate(references):
        try:
            wanted.append(split_references(reference, separator=separator))
        except DataError as error:
            raise DataError(f"row {row}: {error}") from error
    filled = [row for row, answer in enumerate(answers) if answer.strip()]
    similarity = np.full(len(answers), np.nan)
    if not filled:
        return similarity
    texts = {answers[row] for row in filled} | {part for row in filled for part in wanted[row]}
    place = {text: i for i, text in enumerate(sorted(texts))}
    vectors = _unit(encoder, list(place))
    for row in filled:
        nearest = vectors[[place[part] for part in wanted[row]]] @ vectors[place[answers[row]]]
        similarity[row] = nearest.max()
    np.clip(similarity, -1.0, 1.0, out=similarity)  # rounding may exceed the bounds
    return similarity


def _unit(encoder: Encoder, texts: list[str]) -> FloatArray:
    vectors: FloatArray = np.array(encoder.encode_documents(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise DataError(
            f"encoder {encoder.name!r} returned shape {vectors.shape} for {len(texts)} texts; "
            "expected one row each"
        )
    norms = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise DataError(
            f"encoder {encoder.name!r} returned a vector that is zero or not finite for "
            f"{len(bad)} text(s), such as {texts[bad[0]][:80]!r}"
        )
    vectors /= norms[:, None]
    return vectors
