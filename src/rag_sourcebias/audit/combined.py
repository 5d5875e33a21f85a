"""Several reports of one kind as one figure per retriever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.random_effects import random_effects
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import SkewReport

__all__ = ["CombinedSkew", "combine_reports"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedSkew:
    """Centred Relative Δ of one retriever over several data sets.

    Parameters
    ----------
    system : str
    measure : str
    studies : tuple of str
        Data set and other source of each figure.
    interval : Interval or None
        Of the mean over data sets like these, in percent.
    refusal : str or None
    """

    system: str
    measure: str
    studies: tuple[str, ...]
    interval: Interval | None
    refusal: str | None


def combine_reports(reports: Sequence[SkewReport]) -> tuple[CombinedSkew, ...]:
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
    names = dict.fromkeys(s.name for r in reports for s in r.systems if s.variant == "mixed")
    return tuple(_combined(name, reports) for name in names)


def _combined(name: str, reports: Sequence[SkewReport]) -> CombinedSkew:
    found: dict[str, Interval] = {}
    for report in reports:
        for system in report.systems:
            if (system.name, system.variant) != (name, "mixed"):
                continue
            for verdict in system.verdicts:
                if verdict.interval is not None:
                    found[f"{report.data.name}, {verdict.other}"] = verdict.interval
                    break
    interval, refusal = None, None
    try:
        interval = random_effects(list(found.values()))
    except InsufficientDataError as error:
        refusal = str(error)
    return CombinedSkew(
        system=name,
        measure=reports[0].config.primary_measure,
        studies=tuple(found),
        interval=interval,
        refusal=refusal,
    )
