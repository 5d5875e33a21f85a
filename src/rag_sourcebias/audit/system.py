"""Everything that can be said about one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.cells import across_sources, centred_delta, chance_of, others, skew_cells
from rag_sourcebias.audit.dependence import Dependence
from rag_sourcebias.errors import DataError, InsufficientDataError, MissingTagsError
from rag_sourcebias.inference import (
    clustered_mean,
    clustered_standardised_mean,
    independent_share,
    require_clusters,
    win_rate_at,
)
from rag_sourcebias.measures import (
    TwinRanks,
    awrf,
    exposure,
    overlap,
    source_codes_for,
    source_scores,
    twin_ranks,
    word_counts,
)
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import (
    AuditConfig,
    ChanceSkew,
    ExposureShare,
    SettingSkew,
    SkewCell,
    SoleCorpusCheck,
    SystemSkew,
    TwinSkew,
)

__all__ = ["Variant", "measure_system", "require_sources", "settings_row"]

_SHARED = 0.83  # of its information a query keeps: a standard error 1.1 times as large
Variant = Literal["mixed", "exact", "length-matched"]


def measure_system(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence | None = None,
    corpus: Corpus | None = None,
    settings: Mapping[str, str] | None = None,
    variant: Variant = "mixed",
    sole_corpus: tuple[SoleCorpusCheck, ...] = (),
    notes: Sequence[str] = (),
) -> SystemSkew:
    """Measure one run on the mixed corpus.

    Parameters
    ----------
    dependence : Dependence, optional
        What queries and documents share; by default documents and their versions only.
    corpus : Corpus, optional
        Texts, for length and overlap; its tag table must be ``tags``.
    """
    require_sources(tags, config)
    dependence = dependence or Dependence.of(qrels, tags, None)
    scores = source_scores(
        run,
        qrels,
        tags,
        measures=config.measures,
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    )
    compared = others(scores, config.baseline_source)
    chance = {
        other: chance_of(run, qrels, _pair_of(qrels, tags, config.baseline_source, other), config)
        for other in compared
    }
    cells = skew_cells(scores, chance, dependence, config)
    per_query = tuple(
        ChanceSkew(other=other, skew=found.skew(), base=found.base(), both=found.both)
        for other, found in chance.items()
    )
    # rewrites by several models share a pair, which then has no one twin
    paired = () if config.merge_llms else compared
    twins = [
        _twins(run, qrels, tags, config, dependence=dependence, corpus=corpus, other=other)
        for other in paired
    ]
    row = scores.measures.index(config.primary_measure)
    return SystemSkew(
        name=run.name,
        settings=dict(settings or {}),
        variant=variant,
        scores=scores,
        cells=cells,
        twins=tuple(twin for twin in twins if twin is not None),
        exposure=_exposure(run, tags, config, dependence),
        sole_corpus=sole_corpus,
        awrf=_awrf(run, tags),
        n_untagged=int(np.count_nonzero(source_codes_for(run.doc_ids, tags)[run.doc_codes] < 0)),
        n_duplicates=run.n_duplicates,
        n_empty=_empty(run, qrels),
        notes=(*notes, *_run_notes(run, qrels, config), *_shared_documents(cells, config)),
        chance=per_query,
        across=across_sources(per_query, row, config) if len(per_query) > 1 else None,
    )


def _shared_documents(cells: Sequence[SkewCell], config: AuditConfig) -> Iterator[str]:
    """Warn where documents judged for several queries widen the primary interval."""
    for cell in cells:
        found = cell.centred
        if cell.measure == config.primary_measure and found and found.information < _SHARED:
            yield (
                "queries share judged documents: against "
                f"{cell.other} that makes the standard error {found.information**-0.5:.2f} times "
                "that of independent queries (the interval takes it into account)"
            )


def _pair_of(qrels: Qrels, tags: TagTable, baseline: str, other: str) -> npt.NDArray[np.int64]:
    """Group of each judged document: 0 baseline, 1 other, -1 neither."""
    codes = source_codes_for(qrels.doc_ids, tags)
    group = np.full(len(codes), -1, dtype=np.int64)
    group[codes == tags.sources.index(baseline)] = 0
    group[codes == tags.sources.index(other)] = 1
    return group


def require_sources(tags: TagTable, config: AuditConfig) -> None:
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
            f"none of {tags.n_documents} documents has a source tag; tag them as "
            '"human" or "llm:<model>"'
        )
    if config.baseline_source not in tags.sources:
        raise DataError(
            f"no document has the baseline source {config.baseline_source!r}; sources are "
            f"{list(tags.sources)}"
        )
    if len(tags.sources) < 2:
        raise DataError(
            f"only source {tags.sources[0]!r} is tagged; a comparison needs a second source"
        )


def settings_row(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    name: str,
) -> tuple[SettingSkew, ...]:
    """Measure the primary measure alone, per other source, under another setting."""
    measure, _, k = config.primary_measure.partition("@")
    alone = replace(config, measures=(measure,), cutoffs=(int(k),))
    found = []
    for other in tags.sources:
        if other != config.baseline_source:
            pair = _pair_of(qrels, tags, config.baseline_source, other)
            delta, _ = centred_delta(chance_of(run, qrels, pair, alone), 0, dependence, alone)
            found.append(
                SettingSkew(other=other, setting=name, value=delta.value, interval=delta.interval)
            )
    return tuple(found)


def _empty(run: Run, qrels: Qrels) -> int:
    sizes = dict(zip(run.query_ids, np.diff(run.offsets).tolist(), strict=True))
    return sum(sizes.get(query, 0) == 0 for query in qrels.query_ids)


def _run_notes(run: Run, qrels: Qrels, config: AuditConfig) -> list[str]:
    notes = []
    judged = set(qrels.query_ids)
    unjudged = sum(query not in judged for query in run.query_ids)
    if unjudged:
        notes.append(f"{unjudged} queries of the run have no judgments and are left out")
    if run.scores is not None and len(run):
        top = max(config.cutoffs)
        inside = (run.ranks[1:] > 1) & (run.ranks[1:] <= top + 1)
        tied = (run.scores[1:] == run.scores[:-1]) & inside
        n_tied = len(np.unique(run.query_codes[1:][tied]))
        if n_tied:
            how = "averaged over" if config.ties == "expected" else "broken by document id"
            notes.append(
                f"{n_tied} of {len(run.query_ids)} queries have tied scores by rank {top + 1}; "
                f"ties are {how}"
            )
    return notes


def _attempt(compute: Callable[[], Interval], notes: list[str], what: str) -> Interval | None:
    """Compute an interval, or note why there is none."""
    try:
        return compute()
    except InsufficientDataError as error:
        notes.append(f"{what}: {error}")
        return None


def _twins(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    corpus: Corpus | None,
    other: str,
) -> TwinSkew | None:
    found = twin_ranks(
        run, qrels, tags, baseline=config.baseline_source, other=other, ties=config.ties
    )
    if not len(found.query) and not found.n_unseen:
        return None
    level = config.confidence_level
    notes: list[str] = []
    unit = dependence.units()[found.query]
    log_ratio, kept = _pair_texts(found, corpus)
    both = ~np.isnan(found.baseline_score) & ~np.isnan(found.other_score)
    gap = (found.other_score - found.baseline_score)[both]
    return TwinSkew(
        baseline=config.baseline_source,
        other=other,
        n_pairs=len(found.query),
        n_unseen=found.n_unseen,
        win_rate=_attempt(
            lambda: _win_rate(found, unit, tags, level),
            notes,
            "win rate",
        ),
        margin=_attempt(
            lambda: clustered_standardised_mean(gap, unit[both], confidence_level=level),
            notes,
            "score margin",
        ),
        win_rate_equal_length=None
        if corpus is None
        else _attempt(
            lambda: win_rate_at(
                found.above,
                np.column_stack((log_ratio, kept)),
                unit,
                at=np.array([0.0, float(kept.mean()) if len(kept) else 0.0]),
                confidence_level=level,
            ),
            notes,
            "win rate at equal length",
        ),
        query_index=found.query,
        other_above=found.above,
        baseline_rank=found.baseline_rank,
        other_rank=found.other_rank,
        log_length_ratio=log_ratio,
        overlap=kept,
        notes=tuple(notes),
    )


def _win_rate(
    found: TwinRanks, unit: npt.NDArray[np.int64], tags: TagTable, level: float
) -> Interval:
    """P(other above baseline), with pairs that several queries share as a factor."""
    require_clusters(len(np.unique(unit)), "queries with pairs", "judge more queries")
    pair = tags.pair_codes[found.baseline_row].astype(np.int64)
    information = independent_share(
        found.above - found.above.mean(), unit, [pair], confidence_level=level
    )
    require_clusters(
        int(information * len(np.unique(unit)) + 1e-9),
        "queries with independent pairs",
        "the others share theirs; judge more documents",
    )
    return clustered_mean(
        found.above, unit, confidence_level=level, bounds=(0.0, 1.0), information=information
    )


def _pair_texts(
    found: TwinRanks, corpus: Corpus | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ln length ratio and word overlap of each pair; empty without texts."""
    if corpus is None:
        return np.empty(0), np.empty(0)
    # A pair judged for many queries is compared once.
    pairs, where = np.unique(
        np.stack((found.baseline_row, found.other_row)), axis=1, return_inverse=True
    )
    base = [corpus.texts[row] for row in pairs[0]]
    other = [corpus.texts[row] for row in pairs[1]]
    ratio = np.log(np.maximum(word_counts(other), 1) / np.maximum(word_counts(base), 1))
    kept = np.array([overlap(o, b) for o, b in zip(other, base, strict=True)], dtype=np.float64)
    where = where.ravel()
    return ratio[where], kept[where]


