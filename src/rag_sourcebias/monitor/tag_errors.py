"""Shares corrected for the errors of a tagger (METHODS §1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.noisy_tags import MIN_YOUDEN, DetectorQuality
from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["TagErrors", "tag_errors_of"]

_ROUNDING = 1e-6
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class TagErrors:
    """What a tagger makes of documents of each group.

    Observed shares are o = Cᵀ t, so that t = C⁻ᵀ o are the true ones. Assumed: the tagger errs
    independently of the rank, and as often as in the sample that C was measured on. Documents
    without a tag, and those of groups that are not named, are left as they are; a tagger that
    leaves documents untagged is taken to do so as often for every group.

    Parameters
    ----------
    groups : tuple of str
        At least 2 names of sources, or styles.
    confusion : tuple of tuple of float, shape (groups, groups)
        C: row i says how documents of ``groups[i]`` that get a tag are tagged; it sums to 1.

    Raises
    ------
    DataError
        If the shape does not fit, a row is no distribution, or the tagger is useless:
        ``separation`` below 0.3.

    Examples
    --------
    >>> errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other="llm")
    >>> {group: round(s, 3) for group, s in errors.correct({"human": 0.45, "llm": 0.55}).items()}
    {'human': 0.5, 'llm': 0.5}
    """

    groups: tuple[str, ...]
    confusion: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "confusion", tuple(tuple(row) for row in self.confusion))
        k = len(self.groups)
        if k < 2 or len(set(self.groups)) < k or not all(isinstance(g, str) for g in self.groups):
            raise DataError(f"tag errors need two or more different groups, got {self.groups!r}")
        if "" in self.groups or "other" in self.groups:
            raise DataError("tag errors are those of named groups, not of '' or 'other'")
        if len(self.confusion) != k or any(len(row) != k for row in self.confusion):
            raise DataError(f"the confusion of {k} groups needs {k} rows of {k} numbers")
        for group, row in zip(self.groups, self.confusion, strict=True):
            if not all(0 <= p <= 1 for p in row) or abs(sum(row) - 1) > _ROUNDING:
                raise DataError(
                    f"documents of {group!r} are tagged {list(row)}, which is no distribution: "
                    "numbers in [0, 1] with sum 1 are expected"
                )
        if not self.separation >= MIN_YOUDEN:
            raise DataError(
                f"the tagger separates the groups by {self.separation:.2f} only (sensitivity + "
                f"specificity - 1 for two groups); correcting its errors needs {MIN_YOUDEN} or more"
            )

    @classmethod
    def of_rates(
        cls, *, sensitivity: float, specificity: float, baseline: str, other: str
    ) -> TagErrors:
        """Return those of a detector of ``other``.

        Parameters
        ----------
        sensitivity : float
            Part of ``other`` that is tagged so.
        specificity : float
            Part of ``baseline`` that is tagged so.
        baseline, other : str
        """
        rows = ((specificity, 1 - specificity), (1 - sensitivity, sensitivity))
        return cls((baseline, other), rows)

    @classmethod
    def of_detector(cls, quality: DetectorQuality, *, baseline: str, other: str) -> TagErrors:
        """Return those of a detector that was tried on a labelled sample.

        Raises
        ------
        DataError
            As of the class; also if the 95 % interval of sensitivity + specificity − 1 reaches
            below 0.3.
        """
        reach = normal_quantile(0.5 + _LEVEL / 2) * float(np.sqrt(sum(quality.variances)))
        if quality.youden - reach < MIN_YOUDEN:
            raise DataError(
                f"the detector's sensitivity + specificity - 1 is {quality.youden:.2f} ± "
                f"{reach:.2f}, which reaches below {MIN_YOUDEN}: too weak to correct for; verify "
                "more documents by hand or use a better detector"
            )
        return cls.of_rates(
            sensitivity=quality.sensitivity,
            specificity=quality.specificity,
            baseline=baseline,
            other=other,
        )

    @property
    def separation(self) -> float:
        """Smallest part of a difference of shares that is left after tagging, in [0, 1].

        Sensitivity + specificity − 1 for two groups. An error of observed shares grows to at most
        that error over this, in total variation distance.
        """
        matrix = np.array(self.confusion)
        if np.linalg.matrix_rank(matrix) < len(matrix):
            return 0.0
        inverse = np.linalg.inv(matrix)
        pairs = combinations(inverse, 2)
        return float(1 / max(np.abs(one - two).sum() / 2 for one, two in pairs))

    def correct(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Return shares with those of the groups corrected.

        Their sum stays as it is. Where observed shares are such as no true ones could give on
        average, as with few retrievals, groups below 0 get 0 and the others are scaled to the sum.

        Parameters
        ----------
        shares : mapping of str to float
            Observed, by group; those of groups that are not there are 0.
        """
        observed = np.array([shares.get(group, 0.0) for group in self.groups])
        found: FloatArray = np.maximum(np.linalg.solve(np.array(self.confusion).T, observed), 0.0)
        total = float(found.sum())
        if total > 0:
            found = found * (float(observed.sum()) / total)
        return dict(shares) | dict(zip(self.groups, found.tolist(), strict=True))

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"groups": list(self.groups), "confusion": [list(row) for row in self.confusion]}


def tag_errors_of(data: Mapping[str, Any] | None) -> TagErrors | None:
    """Return what ``to_plain`` described.

    Raises
    ------
    DataError
        If it is nothing of that kind.
    """
    if data is None:
        return None
    try:
        return TagErrors(**data)
    except TypeError:
        raise DataError(f"stored tag errors {dict(data)!r:.80} cannot be read") from None
