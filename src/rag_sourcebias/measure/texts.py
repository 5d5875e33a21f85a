"""What a data set holds of each source: documents, pairs, words, the language they are in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, Dataset, FloatArray, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError, import_extra, installing
from rag_sourcebias.core.finding import Code, Finding
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


def count_pairs(tags: TagTable) -> int:
    """Number of ``pair_id`` values shared by documents of more than one source."""
    paired = (tags.pair_codes >= 0) & (tags.source_codes >= 0)
    members = np.unique(np.stack((tags.pair_codes[paired], tags.source_codes[paired])), axis=1)
    return int(np.count_nonzero(np.bincount(members[0]) > 1))


def mean_words(corpus: Corpus) -> dict[str, float]:
    """Mean document length in words per source."""
    counts = word_counts(corpus.texts)
    codes = corpus.tags.source_codes
    return {
        source: float(counts[codes == code].mean())
        for code, source in enumerate(corpus.tags.sources)
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
        n_pairs=count_pairs(tags),
        mean_words={} if corpus is None else mean_words(corpus),
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
    NOT_LISTED = "Judged documents without a tag row: {n}. They belong to no source."
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
    outside = int(np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0))
    if outside:
        yield DataCode.NOT_LISTED(severity="warning", n=outside)
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


def require_sources(tags: TagTable, baseline: str) -> None:
    """Refuse tags that allow no comparison with the baseline.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If the baseline, or any other source, is missing.
    """
    if not tags.sources:
        raise MissingTagsError(
            f"none of {tags.n_documents} documents has a source tag; tags name it for each id, as "
            '"human" or "llm:<model>"'
        )
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    if len(tags.sources) < 2:
        raise DataError(
            f"only source {tags.sources[0]!r} is tagged; a comparison needs a second source"
        )
