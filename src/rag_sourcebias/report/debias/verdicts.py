"""What is concluded of every changed system on every data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.debias.names import changed_systems, method_of
from rag_sourcebias.types.debias_report import (
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
    QualityChange,
    SkewChange,
)

__all__ = [
    "WIDE",
    "DebiasVerdict",
    "QualityKind",
    "QualityVerdict",
    "Role",
    "SkewKind",
    "alpha",
    "falls",
    "quality_kind",
    "significant",
    "skew_kind",
    "verdicts",
    "verdicts_of",
]

SkewKind = Literal["reached", "uncertain", "close", "missed", "overcorrected", "unknown"]
QualityKind = Literal["kept", "open", "lost", "unknown"]
Role = Literal["fitted", "overlap", "held out", "transfer", "unknown"]
WIDE = 3.0
"""Half widths of more than this many tolerances say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityVerdict:
    """One quality at the quality cutoff.

    Parameters
    ----------
    kind : {"kept", "open", "lost", "unknown"}
        Whether a loss of the margin or more is excluded, possible, shown, or was not tested.
    """

    change: QualityChange
    kind: QualityKind


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasVerdict:
    """One changed system on one data set.

    Parameters
    ----------
    kind : SkewKind
        Of Relative Δ at the skew cutoff. ``"close"`` lies within the tolerance with an interval
        that excludes the target, ``"uncertain"`` within it with an interval so wide that much
        else is possible.
    quality : tuple of QualityVerdict
    role : Role
        Whether the data set is the one the method was fitted on, shares pairs with it, is another
        split of it without a pair in common, is new to the method, or whether that is not known.
    met : bool
        Whether every criterion holds by the estimates, the interval of the skew included.
    proven : bool
        Whether in addition the interval is narrow and every loss of the margin is excluded.
    """

    system: str
    dataset: DebiasDataset
    outcome: DebiasOutcome
    skew: SkewChange
    kind: SkewKind
    quality: tuple[QualityVerdict, ...]
    role: Role
    met: bool
    proven: bool

    def of(self, quality: str) -> QualityVerdict | None:
        """Return one quality, None where it was not measured."""
        return next((q for q in self.quality if q.change.quality == quality), None)


def alpha(report: DebiasReport) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def significant(report: DebiasReport, skew: SkewChange) -> bool:
    """Whether Relative Δ changed, after correction where there is one."""
    p = skew.p_value if skew.p_adjusted is None else skew.p_adjusted
    return p is not None and p < alpha(report)


def verdicts(report: DebiasReport) -> tuple[DebiasVerdict, ...]:
    """Return a verdict for every changed system on every data set, by system."""
    return tuple(v for system in changed_systems(report) for v in verdicts_of(report, system))


def verdicts_of(report: DebiasReport, system: str) -> tuple[DebiasVerdict, ...]:
    """Return the verdicts on one system, in the order of the data sets."""
    return tuple(
        _verdict(report, dataset, outcome)
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:]
        if outcome.name == system
    )


def _verdict(report: DebiasReport, dataset: DebiasDataset, outcome: DebiasOutcome) -> DebiasVerdict:
    config = report.config
    skew = outcome.skew_at(config.skew_cutoff)
    kind = skew_kind(config, skew)
    quality = tuple(
        QualityVerdict(change=q, kind=quality_kind(config, q))
        for q in outcome.quality
        if q.cutoff == config.quality_cutoff
    )
    met = kind in ("reached", "uncertain") and bool(quality)
    met = met and not any(falls(config, q.change) for q in quality)
    return DebiasVerdict(
        system=outcome.name,
        dataset=dataset,
        outcome=outcome,
        skew=skew,
        kind=kind,
        quality=quality,
        role=_role(method_of(report, outcome.name), dataset, outcome.n_seen),
        met=met,
        proven=met and kind == "reached" and all(q.kind == "kept" for q in quality),
    )


def skew_kind(config: DebiasConfig, skew: SkewChange) -> SkewKind:
    """Return what Relative Δ after the change says."""
    now = skew.after
    if now is None:
        return "unknown"
    left = now.estimate - config.target
    if abs(left) < config.tolerance:
        if now.excludes(config.target):
            return "close"
        return "uncertain" if now.half_width > WIDE * config.tolerance else "reached"
    if skew.before is not None and (skew.before.estimate - config.target) * left < 0:
        return "overcorrected"
    return "missed"


def quality_kind(config: DebiasConfig, change: QualityChange) -> QualityKind:
    """Return whether a loss of the margin or more is excluded, possible, shown or not tested."""
    if change.test is None:
        return "unknown"
    if change.test.passed:
        return "kept"
    shown = (
        change.difference is not None
        and change.difference.upper < -config.relative_margin * change.before
    )
    return "lost" if shown else "open"


def falls(config: DebiasConfig, change: QualityChange) -> bool:
    """Whether a quality falls by more than the margin by its estimate, the mixed one at all."""
    relative = change.relative
    # In the decimals that are shown: a loss that reads 0.0% is none.
    least = 0.0 if change.quality == "mixed" else -100 * config.relative_margin
    return relative is None or round(relative, 1) < least


def _role(method: DebiasMethod | None, dataset: DebiasDataset, n_seen: int) -> Role:
    if method is None or not method.fitted_on:
        return "overlap" if n_seen else "unknown"
    if method.fitted_on == dataset.data.name:
        source = method.settings.get("source", "")
        # Fitted on the same data, but on the texts of another generating model.
        other_model = source.startswith("llm:") and source != dataset.other
        return "transfer" if other_model and not n_seen else "fitted"
    if n_seen:
        return "overlap"
    fitted, judged = (_collection(name) for name in (method.fitted_on, dataset.data.name))
    return "held out" if fitted == judged else "transfer"


def _collection(name: str) -> str:
    """Name of the data without its split."""
    return name.partition("/")[0]
