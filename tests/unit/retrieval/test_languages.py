"""BM25 and the audit on corpora in other languages, and languages that are refused by name."""

import numpy as np
import pytest

from rag_sourcebias import (
    Corpus,
    Dataset,
    DocTags,
    Qrels,
    Query,
    TagTable,
)
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.measure.texts import language_of, main_language
from rag_sourcebias.retrieval import BM25Spec
from rag_sourcebias.source import audit_source

# Nouns as a query has them (plural), as a document has them (singular), and what makes a text of
# the language: inflected words meet only where the stemmer is that of the language.
LANGUAGES = {
    "german": (
        "Bäume Bücher Schulen Brücken Straßen Kirchen Blumen Flaschen Maschinen Zeitungen",
        "Baum Buch Schule Brücke Straße Kirche Blume Flasche Maschine Zeitung",
        "Das ist {}, und wir haben es mit den anderen in der Stadt gesehen.",
        "Es gibt hier auch noch {}, aber das ist nicht alles, was man über die Stadt sagen kann.",
    ),
    "russian": (
        "школы церкви машины реки горы бутылки газеты книги дороги окна",
        "школа церковь машина река гора бутылка газета книга дорога окно",
        "Это {}, и мы с другими видели её в нашем городе.",
        "Здесь также есть {}, но это не всё, что можно сказать о городе и о том, что в нём.",
    ),
}


def paired(language: str, *, planted: str) -> Dataset:
    """Return ten texts by people and their rewrites; those planted say the word twice."""
    plural, singular, human, llm = LANGUAGES[language]
    texts, tags = [], []
    for i, word in enumerate(singular.split()):
        for source, sentence in (("human", human), ("llm:x", llm)):
            twice = f"{word} {word}" if source == planted else word
            texts.append(sentence.format(twice))
            tags.append((f"{source}-{i}", DocTags(source=source, pair_id=str(i))))
    n = len(singular.split())
    return Dataset(
        name=language,
        corpus=Corpus(texts=tuple(texts), tags=TagTable.from_tags(tags)),
        queries=tuple(Query(query_id=f"q{i}", text=word) for i, word in enumerate(plural.split())),
        qrels=Qrels.from_dict({f"q{i}": {f"human-{i}": 1, f"llm:x-{i}": 1} for i in range(n)}),
        design="rewrites",
    )


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_stemmer_of_a_language_finds_its_inflected_words(language: str) -> None:
    data = paired(language, planted="human")
    found = {
        name: np.diff(spec.build(data.corpus).retrieve(data.queries, 5).offsets) > 0
        for name, spec in {
            "own": BM25Spec(stemmer=language, stopwords=language),
            "english": BM25Spec(),
        }.items()
    }
    assert found["own"].mean() >= 0.7
    assert found["own"].sum() > found["english"].sum()  # the control: English settings miss some


def test_english_settings_on_another_language_are_told() -> None:
    report = audit_source(paired("german", planted="human"), [BM25Spec()], settings_strip=False)
    assert [text for text in report.warnings if "stems" in text] == [
        "100% of the documents are in german, and bm25 stems and drops words as in English: use "
        "bm25:stemmer=german,stopwords=german"
    ]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("猫坐在垫子上，它不想起来。", "chinese"),
        ("猫はマットの上に座っていて、起きたくなかった。", "japanese"),
        ("แมวนั่งอยู่บนเสื่อและไม่อยากลุกขึ้น", "Thai"),
        ("बिल्ली चटाई पर बैठी थी और उठना नहीं चाहती थी।", "Devanagari"),
    ],
)
def test_what_cannot_be_split_into_words_is_refused_by_name(text: str, language: str) -> None:
    corpus = Corpus(
        texts=(text, text, "An English sentence that is one of three, and not the most of it."),
        tags=TagTable.from_tags([(f"d{i}", DocTags()) for i in range(3)]),
    )
    with pytest.raises(DataError, match=f"67% of the documents are in {language}"):
        BM25Spec().build(corpus)
    english = ("An English sentence, with 猫 in it, that is not refused by the same rule.",)
    BM25Spec().build(Corpus(texts=english, tags=TagTable.from_tags([("d", DocTags())])))


@pytest.mark.parametrize(
    ("finnish", "hungarian", "others", "language"),
    [
        (3, 0, 22, "fi"),  # 12 % of 25 words
        (3, 0, 23, ""),
        (3, 2, 4, "fi"),  # half as many again
        (3, 3, 4, ""),
        (3, 0, 5, "fi"),  # 8 words
        (3, 0, 4, ""),
    ],
)
def test_a_language_has_enough_function_words(
    finnish: int, hungarian: int, others: int, language: str
) -> None:
    words = [*["että", "ovat", "mutta"][:finnish], *["hogy", "nem", "csak"][:hungarian]]
    words += [f"xyz{letter}" for letter in "abcdefghijklmnopqrstuvw"[:others]]
    assert language_of(" ".join(words), words) == language


def test_the_main_language_is_that_of_most_texts() -> None:
    german = "Das ist ein Satz, der mit den anderen nicht viel zu tun hat."
    english = "This is a sentence that has not much to do with the others."
    assert main_language([german, english, german]) == ("german", pytest.approx(2 / 3))


def test_eight_words_are_enough_to_tell_a_language():
    words = ["the", "cat", "and", "the", "dog", "of", "this", "house"]
    assert language_of(" ".join(words), words) == "en"
    assert language_of(" ".join(words[:7]), words[:7]) == ""
