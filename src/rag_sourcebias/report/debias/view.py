"""What all outputs show of a debias report besides numbers, gathered once."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.debias.names import data_name
from rag_sourcebias.report.debias.tables import refusals
from rag_sourcebias.types.debias import DebiasSearch
from rag_sourcebias.types.debias_report import DebiasOutcome, DebiasReport
from rag_sourcebias.types.intervals import Interval

__all__ = ["assumptions", "caveats", "warnings_of"]

_SEARCH = "search"


def _of_outcome(outcome: DebiasOutcome) -> Iterator[tuple[str, Interval | None]]:
    for skew in outcome.skew:
        yield "Relative Δ", skew.before
        yield "Relative Δ", skew.after
        yield "change of Relative Δ", skew.change
    for quality in outcome.quality:
        yield "change of quality", quality.difference


def _of_search(search: DebiasSearch) -> Iterator[tuple[str, Interval | None]]:
    for point in search.points:
        yield "Relative Δ of the search", point.relative_delta
        for quality in (point.human_only, point.llm_only, point.mixed):
            yield "quality in the search", quality
    yield "Relative Δ of the chosen weight", search.chosen_relative_delta
    yield "crossing of the target", search.zero_crossing


def _intervals(report: DebiasReport) -> Iterator[tuple[str, str, Interval]]:
    """Yield (where, what, interval)."""
    for dataset in report.datasets:
        for outcome in dataset.outcomes:
            where = f"{outcome.name} on {data_name(report, dataset)}"
            for what, found in _of_outcome(outcome):
                if found is not None:
                    yield where, what, found
    if report.search is not None:
        for what, found in _of_search(report.search):
            if found is not None:
                yield _SEARCH, what, found


def assumptions(report: DebiasReport) -> dict[str, tuple[str, ...]]:
    """Return what intervals and tests assume, and for which numbers."""
    found: dict[str, dict[str, None]] = {}
    for _, what, interval in _intervals(report):
        for text in interval.assumptions:
            found.setdefault(text, {})[f"{what}, {interval.method}"] = None
    for text in () if report.search is None else report.search.assumptions:
        found.setdefault(text, {})[_SEARCH] = None
    return {text: tuple(where) for text, where in found.items()}


def warnings_of(report: DebiasReport) -> tuple[str, ...]:
    """Return what to know before any number is trusted; of single data sets with their name."""
    several = len(report.datasets) > 1
    found = list(report.warnings)
    for dataset in report.datasets:
        start = f"{data_name(report, dataset)}: " if several else ""
        found += [f"{start}{text}" for text in dataset.warnings]
    return tuple(dict.fromkeys(found))


def caveats(report: DebiasReport) -> tuple[tuple[str, str], ...]:
    """Return (where, what a reader must know), each once, without the warnings."""
    found = [*refusals(report)]
    found += _tested_otherwise(report)
    for where, what, interval in _intervals(report):
        found += [(where, f"{what}: {note}") for note in interval.notes]
    if report.search is not None:
        found += [(_SEARCH, note) for note in report.search.notes]
    for run in report.training:
        if run.stopped:
            found.append((f"training of {run.name}, seed {run.seed}", run.stopped))
    return tuple(dict.fromkeys(found))


def _tested_otherwise(report: DebiasReport) -> Iterator[tuple[str, str]]:
    """Yield the notes of tests of quality."""
    for dataset in report.datasets:
        for outcome in dataset.outcomes[1:]:
            for quality in outcome.quality:
                if quality.test is not None and quality.test.note:
                    where = f"{outcome.name} on {data_name(report, dataset)}"
                    yield where, f"test of {quality.quality} quality: {quality.test.note}"
