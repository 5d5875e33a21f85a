"""Whether rewrites say what their originals say: checks of pairs, and a corpus of sound ones."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from rag_sourcebias.core.data import BoolArray, Dataset, FloatArray, Qrels
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.measure.texts import jaccard, language_of, overlap
from rag_sourcebias.pairs.data import MIN_PAIRS, PAIR_FLAGS, PairChecks, PairThresholds, Texts
from rag_sourcebias.pairs.numbers import CapitalCounts, compare_names, compare_numbers
from rag_sourcebias.pairs.rewriting import clean_rewrite
from rag_sourcebias.retrieval.cache import normalized

# How much of a rewrite was copied, and how much of it repeats itself.


#: Words in a row that are compared.
RUN = 5
# Chinese, Japanese, Korean and Thai put no spaces between words: each character counts.
_NO_SPACES = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_UNIT = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")


def units(text: str) -> list[str]:
    """Lower-cased words, and single characters in scripts without spaces."""
    return _UNIT.findall(text.lower())


def copied_share(original: Sequence[str], rewrite: Sequence[str]) -> float:
    """Share of the rewrite's runs of five units that stand in the original.

    Shorter rewrites are compared as a whole.
    """
    if len(rewrite) < RUN:
        return float(len(rewrite) > 0 and list(rewrite) == list(original))
    known = set(_runs(original, RUN))
    runs = _runs(rewrite, RUN)
    return sum(run in known for run in runs) / len(runs)


def repeated_share(text: Sequence[str]) -> float:
    """Share of the text's runs of four units that stood in it before, in [0, 1)."""
    runs = _runs(text, 4)
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def _runs(text: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return list(zip(*(text[i:] for i in range(length)), strict=False))


# What a language model leaves in place of, or around, a rewrite.


_CLOSING = re.compile(
    r"(?:\bI hope this (?:helps|meets|rewrite|version)|\blet me know if (?:you|there|this)"
    r"|\bfeel free to (?:ask|let me)|\bnote: (?:I|this rewrite|the rewritten)\b"
    r"|\bI(?:'ve|’ve| have) (?:rewritten|rephrased|paraphrased|tried to|kept|maintained|made)\b"
    r"[^\n]{0,60}\b(?:text|passage|version|original|meaning|tone))[^\n]{0,200}\s*\Z",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"<\|[a-z_]{2,20}\|>|\[/?INST\]|</?s>|</?think>|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|\A\s*(?:assistant|output)\s*:|\{\{[\w -]+\}\}",
    re.IGNORECASE,
)
# Models that degenerate write thousands of empty lines, on which patterns take hours.
_SPACE = re.compile(r"\s{3,}")
_LETTER = re.compile(r"[^\W_]{4,}")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
_LONGEST = 120  # characters of what a model said that fit on a line of a report


def is_refusal(original: str, rewrite: str) -> bool:
    """Whether the rewrite declines the request, where the original does not read like that."""
    return clean_rewrite(_SPACE.sub("\n\n", rewrite), original=original).problem == "refusal"


def leftover(original: str, rewrite: str) -> str:
    """Return what a model said around the text, or a mark of its chat template; "" if nothing.

    What :func:`clean_rewrite` would strip (but quotes), and remarks that it leaves because to
    strip them could be wrong: the first line of it, as it was written.
    """
    rewrite = _SPACE.sub("\n\n", rewrite)
    cleaned = clean_rewrite(rewrite, original=original)
    if set(cleaned.steps) - {"quotes"}:
        before, _, after = rewrite.partition(cleaned.text) if cleaned.text else (rewrite, "", "")
        return _first_line(before) or _first_line(after) or ", ".join(cleaned.steps)
    for pattern in (_CLOSING, _MARKS):
        found = pattern.search(rewrite)
        if found and found.group().strip().lower() not in original.lower():
            return _first_line(found.group())
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:_LONGEST]


def stops_open(original: str, rewrite: str) -> bool:
    """Whether the rewrite ends in the middle of a sentence though the original does not.

    A rewrite with emoji, or that nowhere ends a sentence with a full stop, may end without one.
    """
    last, last_original = rewrite.rstrip()[-1:], original.rstrip()[-1:]
    if not last or not last_original or _closes(last) or not _closes(last_original):
        return False
    # A list's last item and a heading end without a full stop, as other lines of the text do.
    lines = [line.rstrip() for line in rewrite.splitlines() if line.strip()]
    if any(not _closes(line[-1]) and line[-1] not in ",:;-–—" for line in lines[:-1]):
        return last in ",;-–—("
    stops = last in ",;:-–—(" or re.search(r"[.!?。！？]\s", rewrite) is not None
    return stops and not _EMOJI.search(rewrite)


