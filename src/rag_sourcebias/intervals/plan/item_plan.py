"""How many items to label, as an answer."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ItemPlan", "saving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPlan:
    """Labelled items needed for a half-width, with a judge and without.

    Parameters
    ----------
    n_judge, n_alone : int
        Items to label in total, those of the pilot included. ``n_alone`` may be more than the
        pool has (population target).
    half_width : float
        Asked for.
    saved_low, saved_high : float
        Share of labels saved at the ends of the interval for the correlation.
    correlation : float
        Of human and judge values in the pilot; 0 if either is constant.
    target : str
    confidence_level : float
    n_pilot : int
    assumptions : tuple of str
    """

    n_judge: int
    n_alone: int
    half_width: float
    saved_low: float
    saved_high: float
    correlation: float
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_judge / self.n_alone

    def __str__(self) -> str:
        return (
            f"{self.n_judge:,} labelled items with the judge, {self.n_alone:,} without, for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}): "
            f"{saving(self.saved)}, {100 * self.saved_low:.0f}% to {100 * self.saved_high:.0f}% "
            f"as far as a pilot of {self.n_pilot:,} tells (judge r = {self.correlation:.2f})"
        )


def saving(share: float) -> str:
    """Say what share of labels is saved; honest when it is none or less than none."""
    percent = round(100 * share)
    if percent == 0:
        return "no labels saved"
    if percent < 0:
        return f"{-percent}% more labels than without a judge"
    return f"{percent}% of the labels saved"
