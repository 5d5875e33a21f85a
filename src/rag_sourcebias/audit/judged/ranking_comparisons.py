"""Systems, and sources within a system, compared on judged rankings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rag_sourcebias.audit.judged.means import JudgedValues
from rag_sourcebias.audit.judged.systems import JudgedSystem
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.intervals.comparison import difference_interval
from rag_sourcebias.intervals.relative_delta import judged_relative_delta_interval
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_parts import JudgedComparison
from rag_sourcebias.types.labels import LabelDistributions

__all__ = ["relative_deltas", "source_of_rows", "system_differences"]


def system_differences(
    systems: Sequence[JudgedSystem],
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


def relative_deltas(
    systems: Sequence[JudgedSystem],
    measures: Sequence[str],
    tags: TagTable,
    *,
    baseline: str,
    config: JudgedConfig,
    warnings: list[str],
) -> list[JudgedComparison]:
    """Relative Δ of each other source against the baseline; adds to ``warnings`` what failed."""
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    others = [source for source in tags.sources if source != baseline]
    found = []
    for system in systems:
        codes = [source_of_rows(side.labels, tags) for side in (system.human, system.judge)]
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


def source_of_rows(labels: LabelDistributions, tags: TagTable) -> IntArray:
    """Return the source code of each labelled pair, -1 where it is unknown."""
    rows = tags.rows_for(labels.doc_ids)
    codes = np.where(rows >= 0, tags.source_codes[np.maximum(rows, 0)], -1)
    of_rows: IntArray = codes[labels.doc_codes].astype(np.int64)
    return of_rows
