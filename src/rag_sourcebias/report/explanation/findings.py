"""What distinguishes a source, what is not established, and what was not computed, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.explanation.missing import PARTS, is_missing, reason
from rag_sourcebias.report.explanation.names import of_source
from rag_sourcebias.report.explanation.score_words import gap_finding, lexical_finding
from rag_sourcebias.report.explanation.text_words import length_finding, perplexity_finding
from rag_sourcebias.report.explanation.vector_words import (
    anisotropy_finding,
    probe_finding,
    spectrum_finding,
)
from rag_sourcebias.report.format import join
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["Finding", "findings", "unmeasured"]

Standing = Literal["established", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference between the versions.

    Parameters
    ----------
    topic : str
        What differs, or may: ``"length"``.
    standing : {"established", "open"}
        Whether its interval leaves out no difference.
    brief : str
        The difference in a few words, to stand behind the topic.
    text : str
        A whole sentence with the interval.
    """

    topic: str
    standing: Standing
    brief: str
    text: str


def findings(report: ExplainReport, explained: SourceExplanation) -> tuple[Finding, ...]:
    """Return what was measured on one source, in the order of the page."""
    return tuple(
        Finding(topic=topic, standing="established" if shown else "open", brief=brief, text=text)
        for topic, shown, brief, text in _found(report, explained)
    )


def _found(
    report: ExplainReport, explained: SourceExplanation
) -> Iterator[tuple[str, bool, str, str]]:
    other, base = of_source(explained.source), of_source(report.config.baseline_source)
    if explained.decomposition is not None:
        yield gap_finding(explained.decomposition, other=other, base=base)
    yield length_finding(explained.texts, other=other, base=base)
    if explained.lexical is not None:
        yield lexical_finding(explained.lexical, other=other, base=base)
    if explained.spectrum is not None:
        yield spectrum_finding(explained.spectrum, other=other, base=base)
    if explained.geometry is not None:
        yield probe_finding(explained.geometry, other=other, base=base)
        if explained.geometry.anisotropy_difference is not None:
            yield anisotropy_finding(explained.geometry, other=other, base=base)
    for found in explained.perplexity:
        yield perplexity_finding(found, other=other, base=base)


def unmeasured(report: ExplainReport, explained: SourceExplanation) -> tuple[tuple[str, str], ...]:
    """Return (parts, why) for all that was not computed, a reason once with all its parts."""
    found: dict[str, list[str]] = {}
    for part, name in PARTS.items():
        if is_missing(explained, part):
            found.setdefault(reason(report, explained, part), []).append(name)
    return tuple((join(names), why) for why, names in found.items())
