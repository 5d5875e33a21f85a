"""Several audits as one figure: a retriever's skew over data sets."""

import math
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import normal_quantile, t_around
from rag_sourcebias.source.findings import SourceCode
from rag_sourcebias.source.page import SkewReport

_FEWEST = 3


def random_effects(intervals: Sequence[Interval]) -> Interval:
    """Return the mean effect of which the studies are a sample.

    Paule and Mandel's between-study variance, and the t interval of Hartung, Knapp, Sidik and
    Jonkman (2001, 2002), never narrower than with known variances (Röver, Knapp & Friede 2015).

    Parameters
    ----------
    intervals : sequence of Interval
        One per study, of one confidence level, in one unit; their widths give the variances.

    Raises
    ------
    InsufficientDataError
        With fewer than 3 studies.

    Examples
    --------
    >>> studies = [
    ...     Interval(
    ...         estimate=x,
    ...         lower=x - 4,
    ...         upper=x + 4,
    ...         confidence_level=0.95,
    ...         method=InferCode.GIVEN(),
    ...         n_labeled=99,
    ...     )
    ...     for x in (-9.0, -4.0, 1.0)
    ... ]
    >>> print(random_effects(studies))
    -4 [-16.42, 8.421] (95%, random effects, n = 3)
    """
    k = len(intervals)
    if k < _FEWEST:
        raise InsufficientDataError(SourceCode.FEW_STUDIES(n=k, n_least=_FEWEST), n_needed=_FEWEST)
    level = intervals[0].confidence_level
    z = normal_quantile(0.5 + level / 2)
    values = np.array([one.estimate for one in intervals])
    within = np.maximum(np.array([one.half_width / z for one in intervals]) ** 2, 1e-12)

    def spread(between: float) -> float:
        weights = 1 / (within + between)
        return float(weights @ (values - weights @ values / weights.sum()) ** 2)

    low, high = 0.0, float(np.var(values, ddof=1)) * k if spread(0.0) > k - 1 else 0.0
    for _ in range(100 if high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if spread(middle) > k - 1 else (low, middle)
    weights = 1 / (within + high)
    mean = float(weights @ values / weights.sum())
    inflation = max(float(weights @ (values - mean) ** 2) / (k - 1), 1.0)
    return t_around(
        mean,
        math.sqrt(inflation / float(weights.sum())),
        k - 1,
        level=level,
        method=InferCode.RANDOM_EFFECTS(),
        n_labeled=k,
        assumptions=(InferCode.STUDIES_SAMPLED(n=k),),
    )


def combine_reports(reports: Sequence[SkewReport]) -> tuple[Finding, ...]:
    """Combine the primary measure of each retriever over several data sets (random effects).

    A data set with several other sources counts once, with the first of them that has an interval,
    as its sources share queries and human documents.

    Raises
    ------
    DataError
        If the reports differ in their primary measure or confidence level.
    """
    kinds = {(r.config.primary_measure, r.config.confidence_level) for r in reports}
    if len(kinds) > 1:
        raise DataError(f"reports differ in primary measure or confidence level: {sorted(kinds)}")
    found: dict[str, list[Interval]] = {}
    for report in reports:
        for name, intervals in _by_name(report).items():
            found.setdefault(name, []).extend(intervals[:1])
    return tuple(
        _combined(name, reports[0].config.primary_measure, intervals)
        for name, intervals in found.items()
    )


def _by_name(report: SkewReport) -> dict[str, list[Interval]]:
    """Return the intervals of each retriever, of the sources that have one."""
    found: dict[str, list[Interval]] = {}
    for system in report.systems:
        if system.variant == "mixed":
            intervals = (verdict.interval for verdict in system.verdicts)
            found.setdefault(system.name, []).extend(filter(None, intervals))
    return found


def _combined(name: str, measure: str, intervals: Sequence[Interval]) -> Finding:
    delta, refusal, code = None, None, SourceCode.COMBINED
    try:
        delta = random_effects(intervals)
    except InsufficientDataError as error:
        refusal, code = error.finding, SourceCode.NOT_COMBINED
    return code(system=name, measure=measure, n=len(intervals), delta=delta, refusal=refusal)
