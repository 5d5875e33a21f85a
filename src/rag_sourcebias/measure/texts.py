"""Words of texts, and how much of one text another keeps, one value per text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, import_extra

# Length and lexical overlap of texts and their rewrites ([K] Fig. 3).


_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and underscores, in any script."""
    return _WORD.findall(text.lower())


def word_counts(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Words per text, shape (len(texts),)."""
    return np.fromiter((len(_WORD.findall(t)) for t in texts), np.int64, count=len(texts))


def jaccard(first: str, second: str) -> float:
    """|A ∩ B| / |A ∪ B| over distinct words, in [0, 1] ([K] Fig. 3a); 1 when both are empty."""
    a, b = set(words(first)), set(words(second))
    return len(a & b) / len(a | b) if a | b else 1.0


def overlap(rewrite: str, original: str) -> float:
    """|A ∩ B| / |B|: share of the original's words that the rewrite keeps ([K] Fig. 3b)."""
    a, b = set(words(rewrite)), set(words(original))
    return len(a & b) / len(b) if b else 1.0


def cut_to_words(text: str, n_words: int) -> str:
    """Return a text up to the end of its ``n_words``-th word; nothing if it has fewer words."""
    for i, match in enumerate(_WORD.finditer(text), start=1):
        if i == n_words:
            return text[: match.end()]
    return ""


# BLEU, METEOR and ROUGE-L of one text against another, each from its library.
# The libraries belong to the extra ``text`` and are imported when a measure is first used.


#: Takes a text and the reference that it is compared with.
Similarity = Callable[[str, str], float]

#: What compares a text with a reference, in the order of the papers.
SIMILARITIES = ("BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap")


def similarity(name: str) -> Similarity:
    """Return the function behind a name of :data:`SIMILARITIES`.

    All are in [0, 1]. BLEU is sacrebleu's sentence BLEU (13a tokens, case-sensitive, effective
    order) / 100. METEOR is nltk's, in the mode that :func:`has_synonyms` tells; it stays just
    below 1 for a text equal to its reference (penalty of one chunk). ROUGE-L is the F1 of
    rouge-score. METEOR and ROUGE-L are given our own words (:func:`~.text.words`), which serve
    any script, where rouge-score alone would see only ASCII.

    Raises
    ------
    DataError
        If there is no such name.
    MissingExtraError
        If its library is not installed.
    """
    makers: dict[str, Callable[[], Similarity]] = {
        "BLEU": _bleu,
        "METEOR": _meteor,
        "ROUGE-L": _rouge_l,
        "Jaccard": lambda: jaccard,
        "overlap": lambda: overlap,
    }
    if name not in makers:
        raise DataError(f"unknown similarity {name!r}; there are {', '.join(SIMILARITIES)}")
    return makers[name]()


def has_synonyms() -> bool:
    """Whether METEOR takes synonyms as the same word on this machine.

    nltk adds synonyms from WordNet, whose data are a separate download. They are used where they
    are found; nothing is downloaded.

    Raises
    ------
    MissingExtraError
        If nltk is not installed.
    """
    return _wordnet() is not None


def meteor_similarity(synonyms: Any) -> Similarity:  # noqa: ANN401 - nltk's corpus reader
    """Return METEOR with given synonyms ([Banerjee & Lavie 2005]; nltk's α .9, β 3, γ .5).

    Parameters
    ----------
    synonyms : WordNetCorpusReader
        Anything whose ``synsets(word)`` returns synsets with ``lemmas()``.
    """
    score = _library("nltk.translate.meteor_score", "METEOR").single_meteor_score
    # each stem is worked out once: they are most of METEOR's cost otherwise
    stem = lru_cache(maxsize=100_000)(_library("nltk.stem.porter", "METEOR").PorterStemmer().stem)
    stemmer = SimpleNamespace(stem=stem)

    return lambda text, reference: float(
        score(words(reference), words(text), stemmer=stemmer, wordnet=synonyms)
    )


@cache
def _bleu() -> Similarity:
    scorer = _library("sacrebleu.metrics", "BLEU").BLEU(effective_order=True)

    # Rounding takes a perfect score to 100.00000000000004.
    return lambda text, reference: min(
        float(scorer.sentence_score(text, [reference]).score) / 100, 1.0
    )


@cache
def _meteor() -> Similarity:
    return meteor_similarity(_wordnet() or SimpleNamespace(synsets=lambda _: ()))


@cache
def _rouge_l() -> Similarity:
    scorer = _library("rouge_score.rouge_scorer", "ROUGE-L").RougeScorer(
        ["rougeL"], tokenizer=SimpleNamespace(tokenize=words)
    )

    return lambda text, reference: float(scorer.score(reference, text)["rougeL"].fmeasure)


@cache
def _wordnet() -> Any | None:  # noqa: ANN401 - nltk's corpus reader
    wordnet = _library("nltk.corpus", "METEOR").wordnet
    try:
        wordnet.ensure_loaded()
    except LookupError:  # nltk looks in its folders only; it downloads nothing
        return None
    return wordnet


def _library(module: str, feature: str) -> Any:  # noqa: ANN401 - an untyped package
    package = module.partition(".")[0].replace("_", "-")
    return import_extra(module, package, "text", feature)


# Statistics of texts, one value per text ([W] Fig. 1, 4, 6; [K] Fig. 3).


#: One entry per text: a reference, several of which the best counts, or None.
References = Sequence[str | Sequence[str] | None]

#: ``"words"`` (length), and ``"BLEU"``, ``"METEOR"``, ``"ROUGE-L"``, ``"Jaccard"``, ``"overlap"``:
#: how much of another text a text keeps, in [0, 1]. In the order of reports.
TEXT_STATISTICS = ("words", *SIMILARITIES)

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
    if wrong := [i for i, text in enumerate(texts) if not (text is None or isinstance(text, str))]:
        raise DataError(
            f"text {wrong[0]} is {texts[wrong[0]]!r:.80}; give a string, or None where it is "
            "missing"
        )
    if name == "words":
        counts = [np.nan if text is None else len(_WORD.findall(text)) for text in texts]
        return np.array(counts, dtype=np.float64)
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
    if not all(isinstance(part, str) for part in parts):
        raise DataError(f"reference {reference!r:.80} holds something that is not text")
    return tuple(dict.fromkeys(part for part in parts if words(part)))
