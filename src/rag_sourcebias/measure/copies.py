"""Copies: near-duplicates within a source, found by words or given, that count as one document."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, FloatArray, IntArray, Qrels, Run, TagTable, coded
from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.documents import read_groups

# Words. Scripts that write no spaces have runs of two characters (Han, kana) or three instead.


_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # to Han
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}][^\W{_UNSPACED}]+")
_SPACELESS = re.compile(f"[{_UNSPACED}]")


def compared_words(text: str) -> list[str]:
    """Return the words by which texts are compared, lower-cased and in their order."""
    words = _WORD.findall(text.lower())
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
    hashed = []
    for row, text in enumerate(texts):
        words = np.array([code_of[word] for word in compared_words(text)], dtype=np.uint64)
        if len(words):
            same[row] = row_of.setdefault(" ".join(text.lower().split()), row)
        compared = same[row] == row and len(words) >= _FEWEST
        hashed.append(_shingles(words if compared else words[:0]))
    first, second = _alike(hashed)

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
    def of(cls, group: IntArray, tags: TagTable, qrels: Qrels) -> Copies:
        """Count documents of one group and one source as one of them.

        It is one that was judged, and has a version of another source, where there is such.

        Parameters
        ----------
        group : int64 array of shape (len(tags),)
            At least 0; -1 for documents without copies.
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
            findings=tuple(_said(first[several], tags)),
        )

    @classmethod
    def by_words(cls, texts: Sequence[str], tags: TagTable, qrels: Qrels) -> Copies:
        """Find the near-duplicates of each source."""
        group = np.full(len(texts), -1, dtype=np.int64)
        for code in range(len(tags.sources)):
            rows = np.flatnonzero(tags.source_codes == code)
            group[rows] = rows[near_duplicates([texts[row] for row in rows.tolist()])]
        return cls.of(group, tags, qrels)

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


def _said(first: IntArray, tags: TagTable) -> Iterator[Finding]:
    """Say of each source how many documents are copies; ``first`` stands for each of them."""
    if not len(first):
        yield CopyCode.NONE_FOUND()
    for code, source in enumerate(tags.sources):
        group = first[tags.source_codes[first] == code]
        if len(group):
            yield CopyCode.FOUND(
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
