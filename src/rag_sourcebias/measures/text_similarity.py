"""BLEU, METEOR and ROUGE-L of one text against another, each from its library.

The libraries belong to the extra ``text`` and are imported when a measure is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.measures.text import jaccard, overlap, words

__all__ = ["SIMILARITIES", "Similarity", "meteor_mode", "meteor_similarity", "similarity"]

#: Takes a text and the reference that it is compared with.
Similarity = Callable[[str, str], float]

#: What compares a text with a reference, in the order of the papers.
SIMILARITIES = ("BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap")

_STEMS = 100_000


def similarity(name: str) -> Similarity:
    """Return the function behind a name of :data:`SIMILARITIES`.

    All are in [0, 1]. BLEU is sacrebleu's sentence BLEU (13a tokens, case-sensitive, effective
    order) / 100. METEOR is nltk's, in the mode that :func:`meteor_mode` states; it stays just
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


def meteor_mode() -> str:
    """Say which words METEOR takes as the same on this machine.

    nltk adds synonyms from WordNet, whose data are a separate download. They are used where they
    are found; nothing is downloaded.

    Raises
    ------
    MissingExtraError
        If nltk is not installed.
    """
    if _wordnet() is None:
        return "METEOR matches equal words and equal stems (WordNet's synonyms are not installed)"
    return "METEOR matches equal words, equal stems and WordNet's synonyms"


def meteor_similarity(synonyms: Any) -> Similarity:  # noqa: ANN401 - nltk's corpus reader
    """Return METEOR with given synonyms ([Banerjee & Lavie 2005]; nltk's α .9, β 3, γ .5).

    Parameters
    ----------
    synonyms : WordNetCorpusReader
        Anything whose ``synsets(word)`` returns synsets with ``lemmas()``.
    """
    score = _library("nltk.translate.meteor_score", "METEOR").single_meteor_score
    stemmer = _Stemmer()

    def meteor(text: str, reference: str) -> float:
        return float(score(words(reference), words(text), stemmer=stemmer, wordnet=synonyms))

    return meteor


@cache
def _bleu() -> Similarity:
    scorer = _library("sacrebleu.metrics", "BLEU").BLEU(effective_order=True)

    def bleu(text: str, reference: str) -> float:
        # Rounding takes a perfect score to 100.00000000000004.
        return min(float(scorer.sentence_score(text, [reference]).score) / 100, 1.0)

    return bleu


@cache
def _meteor() -> Similarity:
    return meteor_similarity(_wordnet() or _NoSynonyms())


@cache
def _rouge_l() -> Similarity:
    library = _library("rouge_score.rouge_scorer", "ROUGE-L")
    scorer = library.RougeScorer(["rougeL"], tokenizer=_Words())

    def rouge_l(text: str, reference: str) -> float:
        return float(scorer.score(reference, text)["rougeL"].fmeasure)

    return rouge_l


@cache
def _wordnet() -> Any | None:  # noqa: ANN401 - nltk's corpus reader
    wordnet = _library("nltk.corpus", "METEOR").wordnet
    try:
        wordnet.ensure_loaded()
    except LookupError:  # nltk looks in its folders only; it downloads nothing
        return None
    return wordnet


class _Words:
    """Our words as a tokenizer of rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        return words(text)


class _Stemmer:
    """Porter's stems, each worked out once: they are most of METEOR's cost otherwise."""

    def __init__(self) -> None:
        stem = _library("nltk.stem.porter", "METEOR").PorterStemmer().stem
        self.stem: Callable[[str], str] = lru_cache(maxsize=_STEMS)(stem)


class _NoSynonyms:
    def synsets(self, word: str) -> Sequence[Any]:  # noqa: ARG002 - nltk's signature
        return ()


def _library(module: str, feature: str) -> ModuleType:
    name = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        package = name.replace("_", "-")
        raise MissingExtraError(package=package, extra="text", feature=feature) from error
