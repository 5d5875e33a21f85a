"""Quality on the corpus of each source alone, compared query by query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.core.errors import if_enough
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.means import clustered_difference, difference_test
from rag_sourcebias.measure.relevance import SourceScores


@dataclass(frozen=True, kw_only=True)
class SoleCorpusCheck:
    """Quality on the corpus of each source alone ([K] Table 2), paired per query.

    A large difference here means the rewrites changed what documents say, so that the mixed
    result is not source bias alone.

    Parameters
    ----------
    difference : Interval or None
        mean_baseline − mean_other.
    p_value : float or None
    """

    measure: str
    baseline: str
    other: str
    mean_baseline: float
    mean_other: float
    difference: Interval | None
    p_value: float | None


def sole_corpus_checks(
    alone: Mapping[str, SourceScores], *, baseline: str, confidence_level: float
) -> tuple[SoleCorpusCheck, ...]:
    """Compare quality on the corpus of each source alone ([K] Table 2), paired per query."""
    base, found = alone[baseline], []
    for other in (name for name in alone if name != baseline):
        for measure in base.measures:
            h, low = base.of(measure, "all"), alone[other].of(measure, "all")
            queries = np.arange(len(h))
            found.append(
                SoleCorpusCheck(
                    measure=measure,
                    baseline=baseline,
                    other=other,
                    mean_baseline=float(h.mean()),
                    mean_other=float(low.mean()),
                    difference=if_enough(
                        clustered_difference,
                        h - low,
                        queries,
                        confidence_level=confidence_level,
                    ),
                    p_value=difference_test(h - low, queries),
                )
            )
    return tuple(found)
