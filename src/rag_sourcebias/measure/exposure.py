"""Sources in a data set and above it: exposure, twins that rank higher, what is dependent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, Dataset, FloatArray, IntArray, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.skew import AuditConfig, DataSummary
from rag_sourcebias.measure.relevance import (
    Ties,
    places_of,
    rank_span,
    source_codes_for,
    trec_order,
)
from rag_sourcebias.measure.texts import mean_words

# Which of two versions of one document ranks higher, and by how much.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwinRanks:
    """Places of both versions of each relevant pair; arrays have one entry per (query, pair).

    Parameters
    ----------
    query : int64 array
        Index into ``qrels.query_ids``.
    baseline_row, other_row : int64 arrays
        Rows of the two documents in the tag table.
    baseline_rank, other_rank : float64 arrays
        Expected rank (mean of the tie block); NaN when not retrieved.
    baseline_score, other_score : float64 arrays
        NaN when not retrieved or when the run has no scores.
    above : float64 array
        1 when the other version ranks above the baseline's, 0 below, 0.5 tied. A version that
        was not retrieved ranks below one that was.
    n_unseen : int
        Pairs of which neither version was retrieved; they are left out.
    """

    query: IntArray
    baseline_row: IntArray
    other_row: IntArray
    baseline_rank: FloatArray
    other_rank: FloatArray
    baseline_score: FloatArray
    other_score: FloatArray
    above: FloatArray
    n_unseen: int


def count_pairs(tags: TagTable) -> int:
    """Number of ``pair_id`` values shared by documents of more than one source."""
    paired = (tags.pair_codes >= 0) & (tags.source_codes >= 0)
    members = np.unique(np.stack((tags.pair_codes[paired], tags.source_codes[paired])), axis=1)
    return int(np.count_nonzero(np.bincount(members[0]) > 1)) if members.size else 0


def other_above(baseline: FloatArray, other: FloatArray) -> FloatArray:
    """Compare scores of twins: 1 where the other is higher, 0 where lower, 0.5 where equal.

    Parameters
    ----------
    baseline, other : float array of shape (n,)
        Scores in any unit, higher is better; entry i of both is one pair of versions.

    Returns
    -------
    float64 array of shape (n,)
        Its mean is the win rate.
    """
    return np.where(other > baseline, 1.0, np.where(other < baseline, 0.0, 0.5))


def twin_ranks(
    run: Run, qrels: Qrels, tags: TagTable, *, baseline: str, other: str, ties: Ties = "expected"
) -> TwinRanks:
    """Find where both versions of each relevant document stand.

    Only pairs of which both versions are relevant to the query count, so that relevance cannot
    explain the difference.

    Raises
    ------
    DataError
        If one source holds two documents with the same ``pair_id``.
    """
    rows = tags.rows_for(qrels.doc_ids)
    left = _pair_keys(qrels, tags, rows, baseline)
    right = _pair_keys(qrels, tags, rows, other)
    keys, i, j = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    b_doc, o_doc = left[1][i], right[1][j]
    ordered = trec_order(run) if ties == "trec" else run
    b_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), b_doc)
    o_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), o_doc)
    seen = (b_place >= 0) | (o_place >= 0)
    b_place, o_place = b_place[seen], o_place[seen]
    b_span, o_span = (_span(ordered, place, ties) for place in (b_place, o_place))
    return TwinRanks(
        query=keys[seen] // max(len(tags.pair_ids), 1),
        baseline_row=rows[b_doc[seen]],
        other_row=rows[o_doc[seen]],
        baseline_rank=_mean_rank(b_span),
        other_rank=_mean_rank(o_span),
        baseline_score=_scores(ordered, b_place),
        other_score=_scores(ordered, o_place),
        above=np.where(o_span[0] < b_span[0], 1.0, np.where(o_span[0] > b_span[0], 0.0, 0.5)),
        n_unseen=int(np.count_nonzero(~seen)),
    )


def _pair_keys(
    qrels: Qrels, tags: TagTable, rows: IntArray, source: str
) -> tuple[IntArray, IntArray]:
    """Unique (query, pair) keys of the relevant documents of a source, and their qrels doc."""
    if source not in tags.sources:
        raise DataError(f"no document has source {source!r}; sources are {list(tags.sources)}")
    doc = qrels.doc_codes.astype(np.int64)
    row = rows[doc]
    wanted = np.flatnonzero(
        (qrels.grades > 0)
        & (row >= 0)
        & (tags.source_codes[row] == tags.sources.index(source))
        & (tags.pair_codes[row] >= 0)
    )
    key = (
        qrels.query_codes[wanted].astype(np.int64) * len(tags.pair_ids)
        + tags.pair_codes[row[wanted]]
    )
    unique, first = np.unique(key, return_index=True)
    if len(unique) < len(key):
        pair = tags.pair_ids[
            int(key[np.setdiff1d(np.arange(len(key)), first)[0]]) % len(tags.pair_ids)
        ]
        raise DataError(
            f"source {source!r} holds more than one document with pair_id {pair!r}; a pair has "
            "one version per source"
        )
    return unique, doc[wanted][first]


def _places(run: Run, qrels: Qrels, query: IntArray, doc: IntArray) -> IntArray:
    """Entry of the run that holds each (query, document) of the qrels, -1 when not retrieved."""
    q_map = places_of(qrels.query_ids, run.query_ids)
    d_map = places_of(qrels.doc_ids, run.doc_ids)
    if not len(query) or not len(run):
        return np.full(len(query), -1, dtype=np.int64)
    width = len(run.doc_ids)
    keys = run.query_codes * width + run.doc_codes
    order = np.argsort(keys, kind="stable")
    wanted = np.where(
        (q_map[query] >= 0) & (d_map[doc] >= 0), q_map[query] * width + d_map[doc], -1
    )
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, order[at], -1)


def _span(run: Run, place: IntArray, ties: Ties) -> tuple[IntArray, IntArray]:
    """Tie block of each entry; an entry that was not retrieved starts beyond every rank."""
    beyond = np.iinfo(np.int64).max
    start, stop = np.full(len(place), beyond), np.full(len(place), beyond)
    found = place >= 0
    start[found], stop[found] = rank_span(run, place[found], ties=ties)
    return start, stop


def _mean_rank(span: tuple[IntArray, IntArray]) -> FloatArray:
    middle = (span[0].astype(np.float64) + 1 + span[1].astype(np.float64)) / 2
    return np.where(span[0] == np.iinfo(np.int64).max, np.nan, middle)


def _scores(run: Run, place: IntArray) -> FloatArray:
    return (
        np.full(len(place), np.nan)
        if run.scores is None or not len(run)
        else np.where(place >= 0, run.scores[place].astype(np.float64), np.nan)
    )


# Exposure of each source without judgments: who gets the attention.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Share of attention per source and query.

    Parameters
    ----------
    sources : tuple of str
        Sources of the table, then ``""`` for untagged documents.
    shares : float64 array of shape (len(sources), nq)
        Each column sums to 1; queries without results are left out.
    query_index : int64 array of shape (nq,)
        Index into ``run.query_ids``.
    """

    sources: tuple[str, ...]
    shares: FloatArray
    query_index: npt.NDArray[np.int64]


