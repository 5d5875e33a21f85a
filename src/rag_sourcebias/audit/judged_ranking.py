"""Intervals for rankings whose documents a judge labelled and people labelled for some queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.judged_parts import JudgedValues, judged_mean, resampled_curves
from rag_sourcebias.audit.judged_queries import query_intervals
from rag_sourcebias.errors import CalibrationError, DataError, InsufficientDataError
from rag_sourcebias.intervals.checks import check_random_labels
from rag_sourcebias.intervals.comparison import (
    difference_interval,
    judged_relative_delta_interval,
)
from rag_sourcebias.intervals.ranking import JudgedRanking, parse_measure
from rag_sourcebias.judges.audit import audit_judge
from rag_sourcebias.judges.calibration import audit_labels
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import (
    JUDGED_SCHEMA_VERSION,
    CoveragePoint,
    JudgedComparison,
    JudgedConfig,
    JudgedMean,
    JudgedReport,
    QueryIntervals,
)
from rag_sourcebias.types.labels import LabelDistributions
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["judge_ranking_with_intervals"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def judge_ranking_with_intervals(
    runs: Run | Sequence[Run],
    human: Qrels,
    judge: LabelDistributions,
    *,
    measures: Sequence[str] = ("NDCG@10",),
    tags: TagTable | None = None,
    baseline_source: str = "human",
    config: JudgedConfig | None = None,
    name: str = "ranking",
    on_stage: Callable[[str], None] | None = None,
) -> JudgedReport:
    """Put intervals on ranking measures when people judged some queries and a judge all.

    Parameters
    ----------
    runs : Run or sequence of Run
        With several, systems are compared in pairs on the same queries.
    human : Qrels
        Its queries are the labelled ones; each is judged through the largest cutoff, and what is
        not judged counts as not relevant (it is counted and reported).
    judge : LabelDistributions
        Labels of every query, those of ``human`` among them.
    measures : sequence of str
        ``DCG@k``, ``NDCG@k``, ``P@k``, ``MAP@k``, ``MRR@k``, ``Recall@k``. For all but DCG and P
        the judge must have labelled the whole pool.
    tags : TagTable, optional
        Sources of the documents: adds Relative Δ of each other source against
        ``baseline_source``, every source corrected by its own human labels.

    Raises
    ------
    DataError
        If queries with human labels have no judge labels (how many, which first), a human grade
        is outside the judge's scale, or a measure is unknown.
    InsufficientDataError
        With too few labelled queries for any interval.
    """
    config = config or JudgedConfig()
    begin = on_stage or (lambda _: None)
    systems = _systems(runs, human, judge)
    cutoffs = [parse_measure(measure)[1] for measure in measures]
    if not cutoffs:
        raise DataError("no measure asked for, such as NDCG@10")
    means: list[JudgedMean] = []
    curves: list[CoveragePoint] = []
    warnings = _unjudged(systems, max(cutoffs))
    cells: dict[tuple[str, str], JudgedValues] = {}
    for measure in measures:
        for system in systems:
            begin(f"{measure} of {system.name}")
            values = system.values(measure, config)
            cells[measure, system.name] = values
            within = None if parse_measure(measure)[0] == "DCG" else (0.0, 1.0)
            means.append(judged_mean(measure, system.name, values, config, within=within))
            curves.extend(resampled_curves(measure, system.name, values, config, on_stage=begin))
    first = cells[measures[0], systems[0].name]
    warnings += check_random_labels(first.f, first.f_unlabeled)
    begin("comparisons")
    comparisons = [*_differences(systems, measures, cells, config)]
    if tags is not None:
        comparisons += _relative_deltas(
            systems, measures, tags, baseline=baseline_source, config=config, warnings=warnings
        )
    per_query: list[QueryIntervals] = []
    if config.per_query:
        begin("intervals of single queries")
        per_query = _per_query(systems, measures, config, warnings)
    begin("judge audit")
    return JudgedReport(
        schema_version=JUDGED_SCHEMA_VERSION,
        kind="ranking",
        name=name,
        config=config,
        n_labeled=len(human.query_ids),
        n_unlabeled=len(judge.query_ids) - len(human.query_ids),
        n_judge_missing=0,
        means=tuple(means),
        comparisons=tuple(comparisons),
        per_query=tuple(per_query),
        curves=tuple(curves),
        audits=_audits(human, judge, tags, config),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(warnings),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _System:
    """A run beside both kinds of labels; ``place`` is the judge's index of each human query."""

    name: str
    human: JudgedRanking
    judge: JudgedRanking
    place: IntArray

    def values(
        self,
        measure: str,
        config: JudgedConfig,
        source: tuple[IntArray, IntArray, int] | None = None,
    ) -> JudgedValues:
        """Human and judge values of every query; of one source where codes are given."""
        counted = (None, None) if source is None else tuple(c == source[2] for c in source[:2])
        y = np.full(len(self.judge.labels.query_ids), np.nan)
        y[self.place] = self.human.values(
            measure, gain=config.gain, min_grade=config.min_grade, counted=counted[0]
        )
        f = self.judge.values(
            measure, gain=config.gain, min_grade=config.min_grade, counted=counted[1]
        )
        return JudgedValues(y, f)


