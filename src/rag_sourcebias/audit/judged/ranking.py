"""Intervals for rankings whose documents a judge labelled and people labelled for some queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.judged.grades import grade_audits
from rag_sourcebias.audit.judged.means import JudgedValues, judged_mean, resampled_curves
from rag_sourcebias.audit.judged.queries import query_intervals
from rag_sourcebias.audit.judged.ranking_comparisons import relative_deltas, system_differences
from rag_sourcebias.audit.judged.systems import JudgedSystem, judged_systems, unjudged_notes
from rag_sourcebias.errors import CalibrationError, DataError
from rag_sourcebias.intervals.checks import check_random_labels
from rag_sourcebias.intervals.ranking import measure_bounds, parse_measure
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.judged import JUDGED_SCHEMA_VERSION, JudgedConfig, JudgedReport
from rag_sourcebias.types.judged_parts import CoveragePoint, JudgedMean, QueryIntervals
from rag_sourcebias.types.labels import LabelDistributions
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["judge_ranking_with_intervals"]


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
    systems = judged_systems(runs, human, judge)
    cutoffs = [parse_measure(measure)[1] for measure in measures]
    if not cutoffs:
        raise DataError("no measure asked for, such as NDCG@10")
    means: list[JudgedMean] = []
    curves: list[CoveragePoint] = []
    warnings = unjudged_notes(systems, max(cutoffs))
    cells: dict[tuple[str, str], JudgedValues] = {}
    for measure in measures:
        for system in systems:
            begin(f"{measure} of {system.name}")
            values = system.values(measure, config)
            cells[measure, system.name] = values
            asked = (measure, system.name, values, config)
            bounds = measure_bounds(measure)
            means.append(judged_mean(*asked, bounds=bounds))
            curves.extend(resampled_curves(*asked, bounds=bounds, on_stage=begin))
    first = cells[measures[0], systems[0].name]
    warnings += check_random_labels(first.f, first.f_unlabeled)
    begin("comparisons")
    comparisons = [*system_differences(systems, measures, cells, config)]
    if tags is not None:
        comparisons += relative_deltas(
            systems, measures, tags, baseline=baseline_source, config=config, warnings=warnings
        )
    begin("intervals of single queries")
    per_query = _per_query(systems, measures, config, warnings) if config.per_query else []
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
        audits=grade_audits(human, judge, tags, config),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(warnings),
    )


def _per_query(
    systems: Sequence[JudgedSystem],
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