def _closes(character: str) -> bool:
    """Whether a text may end with the character: closing punctuation, or a symbol as emoji are."""
    kind = unicodedata.category(character)
    return character not in ",:;、，" and kind in ("So", "Sk", "Pe", "Pf", "Po", "Mn", "Cf")


def kept_to_the_end(original: Sequence[str], rewrite: Sequence[str]) -> float:
    """How much of the original's last quarter is kept, against its first three quarters.

    Words of at least four letters are compared by their first five. 1 where both parts are kept
    alike, near 0 where the rewrite stops before the original ends; 1 also where the last quarter
    has fewer than six such words of its own.
    """
    stems = [word[:5] for word in original if _LETTER.fullmatch(word)]
    cut = len(stems) - len(stems) // 4
    first = set(stems[:cut])
    last = set(stems[cut:]) - first
    if len(last) < 6:
        return 1.0
    there = {word[:5] for word in rewrite}
    kept_first, kept_last = len(first & there) / len(first), len(last & there) / len(last)
    return min(kept_last / kept_first, 1.0) if kept_first else 1.0


# Which values and texts of a pair are beyond a threshold.


# The end of a rewrite that is as long as the original was reworded, not cut off.
_CUT_LENGTH = 0.9


def flags_of(
    pairs: Sequence[tuple[str, str]],
    words: Sequence[tuple[list[str], list[str]]],
    found: PairChecks,
) -> BoolArray:
    """Return the flags of every pair, shape (n, len(PAIR_FLAGS))."""
    thresholds = found.thresholds
    flags = {name: np.zeros(len(pairs), dtype=np.bool_) for name in PAIR_FLAGS}
    flags |= _beyond(found)
    if thresholds.writing:
        flags["refusal"] = _marked(is_refusal(human, other) for human, other in pairs)
        flags["leftover"] = _marked(found.leftovers)
        flags["truncated"] |= _marked(stops_open(human, other) for human, other in pairs)
        flags["copy"] = _marked(a == b for a, b in words)
        flags["near_copy"] &= ~flags["copy"]
    if thresholds.language:
        flags["language"] = _marked(a != b and a and b for a, b in found.languages)
    # Without words on one side nothing else can be said about a pair.
    empty = _marked(not (a and b) for a, b in words)
    flags = {name: flag & ~empty for name, flag in flags.items()} | {"empty": empty}
    return np.stack([flags[name] for name in PAIR_FLAGS], axis=1)


def _marked(rows: Iterable[object]) -> BoolArray:
    return np.array([bool(row) for row in rows], dtype=np.bool_)


def _beyond(found: PairChecks) -> dict[str, BoolArray]:
    thresholds, values = found.thresholds, found.values
    # a check that is off has a limit that no value is beyond
    limits = {
        field.name: np.nan if (limit := getattr(thresholds, field.name)) is None else limit
        for field in fields(thresholds)
    }
    lowest, highest = thresholds.length_ratio or (np.nan, np.nan)
    by_chance = np.nan if found.by_chance is None else found.by_chance
    ratio, cosine = values["length_ratio"], values["cosine"]
    likeness = np.where(np.isnan(cosine), values["overlap"], cosine)
    count = {name: np.array([len(row) for row in rows]) for name, rows in found.facts.items()}
    missing, added = count["names_missing"], count["names_added"]
    numbers = (values["numbers_kept"] < limits["numbers_kept"]) | (count["numbers_added"] > 0)
    names = (values["names_kept"] < limits["names_kept"]) & (missing > 1)
    swapped = (missing > 0) & (added > 0)
    return {
        "length": (ratio < lowest) | (ratio > highest),
        "near_copy": values["copied"] > limits["copied"],
        "loop": values["repeated"] > limits["repeated"],
        "truncated": (values["end_kept"] < limits["end_kept"]) & (ratio < _CUT_LENGTH),
        "unrelated": (likeness <= by_chance) | (cosine < limits["cosine"]),
        "numbers": numbers & (thresholds.numbers_kept is not None),
        "names": (names | swapped | (added > 1)) & (thresholds.names_kept is not None),
    }


