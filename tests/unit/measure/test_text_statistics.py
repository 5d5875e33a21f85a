from __future__ import annotations

import builtins
import importlib
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.texts import text_statistics
from rag_sourcebias.measure import texts as module
from rag_sourcebias.measure.texts import (
    SIMILARITIES,
    TEXT_STATISTICS,
    installed_statistics,
    meteor_similarity,
    similarity,
    text_scores,
    words,
)

pytest.importorskip("sacrebleu")
pytest.importorskip("nltk")
pytest.importorskip("rouge_score")

ORIGINAL = "the quick brown fox jumps over the lazy dog"
ASCII = ("a", "the", "of", "to", "cat", "dog", "runs", "running", "ran", "sleeps", "on", "mat")
VOCABULARY = (*ASCII, "ünïcode", "東京")


def sentences(seed, n=40, longest=25, vocabulary=VOCABULARY):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(vocabulary, size=rng.integers(1, longest))) for _ in range(n)]


def score(name, text, reference):
    return text_scores(name, [text], [reference])[0]


# Literal definitions


def longest_common_subsequence(a, b):
    @lru_cache(None)
    def length(i, j):
        if i == 0 or j == 0:
            return 0
        if a[i - 1] == b[j - 1]:
            return length(i - 1, j - 1) + 1
        return max(length(i - 1, j), length(i, j - 1))

    return length(len(a), len(b))


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence():
    for text, reference in zip(sentences(1), sentences(2), strict=True):
        a, b = words(text), words(reference)
        common = longest_common_subsequence(tuple(a), tuple(b))
        # F1 = 2PR / (P + R) with P = common/|a| and R = common/|b|.
        assert score("ROUGE-L", text, reference) == pytest.approx(2 * common / (len(a) + len(b)))


def test_values_are_those_of_the_libraries():
    from nltk.translate.meteor_score import single_meteor_score
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import sentence_bleu

    rouge = RougeScorer(["rougeL"])
    none = SimpleNamespace(synsets=lambda word: [])
    meteor = meteor_similarity(none)
    texts, references = (sentences(seed, vocabulary=ASCII) for seed in (3, 4))
    for text, reference in zip(texts, references, strict=True):
        bleu = sentence_bleu(text, [reference], use_effective_order=True).score / 100
        assert score("BLEU", text, reference) == pytest.approx(bleu)
        by_library = single_meteor_score(words(reference), words(text), wordnet=none)
        assert meteor(text, reference) == pytest.approx(by_library)
        f1 = rouge.score(reference, text)["rougeL"].fmeasure
        assert score("ROUGE-L", text, reference) == pytest.approx(f1)


# METEOR and WordNet


def synonym(*names):
    lemmas = [SimpleNamespace(name=lambda n=n: n) for n in names]
    return SimpleNamespace(lemmas=lambda: lemmas)


def test_meteor_uses_synonyms_where_they_are_known():
    # nltk looks synonyms up by what its stemmer left of a word, hence words that are stems.
    thesaurus = SimpleNamespace(
        synsets=lambda word: [synonym("car", "auto")] if word == "car" else []
    )
    without = meteor_similarity(SimpleNamespace(synsets=lambda word: []))
    two_of_three = 2 / 3 * (1 - 0.5 * (1 / 2) ** 3)
    assert without("the red car", "the red auto") == pytest.approx(two_of_three)
    all_three = 1 - 0.5 * (1 / 3) ** 3
    assert meteor_similarity(thesaurus)("the red car", "the red auto") == pytest.approx(all_three)


# Bad and unusual input


@pytest.mark.parametrize("name", SIMILARITIES)
def test_empty_and_missing_texts(name):
    found = text_scores(
        name,
        ["", " \n", None, "a b", "a b", "a b", "a b", "!?"],
        [ORIGINAL, ["x", "y"], ORIGINAL, None, [], "", ["", "…"], ORIGINAL],
    )
    np.testing.assert_array_equal(found, [0, 0, *[np.nan] * 5, 0])


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_best_reference_counts(name):
    references = [ORIGINAL, "a slow brown fox", "something else", ORIGINAL]
    text = "the quick brown fox jumps"
    each = [score(name, text, reference) for reference in references]
    assert score(name, text, references) == max(each) > min(each)


def test_an_unknown_name():
    with pytest.raises(DataError, match="unknown similarity 'chrF'; there are BLEU, METEOR"):
        text_scores("chrF", ["a"], ["a"])


@pytest.mark.parametrize(
    ("name", "library", "package"),
    [
        ("BLEU", "sacrebleu", "sacrebleu"),
        ("METEOR", "nltk", "nltk"),
        ("ROUGE-L", "rouge_score", "rouge-score"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(name, library, package, monkeypatch):
    def absent(wanted):
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)

    monkeypatch.setattr("rag_sourcebias.core.errors.import_module", absent)
    for made in (module._bleu, module._meteor, module._rouge_l, module._wordnet):
        made.cache_clear()
    with pytest.raises(MissingExtraError, match=rf"{package}; install it .*\[text\]") as caught:
        similarity(name)
    assert caught.value.package == package


def test_installed_statistics(monkeypatch):
    assert installed_statistics() == TEXT_STATISTICS
    values = importlib.import_module("rag_sourcebias.measure.texts")
    monkeypatch.setattr(values, "find_spec", lambda name: None if name == "nltk" else builtins)
    assert installed_statistics() == ("words", "BLEU", "ROUGE-L", "Jaccard", "overlap")


def test_texts_without_a_reference_are_counted_and_never_drawn():
    texts = {"a": ["x y", None, "z", "w v", "u"]}
    references = [["x"], ["y"], None, ["w"], ["u"]]
    everything = text_statistics(texts, references, statistics=["overlap"])[0]
    assert everything.n == 3
    assert everything.average == 1.0  # each keeps its reference
    assert everything.mean is None
    drawn = text_statistics(texts, references, statistics=["words", "overlap"], sample=2)
    assert [found.n for found in drawn] == [4, 2]
    texts["a"][4] = "t"  # values that differ have a mean with notes
    (found,) = text_statistics(texts, references, statistics=["overlap"])
    missing = InferCode.TEXTS_MISSING(n=1, of=5)
    assert found.mean.notes == (missing, InferCode.NO_REFERENCE(n=1, of=5))