def _systems(runs: Run | Sequence[Run], human: Qrels, judge: LabelDistributions) -> list[_System]:
    listed = [runs] if isinstance(runs, Run) else list(runs)
    if not listed:
        raise DataError("no run given")
    names = [run.name for run in listed]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"two runs are called {twice!r}; give each run its own name")
    codes = {query: code for code, query in enumerate(judge.query_ids)}
    missing = [query for query in human.query_ids if query not in codes]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(human.query_ids)} queries with human labels have no judge "
            f"labels, first {missing[0]!r} (the judge's first query is {judge.query_ids[0]!r}); "
            "judge the labelled queries too: they correct the judge"
        )
    place = np.array([codes[query] for query in human.query_ids], dtype=np.int64)
    truth = LabelDistributions.from_qrels(human, n_grades=judge.n_grades)
    return [
        _System(
            name=run.name,
            human=JudgedRanking.join(run, truth),
            judge=JudgedRanking.join(run, judge),
            place=place,
        )
        for run in listed
    ]


def _unjudged(systems: Sequence[_System], cutoff: int) -> list[str]:
    found = []
    for system in systems:
        for who, ranking in (("people", system.human), ("the judge", system.judge)):
            missing = ranking.unjudged(cutoff)
            total = int(np.minimum(ranking.n_retrieved, cutoff).sum())
            if missing.any():
                query = ranking.labels.query_ids[int(np.argmax(missing > 0))]
                found.append(
                    f"{system.name}: {int(missing.sum())} of {total} retrieved documents through "
                    f"rank {cutoff} have no label by {who}, first for query {query!r}; they count "
                    "as not relevant"
                )
    return found


def _differences(
    systems: Sequence[_System],
    measures: Sequence[str],
    cells: dict[tuple[str, str], JudgedValues],
    config: JudgedConfig,
) -> list[JudgedComparison]:
    """Differences of all pairs of systems, or of each with the first where there are many."""
    names = [system.name for system in systems]
    pairs = list(combinations(names, 2))
    if len(names) > 6:
        pairs = pairs[: len(names) - 1]
    found = []
    for measure in measures:
        for first, second in pairs:
            sides = [cells[measure, first], cells[measure, second]]
            try:
                interval = difference_interval(
                    np.stack([side.y for side in sides], axis=1),
                    np.stack([side.f for side in sides], axis=1),
                    np.stack([side.f_unlabeled for side in sides], axis=1),
                    target=config.target,
                    confidence_level=config.confidence_level,
                )
            except InsufficientDataError:
                continue
            found.append(
                JudgedComparison(
                    kind="difference",
                    measure=measure,
                    system="",
                    first=first,
                    second=second,
                    interval=interval,
                )
            )
    return found


