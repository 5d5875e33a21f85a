"""How data sets, systems, qualities and weights are called, and how their numbers are written."""

from __future__ import annotations

from rag_sourcebias.report.format import (
    MISSING,
    delta,
    interval,
    number,
    short_names,
    shorten,
    source_name,
)
from rag_sourcebias.types.debias import QUALITIES
from rag_sourcebias.types.debias_report import (
    DebiasDataset,
    DebiasMethod,
    DebiasReport,
    QualityChange,
)
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "KINDS",
    "called",
    "change_ends",
    "changed_systems",
    "data_name",
    "delta_ends",
    "loss",
    "method_of",
    "percent",
    "percent_ends",
    "quality_names",
    "unchanged_systems",
    "weight_text",
]

KINDS = {
    "projection": "projection",
    "training": "training",
    "calibration": "calibration of scores",
    "model": "another model",
}
_LONGEST = 60


def called(name: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    text = shorten(name, _LONGEST)
    return f"“{text}”" if any(c in " ,;:" for c in text) else text


def data_name(report: DebiasReport, dataset: DebiasDataset) -> str:
    """Return the name of a data set, with the source compared where the name alone is ambiguous."""
    name = dataset.data.name or "unnamed data"
    if sum(d.data.name == dataset.data.name for d in report.datasets) < 2:
        return name
    return f"{name}, {source_name(dataset.other)}"


def unchanged_systems(report: DebiasReport) -> tuple[str, ...]:
    """Return the names of what every method is compared with."""
    return tuple(dict.fromkeys(d.outcomes[0].name for d in report.datasets if d.outcomes))


def changed_systems(report: DebiasReport) -> tuple[str, ...]:
    """Return the names of the changed systems, those with a described method first."""
    found = dict.fromkeys(o.name for d in report.datasets for o in d.outcomes[1:])
    described = [m.name for m in report.methods if m.name in found]
    return tuple(dict.fromkeys([*described, *found]))


def method_of(report: DebiasReport, system: str) -> DebiasMethod | None:
    """Return what was done to a system, None where nobody said."""
    return next((m for m in report.methods if m.name == system), None)


def quality_names(report: DebiasReport) -> dict[str, str]:
    """Return the qualities in words: ``human-only``, ``LLM-only``, ``mixed``."""
    base = report.config.baseline_source
    # Sources differ between data sets; the section of each names its own.
    names = short_names((base, "llm"))
    return dict(zip(QUALITIES, (f"{names[base]}-only", "LLM-only", "mixed"), strict=True))


def delta_ends(found: Interval | None) -> str:
    """Return Relative Δ with its interval, such as ``+1.1 [−6.2, 8.0]``."""
    return MISSING if found is None else f"{delta(found.estimate)} {interval(found)}"


def percent(value: float | None) -> str:
    """Return a change in percent, signed, one decimal."""
    return "undefined" if value is None else f"{number(value, signed=True)}%"


def change_ends(found: QualityChange) -> tuple[float, float] | None:
    """Return the interval of a change in percent of the mean before, which is taken as known."""
    if found.difference is None or found.before == 0:
        return None
    return 100 * found.difference.lower / found.before, 100 * found.difference.upper / found.before


def percent_ends(found: QualityChange) -> str:
    """Return a change of quality in percent with its interval."""
    ends = change_ends(found)
    if ends is None:
        return percent(found.relative)
    return f"{percent(found.relative)} [{number(ends[0])}, {number(ends[1])}]"


def loss(share: float) -> str:
    """Return a margin such as ``1%`` or ``0.5%``."""
    return f"{100 * share:.6g}%"


def weight_text(weight: float) -> str:
    """Return a weight as short as it can be written: ``0``, ``0.01``, ``1e−5``."""
    return f"{weight:g}".replace("e-0", "e-").replace("-", "\u2212") if weight else "0"
