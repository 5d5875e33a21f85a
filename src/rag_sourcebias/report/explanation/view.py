"""What all outputs show of an explanation besides numbers, gathered once."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.explanation.names import model_name
from rag_sourcebias.report.format import source_name
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation
from rag_sourcebias.types.intervals import Interval

__all__ = ["assumptions", "caveats"]

Named = Iterator[tuple[str, Interval | None]]


def assumptions(report: ExplainReport) -> dict[str, tuple[str, ...]]:
    """Return what intervals assume, and for which numbers."""
    found: dict[str, dict[str, None]] = {}
    for explained in report.sources:
        for what, interval in _intervals(explained):
            for text in () if interval is None else interval.assumptions:
                found.setdefault(text, {})[what] = None
    return {text: tuple(where) for text, where in found.items()}


def caveats(report: ExplainReport) -> tuple[tuple[str, str], ...]:
    """Return (source, what a reader must know), each once, without the warnings."""
    found = []
    for explained in report.sources:
        name = source_name(explained.source)
        found += [(name, note) for note in explained.notes]
        if explained.decomposition is not None:
            found += [(name, note) for note in explained.decomposition.notes]
        for what, interval in _intervals(explained):
            found += [(name, f"{what}: {n}") for n in (() if interval is None else interval.notes)]
    return tuple(dict.fromkeys(found))


def _intervals(explained: SourceExplanation) -> Named:
    yield "length", explained.texts.log_length_ratio
    yield from _of_words(explained)
    if explained.spectrum is not None:
        yield "spectrum", explained.spectrum.head
        yield "spectrum", explained.spectrum.tail
    yield from _of_geometry(explained)
    for found in explained.perplexity:
        what = f"perplexity under {model_name(found)}"
        yield what, found.gap.gap
        yield what, found.gap.share_lower
        yield what, found.gap.gap_equal_length
        yield what, None if found.bounded is None else found.bounded.mean
    if explained.decomposition is not None:
        yield "score gap", explained.decomposition.gap
        yield "parts of the score gap", explained.decomposition.remainder
        yield "share of variance", explained.decomposition.r_squared
        for factor in explained.decomposition.factors:
            yield "parts of the score gap", factor.component
            yield "share of variance", factor.variance_share


def _of_words(explained: SourceExplanation) -> Named:
    found = explained.lexical
    if found is not None:
        for interval in (
            found.coverage_human,
            found.coverage_other,
            found.coverage_gap,
            found.gap_own_idf,
            found.idf_change_human_only,
            found.idf_change_other_only,
        ):
            yield "words of queries", interval


def _of_geometry(explained: SourceExplanation) -> Named:
    found = explained.geometry
    if found is not None:
        yield "probe", found.probe_accuracy
        yield "probe", found.probe_pair_accuracy
        yield "common share", found.common_share
        yield "cosine of versions", found.twin_cosine
        for interval in (
            found.anisotropy_human,
            found.anisotropy_other,
            found.anisotropy_difference,
        ):
            yield "anisotropy", interval