# Is every rewrite a rewrite: the checks of a paired corpus ([K] §2).


Pairs = Sequence[tuple[str, str]]
Words = Sequence[tuple[list[str], list[str]]]
_MISMATCHED = 2_000  # pairs at most: their quantile no longer moves, and each takes time


def check_pairs(
    human_texts: Sequence[str],
    other_texts: Sequence[str],
    *,
    pair_ids: Sequence[str],
    encoder: Encoder | None = None,
    thresholds: PairThresholds | None = None,
) -> PairChecks:
    """Check that texts and their rewrites say the same, pair by pair.

    Nothing is downloaded. What a flag means and why its threshold is what it is, is told by
    :class:`PairThresholds`. The checks look for facts that were lost, not for facts that were
    turned ("rose" for "fell" passes), and numbers and months spelled out are read in English only.

    Parameters
    ----------
    human_texts, other_texts : sequence of str, length n
        Originals and rewrites, in the same order.
    pair_ids : sequence of str, length n
        Unique.
    encoder : Encoder, optional
        Both texts are encoded as documents, and "unrelated" is judged by their cosine instead of
        by the words they share.
    thresholds : PairThresholds, optional

    Notes
    -----
    Share of planted faults found on 400 pairs of nq-utd (Llama-2) and 504 of nq-utd-styles: a
    number dropped .96 and .88 (a number that also stands elsewhere in the text is not missed), a
    name swapped for another .88 and .93, cut off after 40–80 % of the words .97 and .94, in
    another language 1 and 1, verbatim copies, copies with one word changed, preambles and loops .99
    to 1. Refusals are found by their wording (7 of 10 phrasings), all others by their length or
    by having nothing to do with the original. Precision where half the pairs are faulty is .87 for
    numbers, .93 for names and .99 or more for the others, real faults counted as false alarms.
    Untouched, 21 % of the pairs of nq-utd are flagged (15 % numbers, 6 % names, 2 % broken) and
    2 % of nq-utd-styles; of 32 such flags for numbers and names on nq-utd read by eye, 24 were
    losses. Names found in 20 passages read by eye: precision .99, recall .87 over name words
    (missed are names of common words, such as Great in Great Depression).

    Names are told from capitals counted over all texts given, and "unrelated" from mismatched
    pairs among them, so that a pair can be judged differently in another file.
    """
    thresholds = thresholds or PairThresholds()
    pairs = list(zip(human_texts, other_texts, strict=True))
    words = [(units(human), units(other)) for human, other in pairs]
    languages = tuple(
        (language_of(human, a), language_of(other, b))
        for (human, other), (a, b) in zip(pairs, words, strict=True)
    )
    kept, facts = _facts(pairs, languages)
    cosine, mismatched = _alike(pairs, encoder)
    by_chance = None
    if thresholds.chance is not None and len(mismatched) >= MIN_PAIRS:
        by_chance = float(np.quantile(mismatched, thresholds.chance))
    found = PairChecks(
        pair_ids=tuple(pair_ids),
        values={**_values(pairs, words), **kept, "cosine": cosine},
        facts=facts,
        languages=languages,
        leftovers=tuple(leftover(human, other) for human, other in pairs),
        flags=np.zeros((len(pairs), len(PAIR_FLAGS)), dtype=np.bool_),
        thresholds=thresholds,
        by_chance=by_chance,
    )
    return replace(found, flags=flags_of(pairs, words, found))


def _values(pairs: Pairs, words: Words) -> dict[str, FloatArray]:
    """Return the values that need nothing but the two texts, shape (n,) each."""
    names = ("length_ratio", "jaccard", "overlap", "copied", "repeated", "end_kept")
    table = np.array(
        [
            (
                len(b) / len(a) if a else np.nan,
                jaccard(human, other),
                overlap(other, human),
                copied_share(a, b),
                max(repeated_share(b) - repeated_share(a), 0.0),
                kept_to_the_end(a, b),
            )
            for (human, other), (a, b) in zip(pairs, words, strict=True)
        ],
        dtype=np.float64,
    ).reshape(len(pairs), len(names))
    return dict(zip(names, table.T.copy(), strict=True))


