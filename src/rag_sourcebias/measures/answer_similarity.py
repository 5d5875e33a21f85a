"""Similarity of answers to references that list several accepted wordings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder

__all__ = ["reference_similarity", "split_references"]

FloatArray = npt.NDArray[np.float64]
# Numbers with one or two digits on either side: a date, a fraction, "24/7", a season "2001/02".
_WITHIN_NUMBER = re.compile(r"(?<!\d)(?:\d{1,2}/\d+|\d+/\d{1,2})(?!\d)(?:/\d+(?!\d))?")


def split_references(reference: str | Sequence[str], *, separator: str | None = "/") -> list[str]:
    """Return the alternatives of a reference answer, in order, each once.

    Parameters
    ----------
    reference : str or sequence of str
        One string such as ``"US/United States"``, or a list of alternatives, which are taken as
        they are.
    separator : str or None
        What stands between the alternatives of a string; None if nothing does. A slash inside a
        date or a fraction ("9/11", "5/18/2018") separates nothing; one inside a name ("AC/DC")
        cannot be told from a separator: give such references as a list.

    Raises
    ------
    DataError
        If nothing is left.

    Examples
    --------
    >>> split_references("1938/1933/nine eleven/9/11")
    ['1938', '1933', 'nine eleven', '9/11']
    """
    if separator == "":
        raise DataError("separator '' is empty; give the text between alternatives, or None")
    parts = [reference] if isinstance(reference, str) else list(reference)
    if isinstance(reference, str) and separator is not None:
        parts = _split(reference, separator)
    kept = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not kept:
        raise DataError(f"reference {reference!r} holds no text; at least one wording is needed")
    return kept


def _split(text: str, separator: str) -> list[str]:
    inside = [m.span() for m in _WITHIN_NUMBER.finditer(text)] if separator == "/" else []
    parts, start, at = [], 0, text.find(separator)
    while at >= 0:
        if not any(low <= at < high for low, high in inside):
            parts.append(text[start:at])
            start = at + len(separator)
        at = text.find(separator, at + len(separator))
    return [*parts, text[start:]]


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
    return np.clip(similarity, -1.0, 1.0)  # rounding may exceed the bounds


def _unit(encoder: Encoder, texts: list[str]) -> FloatArray:
    vectors = np.asarray(encoder.encode_documents(texts), dtype=np.float64)
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
    unit: FloatArray = vectors / norms[:, None]
    return unit
