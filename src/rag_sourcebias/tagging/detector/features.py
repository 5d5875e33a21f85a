"""Texts to numbers: hashed character and word n-grams, stylometry, perplexity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.tagging.detector.stylometry import STYLE_FEATURES, stylometry
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["FeatureSettings", "Features", "Perplexity", "extract", "require_sklearn"]

_MOST_BITS = 24
#: Texts to their perplexities (positive; NaN where there is none).
Perplexity: TypeAlias = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSettings:
    """What is counted in a text.

    Parameters
    ----------
    char_bits, word_bits : int
        Character and word n-grams are hashed into ``2**bits`` columns each, so that nothing has
        to be learned or stored.
    char_longest, word_longest : int
        Longest n-gram; the shortest are 2 characters and 1 word.
    max_chars : int
        Of a longer text only the beginning is read.
    perplexity : bool
        The logarithm of the perplexity is a feature.
    """

    char_bits: int = 16
    word_bits: int = 16
    char_longest: int = 4
    word_longest: int = 2
    max_chars: int = 20_000
    perplexity: bool = False

    def __post_init__(self) -> None:
        for name in ("char_bits", "word_bits"):
            bits = getattr(self, name)
            if not 1 <= bits <= _MOST_BITS:
                raise DataError(f"{name} is {bits}; expected 1 to {_MOST_BITS}")
        if self.char_longest < 2 or self.word_longest < 1 or self.max_chars < 1:
            raise DataError(
                f"char_longest {self.char_longest}, word_longest {self.word_longest} and max_chars "
                f"{self.max_chars} must be at least 2, 1 and 1"
            )

    @property
    def n_hashed(self) -> int:
        """Columns of n-grams."""
        return int(2**self.char_bits + 2**self.word_bits)

    @property
    def n_dense(self) -> int:
        """Columns of stylometry and perplexity."""
        return len(STYLE_FEATURES) + self.perplexity


class Features(NamedTuple):
    """Features of n texts.

    ``hashed`` is a scipy CSR matrix of shape (n, n_hashed) whose two blocks have rows of length 1
    (0 for a text without n-grams); ``dense`` a float64 array of shape (n, n_dense).
    """

    hashed: Any
    dense: FloatArray


def require_sklearn() -> None:
    """Raise where scikit-learn is not installed.

    Raises
    ------
    MissingExtraError
        If it is missing.
    """
    try:
        import sklearn  # noqa: F401 - only asked for
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        raise MissingExtraError(
            package="scikit-learn", extra="detector", feature="a source or style detector"
        ) from error


def extract(
    texts: Sequence[str], settings: FeatureSettings, *, perplexity: Perplexity | None = None
) -> Features:
    """Features of texts.

    Parameters
    ----------
    texts : sequence of str, length n
    perplexity : callable, optional
        Needed exactly when ``settings.perplexity`` is set.

    Raises
    ------
    DataError
        If the perplexities are needed and not given, are not n numbers, or not positive.
    MissingExtraError
        If scikit-learn is not installed.
    """
    require_sklearn()
    from scipy import sparse
    from sklearn.feature_extraction.text import HashingVectorizer

    # Lone surrogates cannot be hashed as UTF-8.
    read = [_hashable(text[: settings.max_chars]) for text in texts]
    common = {"norm": None, "alternate_sign": False, "lowercase": False}
    chars = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(2, settings.char_longest),
        n_features=2**settings.char_bits,
        **common,
    )
    words = HashingVectorizer(
        analyzer="word",
        token_pattern=r"(?u)\w+|[^\w\s]",
        ngram_range=(1, settings.word_longest),
        n_features=2**settings.word_bits,
        **common,
    )
    blocks = [_scaled(vectorizer.transform(read)) for vectorizer in (chars, words)]
    dense = stylometry(read)
    if settings.perplexity:
        dense = np.column_stack([dense, _log_perplexity(texts, perplexity)])
    return Features(sparse.hstack(blocks, format="csr"), dense)


def _hashable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _scaled(counts: Any) -> Any:  # noqa: ANN401 - scipy matrix
    """Damp the counts and give every row length 1, so that long texts do not weigh more."""
    counts.data = np.log1p(counts.data)
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts.data /= np.repeat(np.where(length > 0, length, 1.0), np.diff(counts.indptr))
    return counts


def _log_perplexity(texts: Sequence[str], perplexity: Perplexity | None) -> FloatArray:
    if perplexity is None:
        raise DataError(
            "this detector was fitted with perplexities; give it the same perplexity function"
        )
    values = np.asarray(perplexity(texts), dtype=np.float64)
    if values.shape != (len(texts),):
        raise DataError(
            f"perplexity returned shape {values.shape} for {len(texts)} texts; expected one "
            "number per text"
        )
    bad = np.flatnonzero(~((values > 0) | np.isnan(values)))
    if len(bad):
        raise DataError(
            f"perplexity of text {bad[0]} is {values[bad[0]]!r}; expected a positive number, or "
            "NaN where there is none"
        )
    # an infinite perplexity is a very large one
    return np.log(np.minimum(values, 1e12))