def _relative_deltas(
    systems: Sequence[_System],
    measures: Sequence[str],
    tags: TagTable,
    *,
    baseline: str,
    config: JudgedConfig,
    warnings: list[str],
) -> list[JudgedComparison]:
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    others = [source for source in tags.sources if source != baseline]
    found = []
    for system in systems:
        codes = [_source_of_rows(side.labels, tags) for side in (system.human, system.judge)]
        untagged = int(np.count_nonzero(codes[1] < 0))
        if untagged:
            warnings.append(f"{untagged} judged pairs have no source tag and count for no source")
        for measure in measures:
            for other in others:
                sides = [
                    system.values(measure, config, (codes[0], codes[1], tags.sources.index(source)))
                    for source in (baseline, other)
                ]
                try:
                    interval = judged_relative_delta_interval(
                        np.stack([side.y for side in sides], axis=1),
                        np.stack([side.f for side in sides], axis=1),
                        np.stack([side.f_unlabeled for side in sides], axis=1),
                        target=config.target,
                        confidence_level=config.confidence_level,
                    )
                except InsufficientDataError as error:
                    warnings.append(f"Relative Δ of {measure} ({system.name}, {other}): {error}")
                    continue
                found.append(
                    JudgedComparison(
                        kind="relative_delta",
                        measure=measure,
                        system=system.name,
                        first=baseline,
                        second=other,
                        interval=interval,
                    )
                )
    return found


def _source_of_rows(labels: LabelDistributions, tags: TagTable) -> IntArray:
    rows = tags.rows_for(labels.doc_ids)
    codes = np.where(rows >= 0, tags.source_codes[np.maximum(rows, 0)], -1)
    of_rows: IntArray = codes[labels.doc_codes].astype(np.int64)
    return of_rows


def _per_query(
    systems: Sequence[_System],
    measures: Sequence[str],
    config: JudgedConfig,
    warnings: list[str],
) -> list[QueryIntervals]:
    found = []
    for measure in measures:
        if parse_measure(measure)[0] not in ("DCG", "P"):
            continue
        for system in systems:
            try:
                found.append(
                    query_intervals(
                        system.name,
                        measure,
                        human=system.human,
                        judge=system.judge,
                        place=system.place,
                        config=config,
                    )
                )
            except CalibrationError as error:
                warnings.append(f"no intervals of single queries for {measure}: {error}")
    return found


def _audits(
    human: Qrels, judge: LabelDistributions, tags: TagTable | None, config: JudgedConfig
) -> dict[str, JudgeAudit]:
    """Compare grades pair by pair, by source where tags are given."""
    truth = LabelDistributions.from_qrels(human, n_grades=judge.n_grades)
    rows = _rows_of(truth, judge)
    shared = rows >= 0
    if np.count_nonzero(shared) < 1:
        return {}
    grades = np.arange(judge.n_grades, dtype=np.float64)
    groups = None
    if tags is not None:
        names = (*tags.sources, "untagged")
        groups = [names[code] for code in _source_of_rows(truth, tags)[shared]]
    try:
        audit = audit_judge(
            (truth.probs @ grades)[shared],
            (judge.probs @ grades)[rows[shared]],
            groups=groups,
            clusters=truth.query_codes[shared].astype(np.int64),
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
    except InsufficientDataError:
        return {}
    seen = LabelDistributions(
        query_ids=truth.query_ids,
        doc_ids=truth.doc_ids,
        query_codes=truth.query_codes[shared],
        doc_codes=truth.doc_codes[shared],
        probs=truth.probs[shared],
    )
    calibration = audit_labels(
        judge, seen, confidence_level=config.confidence_level, rng=config.seed
    )
    return {"grades": replace(audit, calibration=calibration)}


def _rows_of(wanted: LabelDistributions, labels: LabelDistributions) -> IntArray:
    """Row of ``labels`` holding each pair of ``wanted``, -1 where there is none."""
    query = {name: code for code, name in enumerate(labels.query_ids)}
    doc = {name: code for code, name in enumerate(labels.doc_ids)}
    queries = np.array([query.get(name, -1) for name in wanted.query_ids])[wanted.query_codes]
    docs = np.array([doc.get(name, -1) for name in wanted.doc_ids])[wanted.doc_codes]
    width = max(len(labels.doc_ids), 1)
    key = labels.query_codes.astype(np.int64) * width + labels.doc_codes
    order = np.argsort(key, kind="stable")
    sought = np.where((queries >= 0) & (docs >= 0), queries * width + docs, -1)
    place = np.searchsorted(key[order], sought)
    place[place == len(key)] = 0
    found = key[order][place] == sought
    rows: IntArray = np.where(found, order[place], -1)
    return rows
