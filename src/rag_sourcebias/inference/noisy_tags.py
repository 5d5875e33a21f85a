"""Relative Δ when source tags come from an imperfect detector (METHODS §1.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, normal_quantile
from rag_sourcebias.types.intervals import Interval

__all__ = ["DetectorQuality", "correct_relative_delta"]

MIN_YOUDEN = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorQuality:
    """How well a detector finds the other (LLM) source, from a labelled sample.

    Parameters
    ----------
    n_other, n_other_detected : int
        Labelled documents of the other source, and how many of them the detector tagged so.
    n_baseline, n_baseline_kept : int
        Labelled baseline documents, and how many the detector left as baseline.
    """

    n_other: int
    n_other_detected: int
    n_baseline: int
    n_baseline_kept: int

    def __post_init__(self) -> None:
        for n, hit, name in (
            (self.n_other, self.n_other_detected, "other"),
            (self.n_baseline, self.n_baseline_kept, "baseline"),
        ):
            if n < 1 or not 0 <= hit <= n:
                raise DataError(f"detector quality: {hit} of {n} {name} documents is impossible")

    @property
    def sensitivity(self) -> float:
        """Share of the other source that is found."""
        return self.n_other_detected / self.n_other

    @property
    def specificity(self) -> float:
        """Share of the baseline that is left alone."""
        return self.n_baseline_kept / self.n_baseline

    @property
    def youden(self) -> float:
        """Sensitivity + specificity − 1; 0 is useless, 1 perfect."""
        return self.sensitivity + self.specificity - 1

    @property
    def variances(self) -> tuple[float, float]:
        """Variance of the sensitivity and the specificity (Agresti–Coull smoothed)."""

        def variance(hit: int, n: int) -> float:
            share = (hit + 2) / (n + 4)
            return share * (1 - share) / (n + 4)

        return (
            variance(self.n_other_detected, self.n_other),
            variance(self.n_baseline_kept, self.n_baseline),
        )


def correct_relative_delta(observed: Interval, detector: DetectorQuality) -> Interval:
    """Correct Relative Δ measured with detected tags for the detector's errors.

    Observed = J·Δ + 200 (specificity − sensitivity) with J = sensitivity + specificity − 1,
    solved for Δ; the errors of the observed value, the sensitivity and the specificity combine
    by the delta method.

    The identity holds for measures that add up over documents: P, and every measure at cutoff 1.
    NDCG and MAP deeper down also divide by what is relevant to the detected source, which tag
    errors change: with one relevant document per source and sensitivity .9, specificity .9 the
    corrected value of MAP@5 is 2–7 points too far from 0; with unequal errors (.8, .9) up to 22
    points off. Correct P@5 rather than NDCG@5.

    Parameters
    ----------
    observed : Interval
        Relative Δ in percent, from detected tags.
    detector : DetectorQuality
        From a labelled sample of the user's own documents.

    Returns
    -------
    Interval
        Cut to [−200, 200].

    Raises
    ------
    InsufficientDataError
        If the interval of J reaches below 0.3: the detector is too weak to correct for.
    """
    level = observed.confidence_level
    check_level(level)
    z = normal_quantile(0.5 + level / 2)
    v_sens, v_spec = detector.variances
    j = detector.youden
    reach = z * math.sqrt(v_sens + v_spec)
    if j - reach < MIN_YOUDEN:
        raise InsufficientDataError(
            f"the detector's sensitivity + specificity − 1 is {j:.2f} ± {reach:.2f}, which reaches "
            f"below {MIN_YOUDEN}: too weak to correct for; verify more documents by hand or use a "
            "better detector",
            n=detector.n_other + detector.n_baseline,
        )
    delta = (observed.estimate - 200 * (detector.specificity - detector.sensitivity)) / j
    v_observed = (observed.half_width / z) ** 2
    variance = (v_observed + (200 + delta) ** 2 * v_spec + (200 - delta) ** 2 * v_sens) / j**2
    delta = min(max(delta, -200.0), 200.0)
    width = z * math.sqrt(variance)
    return Interval(
        estimate=delta,
        lower=max(delta - width, -200.0),
        upper=min(delta + width, 200.0),
        confidence_level=level,
        method=f"{observed.method}, corrected for tag errors",
        target=observed.target,
        n_labeled=observed.n_labeled,
        n_unlabeled=observed.n_unlabeled,
        assumptions=(
            *observed.assumptions,
            "the labelled documents are a random sample of the retrieved ones",
            "the detector errs independently of rank and of relevance",
            "the measure adds up over documents (P, or cutoff 1)",
        ),
    )
