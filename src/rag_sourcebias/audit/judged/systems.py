"""Runs beside human and judge labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.audit.judged.means import JudgedValues
from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.ranking import JudgedRanking, measure_bounds
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.labels import LabelDistributions
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["JudgedSystem", "judged_systems", "unjudged_notes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedSystem:
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
        bounds = measure_bounds(measure)
        if bounds is not None:
            y = np.clip(y, *bounds)  # beyond them only by rounding
        return JudgedValues(y, f)


def judged_systems(
    runs: Run | Sequence[Run], human: Qrels, judge: LabelDistributions
) -> list[JudgedSystem]:
    """Join every run with both kinds of labels, after checking that the ids fit."""
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
        JudgedSystem(
            name=run.name,
            human=JudgedRanking.join(run, truth),
            judge=JudgedRanking.join(run, judge),
            place=place,
        )
        for run in listed
    ]


def unjudged_notes(systems: Sequence[JudgedSystem], cutoff: int) -> list[str]:
    """Say how many retrieved documents nobody, or no judge, labelled."""
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
