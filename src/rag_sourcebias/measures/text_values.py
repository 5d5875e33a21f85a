"""Statistics of texts, one value per text ([W] Fig. 1, 4, 6; [K] Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.text import word_counts, words
from rag_sourcebias.measures.text_similarity import SIMILARITIES, similarity
from rag_sourcebias.types.arrays import FloatArray

__all__ = [
    "TEXT_STATISTICS",
    "References",
    "installed_statistics",
    "text_scores",
    "usable_references",
]

#: One entry per text: a reference, several of which the best counts, or None.
References = Sequence[str | Sequence[str] | None]

TEXT_STATISTICS = ("words", *SIMILARITIES)
"""``"words"`` (length), and ``"BLEU"``, ``"METEOR"``, ``"ROUGE-L"``, ``"Jaccard"``, ``"overlap"``:
how much of another text a text keeps, in [0, 1]. In the order of reports."""

_LIBRARIES = {"BLEU": "sacrebleu", "METEOR": "nltk", "ROUGE-L": "rouge_score"}


def installed_statistics() -> tuple[str, ...]:
    """Return those of :data:`TEXT_STATISTICS` that need no package which is not installed."""
    return tuple(s for s in TEXT_STATISTICS if s not in _LIBRARIES or find_spec(_LIBRARIES[s]))


def text_scores(
    name: str, texts: Sequence[str | None], references: References | None = None
) -> FloatArray:
    """Return one statistic of every text.

    Parameters
    ----------
    name : str
        ``"words"``, ``"BLEU"``, ``"METEOR"``, ``"ROUGE-L"``, ``"Jaccard"`` or ``"overlap"``.
    texts : sequence of (str or None), length n
        None where there is no text.
    references : sequence, length n, optional
        What each text is compared with; needed for all statistics but words.

    Returns
    -------
    float64 array of shape (n,)
        Words, or a similarity in [0, 1] that is 0 for a text without words; NaN where the text is
        missing or has no reference that holds a word.

    Raises
    ------
    DataError
        If the name is unknown, lengths differ, or something is not text.
    MissingExtraError
        If the library of the statistic is not installed.

    Examples
    --------
    >>> text_scores("overlap", ["a cat", None, ""], ["the cat", "x", ["y", "z"]]).tolist()
    [0.5, nan, 0.0]
    """
    for row, text in enumerate(texts):
        if not (text is None or isinstance(text, str)):
            raise DataError(
                f"text {row} is {text!r:.80}; give a string, or None where it is missing"
            )
    if name == "words":
        found = np.full(len(texts), np.nan)
        present = [row for row, text in enumerate(texts) if text is not None]
        found[present] = word_counts([text for text in texts if text is not None])
        return found
    compare = similarity(name)
    if references is None:
        raise DataError(f"{name} compares texts with references, and none were given")
    if len(references) != len(texts):
        raise DataError(f"{len(references)} references for {len(texts)} texts; need as many")
    return np.array(
        [
            np.nan
            if text is None or not wanted
            else max(compare(text, reference) for reference in wanted)
            if words(text)
            else 0.0
            for text, wanted in zip(texts, map(usable_references, references), strict=True)
        ],
        dtype=np.float64,
    )


def usable_references(reference: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the alternatives of a reference that hold at least one word, each once.

    Raises
    ------
    DataError
        If an alternative is not text.
    """
    parts = (reference,) if isinstance(reference, str) else tuple(reference or ())
    for part in parts:
        if not isinstance(part, str):
            raise DataError(f"reference {reference!r:.80} holds something that is not text")
    return tuple(dict.fromkeys(part for part in parts if words(part)))