def attention_weights(browsing: str, depth: int) -> FloatArray:
    """Attention on ranks 1 … depth; shape (depth,).

    Parameters
    ----------
    browsing : str
        ``"top-<k>"`` (equal attention on the first k), ``"dcg"`` (1/log2(rank + 1)), or
        ``"rbp-<p>"`` (p^(rank − 1), a reader who goes on with probability p;
        Moffat & Zobel 2008).
    """
    rank = np.arange(1, depth + 1)
    if browsing == "dcg":
        return 1 / np.log2(rank + 1)
    if match := re.fullmatch(r"top-([1-9]\d*)", browsing):
        return (rank <= int(match[1])).astype(np.float64)
    if (match := re.fullmatch(r"rbp-(0?\.\d+)", browsing)) and 0 < float(match[1]) < 1:
        return np.power(float(match[1]), rank - 1)
    raise DataError(
        f"unknown browsing model {browsing!r}; use 'top-<k>', 'dcg' or 'rbp-<p>' with 0 < p < 1"
    )


def exposure(run: Run, tags: TagTable, *, browsing: str = "dcg") -> Exposure:
    """Share of attention each source receives, over all retrieved documents.

    Documents of a tie block share its attention equally.

    Parameters
    ----------
    run : Run
        Queries without results are left out.
    tags : TagTable
        Sources of the documents; those that are not in it count as untagged.
    browsing : str
        Attention on the ranks, see :func:`attention_weights`.
    """
    return _shares(run, tags, attention_weights(browsing, int(np.diff(run.offsets).max(initial=0))))


def _shares(run: Run, tags: TagTable, weights: FloatArray) -> Exposure:
    reach = np.concatenate(([0.0], np.cumsum(weights)))
    start, stop = rank_span(run, np.arange(len(run)), ties="expected")
    n_groups = len(tags.sources) + 1
    group = source_codes_for(run.doc_ids, tags)[run.doc_codes]
    group[group < 0] = n_groups - 1
    total = np.bincount(
        run.query_codes * n_groups + group,
        weights=(reach[stop] - reach[start]) / (stop - start),
        minlength=len(run.query_ids) * n_groups,
    ).reshape(len(run.query_ids), n_groups)
    answered = np.flatnonzero(np.diff(run.offsets) > 0)
    return Exposure(
        sources=(*tags.sources, ""),
        shares=(total[answered] / total[answered].sum(axis=1, keepdims=True)).T,
        query_index=answered,
    )