def _facts(
    pairs: Pairs, languages: Sequence[tuple[str, str]]
) -> tuple[dict[str, FloatArray], dict[str, Texts]]:
    """Numbers and names: shares kept, and lists of what is missing or was added."""
    counts = CapitalCounts(text for pair in pairs for text in pair)
    numbers = [compare_numbers(human, other) for human, other in pairs]
    names = [
        # in German every noun has a capital
        (0, (), ()) if language == "de" else compare_names(human, other, counts)
        for (human, other), (language, _) in zip(pairs, languages, strict=True)
    ]
    kept, facts = {}, {}
    for kind, found in (("numbers", numbers), ("names", names)):
        kept[f"{kind}_kept"] = np.array(
            [1 - len(missing) / n if n else np.nan for n, missing, _ in found], dtype=np.float64
        )
        facts[f"{kind}_missing"] = tuple(missing for _, missing, _ in found)
        facts[f"{kind}_added"] = tuple(added for _, _, added in found)
    return kept, facts


def _alike(pairs: Pairs, encoder: Encoder | None) -> tuple[FloatArray, FloatArray]:
    """Cosine of every pair (NaN without an encoder), and likeness of mismatched pairs.

    Each rewrite is set against the original half the file away; where that is the same text
    (several rewrites of one original), nothing is.
    """
    n = len(pairs)
    partner = [(i + n // 2) % n for i in range(n)]
    other = [pairs[i][0] != pairs[j][0] for i, j in enumerate(partner)]
    if encoder is None:
        rows = [i for i in range(0, n, max(n // _MISMATCHED, 1)) if other[i]]
        return np.full(n, np.nan), np.array(
            [overlap(pairs[i][1], pairs[partner[i]][0]) for i in rows], dtype=np.float64
        )
    if not n:
        return np.zeros(0), np.zeros(0)
    human, rewritten = (
        normalized(encoder.encode_documents(texts).astype(np.float64))
        for texts in zip(*pairs, strict=True)
    )
    twins = np.einsum("ij,ij->i", human, rewritten)
    return twins, np.einsum("ij,ij->i", human[partner], rewritten)[other]


# A paired corpus without the pairs that are no rewrites.


def sound_pairs(
    dataset: Dataset, checks: Mapping[str, PairChecks], *, baseline_source: str = "human"
) -> Dataset:
    """Keep both versions of the pairs that are not broken, with their queries and judgments.

    Queries without a relevant document left are left out. Where several sources were checked, a
    document stays if its pair is sound in all of them: so every source is judged on the same ones.

    Parameters
    ----------
    dataset : Dataset
    checks : mapping of str to PairChecks
        Of each source to keep, as :func:`~rag_sourcebias.pairs.checks.check_pairs` returns them, by
        the pair ids of the corpus.
    baseline_source : str

    Raises
    ------
    InsufficientDataError
        If no pair is left.
    """
    sound = [
        {i for i, bad in zip(found.pair_ids, found.broken, strict=True) if not bad}
        for found in checks.values()
    ]
    kept = set.intersection(*sound) if sound else set()
    if not kept:
        raise InsufficientDataError(
            f"{dataset.name}: no pair is sound in {', '.join(checks) or 'any source'}; there is "
            "nothing to audit with"
        )
    sources = {baseline_source, *checks}
    tags = dataset.corpus.tags
    rows = [
        row
        for row, doc_id in enumerate(dataset.corpus.doc_ids)
        if (tag := tags.get(doc_id)).pair_id in kept and tag.source in sources
    ]
    corpus = dataset.corpus.take(np.array(rows, dtype=np.intp))
    qrels = _of(dataset.qrels, frozenset(corpus.doc_ids))
    judged = frozenset(qrels.query_ids)
    return replace(
        dataset,
        corpus=corpus,
        queries=tuple(query for query in dataset.queries if query.query_id in judged),
        qrels=qrels,
    )


def _of(qrels: Qrels, doc_ids: frozenset[str]) -> Qrels:
    rows = [
        (qrels.query_ids[query], qrels.doc_ids[doc], int(grade))
        for query, doc, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
        if qrels.doc_ids[doc] in doc_ids
    ]
    answered = {query for query, _, grade in rows if grade > 0}
    return Qrels.from_rows(row for row in rows if row[0] in answered)
