"""What a data set holds of each source: documents, pairs, copies, words, their language."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import count
from types import SimpleNamespace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import (
    BoolArray,
    Corpus,
    Dataset,
    FloatArray,
    IntArray,
    Qrels,
    Run,
    TagTable,
    coded,
)
from rag_sourcebias.core.errors import DataError, import_extra, installing
from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.documents import read_groups
from rag_sourcebias.measure.relevance import source_codes_for

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


def words_kept(pair_codes: npt.NDArray[np.integer[Any]], counts: npt.NDArray[Any]) -> IntArray:
    """Return the words of the shortest version of each text; all of one without a pair (-1)."""
    shortest = np.full(int(pair_codes.max(initial=-1)) + 2, np.iinfo(np.int64).max)
    np.minimum.at(shortest, pair_codes, counts)
    return np.where(pair_codes >= 0, shortest[pair_codes], counts)


def cut_texts(texts: Sequence[str], kept: npt.NDArray[Any]) -> tuple[str, ...]:
    """Return texts with so many words of each."""
    found = list(texts)
    for row in np.flatnonzero(word_counts(texts) > kept):
        found[row] = cut_to_words(found[row], int(kept[row]))
    return tuple(found)


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


def missing_statistics() -> Iterator[str]:
    """Say which of :data:`TEXT_STATISTICS` are left out for want of a package."""
    installed = installed_statistics()
    if missing := [name for name in TEXT_STATISTICS if name not in installed]:
        yield (
            f"text statistics lack {', '.join(missing)}, whose libraries are not installed; "
            f"install them with: {installing('text')}"
        )


def text_scores(name: str, texts: Sequence[str | None], references: References = ()) -> FloatArray:
    """Return one statistic of every text.

    Parameters
    ----------
    name : str
        ``"words"``, ``"BLEU"``, ``"METEOR"``, ``"ROUGE-L"``, ``"Jaccard"`` or ``"overlap"``.
    texts : sequence of (str or None), length n
        None where there is no text.
    references : sequence, length n
        What each text is compared with; none for words.

    Returns
    -------
    float64 array of shape (n,)
        Words, or a similarity in [0, 1] that is 0 for a text without words; NaN where the text is
        missing or has no reference that holds a word.

    Raises
    ------
    DataError
        If the name is unknown.
    MissingExtraError
        If the library of the statistic is not installed.

    Examples
    --------
    >>> text_scores("overlap", ["a cat", None, ""], ["the cat", "x", ["y", "z"]]).tolist()
    [0.5, nan, 0.0]
    """
    if name == "words":
        counts = [np.nan if text is None else len(_WORD.findall(text)) for text in texts]
        return np.array(counts, dtype=np.float64)
    compare = similarity(name)
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
    """Return the alternatives of a reference that hold at least one word, each once."""
    parts = (reference,) if isinstance(reference, str) else reference or ()
    return tuple(dict.fromkeys(part for part in parts if words(part)))


# Which language a text is in, from its script and its commonest words.


#: Commonest words of each language, without those that are content words of another.
FUNCTION_WORDS = {
    "en": "the of and to in is that for it with as was on by are this from at which be or have "
    "has not they their you your were an its can also but more will would so my me we our just",
    "de": "der die das und ist nicht mit den von zu ein eine einer eines dem auf für sich auch als "
    "wird wurde sind bei nach im dass werden ich oder durch über zum zur noch kann aber",
    "fr": "le la les des et est une un dans pour que qui sur au aux avec plus ne pas par ce cette "
    "du de sont été se son sa ses nous vous mais ou leur il elle",
    "es": "el la los las y en de que un una es por con para del se al como más su fue está son lo "
    "no pero sus le ha este esta entre cuando también",
    "it": "il la le gli di che e un una per con del della dei delle è sono non nel nella alla al "
    "da come più si anche ma questo questa ha stato lo dal",
    "pt": "o os as um uma de que e do da dos das em no na para com por não é mais como ao foi são "
    "sua seu mas ou também pela pelo está",
    "nl": "de het een en van is dat op te zijn voor met niet aan er om ook als bij door maar naar "
    "wordt werd deze hun kan heeft uit",
    "sv": "och att det en ett som på är för av med till den har inte om var kan från men så de vid "
    "också eller",
    "da": "og at det en et som på er for af med til den har ikke om var kan fra men de ved også "
    "eller blev",
    "pl": "i w na z do się jest nie to że o jak przez od dla są oraz po ale jego który która być "
    "za tym",
    "tr": "ve bir bu da de için ile olarak olan çok daha gibi en ne kadar sonra var ancak olduğu",
    "id": "yang dan di dari untuk dengan pada ini itu dalam adalah ke tidak akan oleh juga sebagai "
    "atau telah",
    "vi": "và của là có trong được cho một các những với không đã này để người từ khi",
    "fi": "ja on ei että se oli ovat mutta myös kuin hän joka sen kun tai ole",
    "cs": "a se v na je že s z do o to jako pro by k jsou ale také který nebo",
    "ro": "și în de la cu un o pe că nu este sunt din pentru mai care al ale au fost prin",
    "hu": "a az és hogy nem egy is de van volt meg csak mint ez már vagy",
    "ru": "и в не на что он с как это по но из у за от к то его для была был так также или",
    "uk": "і в не на що він з як це по але та у за від до його для була був так також або",
}  # fmt: skip
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)

_SCRIPT_LETTERS = {
    name: re.compile(f"[{span}]")
    for name, span in {
        "Latin": "a-zà-öø-ÿ\u0100-\u024f\u1e00-\u1eff",
        "Cyrillic": "\u0400-\u052f",
        "Greek": "\u0370-\u03ff",
        "Arabic": "\u0600-\u06ff\u0750-\u077f",
        "Hebrew": "\u0590-\u05ff",
        "Devanagari": "\u0900-\u097f",
        "Bengali": "\u0980-\u09ff",
        "Tamil": "\u0b80-\u0bff",
        "Thai": "\u0e00-\u0e7f",
        "ko": "\uac00-\ud7af\u1100-\u11ff",
        "ja": "\u3040-\u30ff",
        "zh": "\u4e00-\u9fff\u3400-\u4dbf",
    }.items()
}
_ASCII = re.compile(r"[\x00-\x7f“”‘’–—…]*")
_MIN_WORDS = 8
_MIN_SHARE = 0.12
_MIN_LEAD = 1.5


def language_of(text: str, words: Sequence[str]) -> str:
    """Name the language of a text, or "" where it cannot be told.

    Japanese, Chinese and Korean are told by script. In Latin and Cyrillic the language is the one
    to which most function words belong: at least 12 % of all words (running text has 30–50 %,
    other languages' share of the same words is below 10 %) and half as many again as of the next.
    For other scripts the script's own name stands for the language. Texts of fewer than 8 words
    in Latin or Cyrillic are not told apart.

    Parameters
    ----------
    text : str
    words : sequence of str
        Its words, lower-cased.

    Returns
    -------
    str
        Two-letter code, a script ("Arabic"), or "" (too short, or a language without a list).
    """
    script = _script(text)
    if script not in ("Latin", "Cyrillic"):
        return script
    counts = Counter(language for word in words for language in _LANGUAGES_OF.get(word, ()))
    if len(words) < _MIN_WORDS or not counts:
        return ""
    (best, hits), *rest = counts.most_common(2)
    if hits < _MIN_SHARE * len(words) or (rest and hits < _MIN_LEAD * rest[0][1]):
        return ""
    return best


def _script(text: str) -> str:
    if _ASCII.fullmatch(text):
        return "Latin"
    lowered = text.lower()
    counts = {name: len(letters.findall(lowered)) for name, letters in _SCRIPT_LETTERS.items()}
    # Japanese mixes kana with Chinese characters; Chinese has no kana.
    if counts["ja"] * 10 >= counts["zh"] > 0:
        counts["ja"] += counts["zh"]
    # A Chinese character stands for two or three letters.
    counts["zh"] *= 2
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


_NAMES = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
    "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "pl": "polish",
    "tr": "turkish", "id": "indonesian", "vi": "vietnamese", "fi": "finnish", "cs": "czech",
    "ro": "romanian", "hu": "hungarian", "ru": "russian", "uk": "ukrainian", "ko": "korean",
    "ja": "japanese", "zh": "chinese",
}  # fmt: skip
_SAMPLE = 400  # texts looked at: shares to about 5 points


def main_language(texts: Sequence[str]) -> tuple[str, float]:
    """Return the commonest language of some texts, and the share of texts in it.

    Up to 400 texts, evenly spaced, are looked at.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    language : str
        Lower-case English name ("german"), a script where several languages share it ("Arabic"),
        or "" where none could be told.
    share : float
        Of the texts looked at, in [0, 1].

    Examples
    --------
    >>> main_language(["Das ist ein Satz, der mit den anderen nicht viel zu tun hat."] * 3)
    ('german', 1.0)
    """
    looked_at = [text[:2_000] for text in texts[:: max(1, len(texts) // _SAMPLE)]]
    counts = Counter(language_of(text, _WORD.findall(text.lower())) for text in looked_at)
    counts.pop("", None)
    if not counts:
        return "", 0.0
    (code, n), *_ = counts.most_common(1)
    return _NAMES.get(code, code), n / len(looked_at)


# What a data set holds of each source, and what of it limits a comparison.


Design = Literal["rewrites", "independent", "unknown"]


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """The data behind a report.

    Parameters
    ----------
    documents : mapping of str to int
        Number of documents per source; ``""`` counts untagged ones.
    n_pairs : int
        Groups of documents that are versions of one another across sources.
    mean_words : mapping of str to float
        Mean document length in words per source; empty when no texts were given.
    origins : mapping of str to int
        Documents by how their tags are known; empty where all are declared.
    """

    name: str
    design: Design
    n_queries: int
    n_judgments: int
    documents: Mapping[str, int]
    n_pairs: int
    mean_words: Mapping[str, float]
    license: str = ""
    attribution: str = ""
    origins: Mapping[str, int] = field(default_factory=dict)


def count_pairs(
    pair_codes: npt.NDArray[np.integer[Any]], source_codes: npt.NDArray[np.integer[Any]]
) -> int:
    """Number of pairs shared by documents of more than one source; -1 is no pair, or source."""
    paired = (pair_codes >= 0) & (source_codes >= 0)
    members = np.unique(np.stack((pair_codes[paired], source_codes[paired])), axis=1)
    return int(np.count_nonzero(np.bincount(members[0]) > 1))


def mean_words(
    counts: npt.NDArray[np.integer[Any]], sources: Sequence[str], codes: npt.NDArray[Any]
) -> dict[str, float]:
    """Mean document length in words per source."""
    return {
        source: float(counts[codes == code].mean())
        for code, source in enumerate(sources)
        if np.any(codes == code)  # a sub-corpus keeps the names of sources it no longer holds
    }


def summarise(
    *,
    name: str,
    design: Design,
    qrels: Qrels,
    tags: TagTable,
    corpus: Corpus | None,
    license: str = "",
    attribution: str = "",
) -> DataSummary:
    """Describe the data of a report."""
    return DataSummary(
        name=name,
        design=design,
        n_queries=len(qrels.query_ids),
        n_judgments=len(qrels),
        documents=tags.counts(),
        origins=_origins(tags),
        n_pairs=count_pairs(tags.pair_codes, tags.source_codes),
        mean_words={}
        if corpus is None
        else mean_words(word_counts(corpus.texts), tags.sources, tags.source_codes),
        license=license,
        attribution=attribution,
    )


def _origins(tags: TagTable) -> dict[str, int]:
    found = Counter(filter(None, tags.origins or ()))
    return {} if found.keys() <= {"declared"} else {str(k): n for k, n in sorted(found.items())}


def summarise_dataset(dataset: Dataset) -> DataSummary:
    """Describe a data set."""
    return summarise(
        name=dataset.name,
        design=dataset.design,
        qrels=dataset.qrels,
        tags=dataset.corpus.tags,
        corpus=dataset.corpus,
        license=dataset.license,
        attribution=dataset.attribution,
    )


class Compared(Protocol):
    """Settings of a comparison of sources."""

    @property
    def baseline_source(self) -> str:
        """Source that the others are compared with."""

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """Cutoffs k."""


class DataCode(Code, home="data"):
    """What limits a comparison of sources."""

    UNTAGGED = (
        "Documents without a source tag: {n} of {n_all}. They keep their ranks but belong to no "
        "source."
    )
    NOT_LISTED = (
        "Judged documents that neither the corpus nor the tags hold: {n} of {n_all}, such as "
        "“{first:short}”. They belong to no source; where all documents count together they are in "
        "the ideal ranking, as in trec_eval."
    )
    NO_RELEVANT = (
        "Queries without a relevant document of {source}: {n} of {n_all}. They score 0 for it in "
        "the published Relative Δ; the centred one leaves them out."
    )
    FEW_QUERIES = (
        "{n:query is|queries are} few: Relative Δ at cutoff {cutoff} is dominated by noise, read "
        "the intervals."
    )
    LENGTH = (
        "Documents of {source} have {ratio:2} times as many words as those of {baseline}: length "
        "alone can move a ranking."
    )
    INDEPENDENT = (
        "Documents of different sources are independent texts, not rewrites: a difference may be "
        "one of content or quality, so it is skew, not source bias proper."
    )
    UNPAIRED = (
        "Documents are not paired across sources: a difference may be one of content or quality."
    )


_FEW = 100  # queries below which one of them moves Relative Δ at a small cutoff by points
_LONGER = 0.1  # of the baseline's mean length, in either direction


def data_warnings(
    data: DataSummary, qrels: Qrels, tags: TagTable, config: Compared, *, guessed: bool = False
) -> tuple[Finding, ...]:
    """Return what a reader must know about the data before trusting a number.

    Parameters
    ----------
    guessed : bool
        Tags are of relevant documents only and may be wrong: nothing is said that rests on one.
    """
    found: list[Finding] = []
    untagged = data.documents.get("", 0)
    if untagged:
        found.append(DataCode.UNTAGGED(severity="warning", n=untagged, n_all=tags.n_documents))
    if not guessed:
        found += _about_tags(qrels, tags)
    found += _about_texts(data, config)
    return tuple(found)


def _about_tags(qrels: Qrels, tags: TagTable) -> Iterator[Finding]:
    judged = [qrels.doc_ids[code] for code in np.unique(qrels.doc_codes).tolist()]
    outside = [doc_id for doc_id in judged if doc_id not in tags.row_of]
    if outside:
        yield DataCode.NOT_LISTED(
            severity="warning", n=len(outside), n_all=len(judged), first=outside[0]
        )
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    n_queries = len(qrels.query_ids)
    for code, source in enumerate(tags.sources):
        having = np.unique(qrels.query_codes[(qrels.grades > 0) & (codes == code)])
        if len(having) < n_queries:
            yield DataCode.NO_RELEVANT(
                severity="warning", source=source, n=n_queries - len(having), n_all=n_queries
            )


def _about_texts(data: DataSummary, config: Compared) -> Iterator[Finding]:
    if data.n_queries < _FEW:
        yield DataCode.FEW_QUERIES(severity="warning", n=data.n_queries, cutoff=min(config.cutoffs))
    baseline = config.baseline_source
    for source, mean in data.mean_words.items():
        ratio = mean / (data.mean_words.get(baseline) or mean or 1)
        if abs(ratio - 1) > _LONGER:
            yield DataCode.LENGTH(severity="warning", source=source, ratio=ratio, baseline=baseline)
    if data.design == "independent":
        yield DataCode.INDEPENDENT(severity="warning")
    elif data.design == "unknown" and not data.n_pairs:
        yield DataCode.UNPAIRED(severity="warning")


# Copies: near-duplicates within a source, found by words or given, that count as one document.
# Words. Scripts that write no spaces have runs of two characters (Han, kana) or three instead.


_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # to Han
    "\U00020000-\U0003ffff"
)
_COMPARED_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}][^\W{_UNSPACED}]+")
_SPACELESS = re.compile(f"[{_UNSPACED}]")


def compared_words(text: str) -> list[str]:
    """Return the words by which texts are compared, lower-cased and in their order."""
    words = _COMPARED_WORD.findall(text.lower())
    if not _SPACELESS.search(text):
        return words
    return [part for word in words for part in _parts(word)]


def _parts(word: str) -> list[str]:
    """Return the parts of a run without spaces that stand for words, and other words whole."""
    if not _SPACELESS.match(word):
        return [word]
    size = 2 if word[0] >= "\u3000" else 3
    return [word[i : i + size] for i in range(max(len(word) - size + 1, 1))]


def paired_overlap(vectors: Any, first: IntArray, second: IntArray) -> FloatArray:  # noqa: ANN401
    """Return the scalar products of pairs of rows of a sparse array."""
    return np.asarray(vectors[first].multiply(vectors[second]).sum(axis=1), np.float64).ravel()


# Near-duplicates: texts that share runs of three words (shingles, Broder 1997). Which pairs may do
# so is told by a few shingles of each text; how many they share, by all of them.


_RUN = 3
COPY_SHARE = 0.4
"""Share of the shingles of two texts that near-duplicates have in common (Jaccard).

One word in six changed leaves (5/6)³ = .58 of the shingles of either text, .41 of both together;
one in ten leaves .57. Abstracts of NFCorpus on one subject have .3 at most.
"""
# The smallest hashes of a text (min-wise sampling): two copies share 13 of 32 on average. Those
# that share a tenth are compared; of pairs with just the share above that misses .004.
_SKETCH, _LEAST_SHARE = 32, 0.1
# A shingle of more texts is boilerplate; to compare all of its texts would take their square.
_MOST_TEXTS = 200
# More wordings than this are forms of a template, each with content of its own, and no copies.
_MOST_WORDINGS = 20
# So are fewer that share less than half of their numbers, as invoices do. A copy of which every
# tenth word was changed keeps at least half of 4 numbers in .996 of cases, of 3 in .97.
_FEWEST_NUMBERS = 4
_FEWEST = 10  # words of texts that are compared: some words in common say little of shorter ones
_BLOCK = 4_096  # rows of a product at a time, which bounds its memory
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def near_duplicates(texts: Sequence[str]) -> IntArray:
    """Return for each text the row of the first one of its group: its own where it is alone.

    Texts that share :data:`COPY_SHARE` of their shingles, or are the same but for case and space,
    are of one group, and so is what either is a near-duplicate of. A text without a word is alone.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    code_of: defaultdict[str, int] = defaultdict(count().__next__)
    row_of: dict[str, int] = {}
    same = np.arange(len(texts))
    hashed, numbers = [], []
    for row, text in enumerate(texts):
        parts = compared_words(text)
        words = np.array([code_of[word] for word in parts], dtype=np.uint64)
        digits = [code_of[word] for word in parts if word.isdigit()]
        numbers.append(np.unique(np.array(digits, dtype=np.uint64)))
        if len(words):
            same[row] = row_of.setdefault(" ".join(text.lower().split()), row)
        compared = same[row] == row and len(words) >= _FEWEST
        hashed.append(_shingles(words if compared else words[:0]))
    first, second = _alike(hashed)
    sizes = np.array([len(each) for each in numbers])
    fewer = np.minimum(sizes[first], sizes[second])
    shared = paired_overlap(_incidence(numbers), first, second)
    kept = (fewer < _FEWEST_NUMBERS) | (2 * shared >= fewer)
    first, second = first[kept], second[kept]

    def joined(first: IntArray, second: IntArray) -> IntArray:
        graph = csr_array((np.ones(len(first)), (first, second)), shape=(len(texts), len(texts)))
        numbers: IntArray = connected_components(graph, directed=False)[1]
        return numbers

    wording = joined(first, second)
    apart = np.bincount(wording)[wording[first]] <= _MOST_WORDINGS
    first, second = first[apart], second[apart]
    group = joined(np.append(first, np.arange(len(texts))), np.append(second, same))
    _, opens = np.unique(group, return_index=True)
    first_of: IntArray = opens[group]
    return first_of


def _shingles(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each different run of words, rising."""
    n = max(len(words) - _RUN + 1, 0)
    runs = np.stack([words[at : at + n] for at in range(_RUN)])
    mixed = (runs * _FACTORS[:, None]).sum(axis=0, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _FACTORS[0]
    return np.unique(mixed ^ (mixed >> np.uint64(32)))


def _alike(hashed: Sequence[npt.NDArray[np.uint64]]) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows that share enough of their shingles."""
    first, second = _candidates([each[:_SKETCH] for each in hashed])
    if not len(first):
        return first, second
    rows, place = np.unique(np.concatenate((first, second)), return_inverse=True)
    every = [hashed[row] for row in rows]
    sizes = np.array([len(each) for each in every])
    one, other = place[: len(first)], place[len(first) :]
    shared = paired_overlap(_incidence(every), one, other)
    enough = shared >= COPY_SHARE * (sizes[one] + sizes[other] - shared)
    return first[enough], second[enough]


def _candidates(sketches: Sequence[npt.NDArray[np.uint64]]) -> tuple[IntArray, IntArray]:
    found = [np.empty((2, 0), dtype=np.int64)]
    sizes = np.array([len(each) for each in sketches])
    incidence = _incidence(sketches, most=_MOST_TEXTS)
    for start in range(0, len(sketches), _BLOCK):
        product = (incidence[start : start + _BLOCK] @ incidence.T).tocoo()
        first, second = product.row.astype(np.int64) + start, product.col.astype(np.int64)
        union = sizes[first] + sizes[second] - product.data
        kept = (first < second) & (product.data >= _LEAST_SHARE * union)
        found.append(np.stack((first[kept], second[kept])))
    first, second = np.concatenate(found, axis=1)
    return first, second


def _incidence(hashed: Sequence[npt.NDArray[np.uint64]], most: int | None = None) -> Any:  # noqa: ANN401 - a csr_array
    """Return which text has which shingle, of those in at least two and at most so many texts."""
    from scipy.sparse import csr_array

    row = np.repeat(np.arange(len(hashed)), [len(each) for each in hashed])
    different, column = np.unique(np.concatenate([*hashed, _NONE]), return_inverse=True)
    texts = np.bincount(column, minlength=len(different))
    kept = (texts > 1) & (texts <= (most or len(hashed)))
    kept = kept[column]
    ones = np.ones(np.count_nonzero(kept), dtype=np.float32)
    shape = (len(hashed), len(different))
    return csr_array((ones, (row[kept], column[kept])), shape=shape)


_NONE = np.empty(0, dtype=np.uint64)


# What copies change: a group of one source counts as one document, at its best rank and with the
# highest grade.


class CopyCode(Code, home="copies"):
    """What is said of copies."""

    FOUND = (
        "{n} of {n_all:document|documents} of {source} text are near-duplicates of one another, in "
        "{groups:group|groups}; each group counts as one document, at its best rank and with its "
        "highest grade."
    )
    ALIKE = (
        "{n} of {n_all:document|documents} of {source} text share most of their words, in "
        "{groups:group|groups}; each group counts as one document, at its best rank and with its "
        "highest grade. If they are pages of one form and no copies, count them one by one with "
        '--copies no (in Python copies="no").'
    )
    FORMS = (
        "{n} of {n_all:document|documents} of {source} text share most of their words, in "
        "{groups:group|groups}, but are relevant to different queries: they count one by one, as "
        "pages of one form."
    )
    NONE_FOUND = "No document is a near-duplicate of another one of its source."
    NO_TEXTS = (
        "Near-duplicates within a source, which can pass for a skew, were not looked for: there "
        "are no texts. Say which documents are copies with --copies <file> (in Python copies=)."
    )
    NOT_COLLAPSED = "Near-duplicates within a source count one by one."


_DRAWINGS = 5  # of one the chance is felt, in the width of an interval


@dataclass(frozen=True, kw_only=True, eq=False)
class Copies:
    """Documents that count as one, within a source.

    Parameters
    ----------
    stands_for : mapping of str to str
        Id of each copy to that of the document that it is counted as.
    findings : tuple of Finding
        How many there are, per source.
    """

    stands_for: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        group: IntArray,
        tags: TagTable,
        qrels: Qrels,
        *,
        code: CopyCode = CopyCode.FOUND,
        also: tuple[Finding, ...] = (),
    ) -> Copies:
        """Count documents of one group and one source as one of them.

        It is one that was judged, and has a version of another source, where there is such.

        Parameters
        ----------
        group : int64 array of shape (len(tags),)
            At least 0; -1 for documents without copies.
        code : CopyCode
            What is said of them.
        also : tuple of Finding
            What is said beside it.
        """
        grouped = np.flatnonzero((group >= 0) & (tags.source_codes >= 0))
        source = tags.source_codes[grouped].astype(np.int64)
        _, joint = np.unique(group[grouped] * len(tags.sources) + source, return_inverse=True)
        judged = tags.rows_for(qrels.doc_ids)
        unjudged = ~np.isin(grouped, judged)
        order = np.lexsort((tags.pair_codes[grouped] < 0, unjudged, joint))
        _, opens = np.unique(joint[order], return_index=True)
        first = grouped[order[opens]][joint]
        several = np.bincount(joint)[joint] > 1
        ids = tags.doc_ids
        return cls(
            stands_for={
                ids[row]: ids[of]
                for row, of in zip(grouped[several], first[several], strict=True)
                if row != of
            },
            findings=(*_said(code, first[several], tags), *also) or (CopyCode.NONE_FOUND(),),
        )

    @classmethod
    def by_words(cls, texts: Sequence[str], tags: TagTable, qrels: Qrels) -> Copies:
        """Find the near-duplicates of each source.

        Those that judgments tell apart are none, but for the same text twice.
        """
        group = np.full(len(texts), -1, dtype=np.int64)
        for code in range(len(tags.sources)):
            rows = np.flatnonzero(tags.source_codes == code)
            group[rows] = rows[near_duplicates([texts[row] for row in rows.tolist()])]
        apart = np.flatnonzero(_told_apart(group, tags, qrels))
        forms = tuple(_said(CopyCode.FORMS, group[apart], tags))
        row_of: dict[tuple[int, str], int] = {}
        for row in apart.tolist():
            same = int(group[row]), " ".join(texts[row].lower().split())
            group[row] = row_of.setdefault(same, row)
        return cls.of(group, tags, qrels, code=CopyCode.ALIKE, also=forms)

    @classmethod
    def given(cls, groups: Mapping[str, str], tags: TagTable, qrels: Qrels) -> Copies:
        """Take the group of each document that has copies.

        Raises
        ------
        DataError
            If none of the documents has a tag.
        """
        require_common("document", Ids("the copies", list(groups)), Ids("the tags", tags.doc_ids))
        rows = tags.rows_for(list(groups))
        group = np.full(len(tags), -1, dtype=np.int64)
        _, codes = coded(groups.values())
        group[rows[rows >= 0]] = codes[rows >= 0]
        return cls.of(group, tags, qrels)

    def ranked(self, run: Run, rng: np.random.Generator | None = None) -> Run:
        """Return a run in which the first copy of each group is left, and the others are not.

        Parameters
        ----------
        rng : Generator, optional
            Draws which copy is left, for each query and group. It may be one that was not
            retrieved: a single document has no better chance.
        """
        if self.stands_for.keys().isdisjoint(run.doc_ids):
            return run
        doc_ids, code = coded(self.stands_for.get(name, name) for name in run.doc_ids)
        key = run.query_codes * len(doc_ids) + code[run.doc_codes]
        _, cell, present = np.unique(key, return_inverse=True, return_counts=True)
        order = np.argsort(cell, kind="stable")
        place = np.empty(len(key), dtype=np.int64)  # among the copies of one query and group
        place[order] = np.arange(len(key)) - np.repeat(np.cumsum(present) - present, present)
        left = np.zeros(len(present), dtype=np.int64)
        if rng is not None:
            copies = Counter(self.stands_for.values())
            sizes = np.array([copies[name] + 1 for name in doc_ids])
            left[cell] = sizes[code[run.doc_codes]]
            left = rng.integers(left)
        kept = place == left[cell]
        counted = Run.from_arrays(
            query_ids=run.query_ids,
            query_codes=run.query_codes[kept],
            doc_codes=code[run.doc_codes[kept]],
            doc_ids=doc_ids,
            scores=None if run.scores is None else run.scores[kept],
            name=run.name,
        )
        return replace(counted, n_duplicates=run.n_duplicates, notes=run.notes)

    def draws(self, run: Run, seed: int) -> list[Run]:
        """Return runs in which any copy of each group is left; none where the run holds none."""
        if self.ranked(run) is run:
            return []
        return [self.ranked(run, np.random.default_rng((seed, i))) for i in range(_DRAWINGS)]

    def judged(self, qrels: Qrels) -> Qrels:
        """Return judgments in which each group has the highest grade of its documents."""
        if not self.stands_for:
            return qrels
        place = {name: at for at, name in enumerate(qrels.doc_ids)}
        counted_as = np.arange(len(place))
        for name in self.stands_for.keys() & place.keys():
            counted_as[place[name]] = place[self.stands_for[name]]
        doc = counted_as[qrels.doc_codes]
        key = qrels.query_codes.astype(np.int64) * len(place) + doc
        order = np.lexsort((-qrels.grades, key))
        _, opens = np.unique(key[order], return_index=True)
        kept = np.sort(order[opens])
        return replace(
            qrels,
            query_codes=qrels.query_codes[kept],
            doc_codes=doc[kept].astype(np.int32),
            grades=qrels.grades[kept],
        )


def _told_apart(group: IntArray, tags: TagTable, qrels: Qrels) -> BoolArray:
    """Return which documents are of a group of which judgments say that it has no copies.

    Of a document that is relevant to a query, another one of its group says that it is a copy if
    it is relevant too, and that it is none if it was judged not to be, or is relevant to other
    queries alone. The first weighs two, since the second may only say that few were judged: one
    error, or two documents of a query of their own each, are not enough against what the texts say.
    """
    row = tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    known = (row >= 0) & (group[row] >= 0)
    row, relevant = row[known], qrels.grades[known] > 0
    wanted = np.bincount(row[relevant], minlength=len(group)) > 0
    of_group = np.bincount(group[wanted], minlength=len(group))  # relevant to some query
    cell = group[row] * len(qrels.query_ids) + qrels.query_codes[known]
    cells, place = np.unique(cell, return_inverse=True)
    here = np.bincount(place, weights=relevant)
    refused = np.bincount(place, weights=~relevant & ~wanted[row])
    of_cell = cells // len(qrels.query_ids)
    balance = here * (2 * here - 1 - of_group[of_cell] - 2 * refused)
    told: BoolArray = np.bincount(of_cell, weights=balance, minlength=len(group))[group] < -2
    return told


def _said(said: CopyCode, first: IntArray, tags: TagTable) -> Iterator[Finding]:
    """Say of each source how many documents are copies; ``first`` stands for each of them."""
    for code, source in enumerate(tags.sources):
        group = first[tags.source_codes[first] == code]
        if len(group):
            yield said(
                severity="warning",
                source=source,
                n=len(group),
                n_all=tags.counts()[source],
                groups=len(np.unique(group)),
            )


def copies_of(
    asked: Any,  # noqa: ANN401 - whatever a user has
    tags: TagTable,
    qrels: Qrels,
    corpus: Corpus | None,
) -> Copies:
    """Return the copies that were given, or found by words, or none if asked is ``"no"``.

    Parameters
    ----------
    asked : {"words", "no"}, ``{document: group}``, frame or path
    corpus : Corpus or None
        The documents of ``tags`` with their texts, where there are any.
    """
    if not isinstance(asked, str) or asked not in ("words", "no"):
        return Copies.given(read_groups(asked), tags, qrels)
    if asked == "no":
        return Copies(findings=(CopyCode.NOT_COLLAPSED(),))
    if corpus is None:
        return Copies(findings=(CopyCode.NO_TEXTS(severity="warning"),))
    return Copies.by_words(corpus.texts, tags, qrels)