def awrf(found: Exposure, target: Mapping[str, float]) -> FloatArray:
    """Attention-weighted rank fairness per query, shape (nq,), in [0, 1]; 1 is proportional.

    1 minus the Jensen–Shannon divergence (base 2) between the exposure shares and the target
    shares (Sapiezynski et al. 2019; Raj & Ekstrand 2022).

    Parameters
    ----------
    target : mapping of str to float
        Wanted share per source, summing to 1; missing sources have 0.
    """
    if strange := sorted(set(target) - set(found.sources)):
        raise DataError(f"target names {strange}; the exposure has {list(found.sources)}")
    goal = np.array([target.get(name, 0.0) for name in found.sources])
    if np.any(goal < 0):
        raise DataError(f"target shares {dict(target)} hold a negative share")
    if not np.isclose(goal.sum(), 1.0):
        raise DataError(f"target shares sum to {goal.sum():.4f}, they must sum to 1")
    middle = (found.shares + goal[:, None]) / 2

    def divergence(p: FloatArray) -> FloatArray:
        ratio = np.divide(p, middle, out=np.ones_like(middle), where=p > 0)
        return np.asarray(np.sum(p * np.log2(ratio), axis=0))

    return np.clip(1 - (divergence(found.shares) + divergence(goal[:, None])) / 2, 0.0, 1.0)


#: Source of all documents by language models once they are merged.
MERGED = "llm"
Design = Literal["rewrites", "independent", "unknown"]


def merge_llms(tags: TagTable) -> TagTable:
    """Merge all sources by language models into ``"llm"``.

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    models = [name for name in tags.sources if name.startswith("llm:")]
    if len(models) < 2:
        raise DataError(
            f"merging needs at least two sources named 'llm:<model>'; sources are "
            f"{list(tags.sources)}"
        )
    return tags.merge_sources({MERGED: models})


def summarise(
    *,
    name: str,
    design: Design,
    qrels: Qrels,
    tags: TagTable,
    corpus: Corpus | None,
    license: str,
    attribution: str,
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


def data_warnings(
    data: DataSummary,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    length_adjusted: bool = True,
    guessed: bool = False,
) -> list[str]:
    """List what a reader must know about the data before trusting a number.

    Parameters
    ----------
    length_adjusted : bool
        Whether the report has such figures.
    guessed : bool
        Tags are of relevant documents only and may be wrong: nothing is said that rests on one.
    """
    warnings: list[str] = []
    elsewhere = ", see the length-adjusted figures" if length_adjusted else ""
    if untagged := data.documents.get("", 0):
        warnings.append(
            f"{untagged} of {tags.n_documents} documents have no source tag: they keep their ranks "
            "but belong to no source"
        )
    outside = int(np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0))
    if outside and not guessed:
        warnings.append(f"{outside} judged documents have no tag row: they belong to no source")
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    for code, source in enumerate(() if guessed else tags.sources):
        having = np.unique(qrels.query_codes[(qrels.grades > 0) & (codes == code)])
        if missing := len(qrels.query_ids) - len(having):
            warnings.append(
                f"{missing} of {len(qrels.query_ids)} queries have no relevant document of "
                f"{source}: they score 0 for it in the published Relative Δ, the centred one "
                "leaves them out"
            )
    if data.n_queries < 100:
        warnings.append(
            f"{data.n_queries} queries are few: Relative Δ at cutoff {min(config.cutoffs)} is "
            "dominated by noise, read the intervals"
        )
    base = data.mean_words.get(config.baseline_source)
    for source, mean in data.mean_words.items():
        if base and source != config.baseline_source and abs(mean / base - 1) > 0.1:
            warnings.append(
                f"documents of {source} are {abs(mean / base - 1):.0%} "
                f"{'longer' if mean > base else 'shorter'} in words than those of "
                f"{config.baseline_source}: length alone can move a ranking{elsewhere}"
            )
    if data.design == "independent":
        warnings.append(
            "documents of different sources are independent texts, not rewrites: a difference may "
            "be one of content or quality, so it is skew, not source bias proper"
        )
    elif data.design == "unknown" and not data.n_pairs:
        warnings.append(
            "documents are not paired across sources: a difference may be one of content or quality"
        )
    return warnings