def _exposure(
    run: Run, tags: TagTable, config: AuditConfig, dependence: Dependence
) -> tuple[ExposureShare, ...]:
    counts = tags.counts()
    n_docs = max(tags.n_documents, 1)
    rows = []
    unit = dependence.units(run.query_ids)
    for browsing in config.browsing:
        found = exposure(run, tags, browsing=browsing)
        for source, shares in zip(found.sources, found.shares, strict=True):
            corpus_share = counts.get(source, 0) / n_docs
            if not len(shares) or (source == "" and not shares.any() and not corpus_share):
                continue
            rows.append(
                ExposureShare(
                    source=source,
                    browsing=browsing,
                    share=float(shares.mean()),
                    corpus_share=corpus_share,
                    difference=_attempt(
                        partial(
                            clustered_mean,
                            shares - corpus_share,
                            unit[found.query_index],
                            confidence_level=config.confidence_level,
                            bounds=(-corpus_share, 1 - corpus_share),
                        ),
                        [],
                        "exposure",
                    ),
                )
            )
    return tuple(rows)


def _awrf(run: Run, tags: TagTable) -> float | None:
    found = exposure(run, tags, browsing="dcg")
    if not len(found.query_index):
        return None
    target = {name: count / tags.n_documents for name, count in tags.counts().items()}
    return float(awrf(found, target).mean())
