"""Running sums of who gets the ranks under two retrievers, paired by query."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_sourcebias.instrument.shadow_summary import ShadowExposure
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.intervals import Interval

__all__ = ["MIN_CHANGED", "MIN_QUERIES", "PairedExposure"]

MIN_QUERIES = 30
MIN_CHANGED = 15  # fewer make a variance too uncertain for an interval, as in the audits
_MOST_SOURCES = 100
_ASSUMPTIONS = (
    "queries are independent draws from the traffic",
    "looked at once, at a time chosen beforehand",
)


class _Sums:
    """Of one source; a query in which it does not occur adds 0 everywhere."""

    __slots__ = ("candidate", "current", "n_changed", "squares")

    def __init__(self) -> None:
        self.current = self.candidate = self.squares = 0.0
        self.n_changed = 0


class PairedExposure:
    """Mean share of the exposure of each source under both, and of their difference.

    Not thread-safe. Sources beyond the hundredth are counted as ``"other"``.
    """

    def __init__(self) -> None:
        self.n = 0
        self._sums: dict[str, _Sums] = {}

    def add(self, current: Sequence[DocTags], candidate: Sequence[DocTags]) -> None:
        """Take one query, with the tags of both rankings, best first; neither may be empty."""
        shares = self._shares(current), self._shares(candidate)
        self.n += 1
        for name in shares[0].keys() | shares[1].keys():
            found = self._sums.setdefault(name, _Sums())
            now, then = shares[0].get(name, 0.0), shares[1].get(name, 0.0)
            found.current += now
            found.candidate += then
            found.squares += (then - now) ** 2
            found.n_changed += abs(then - now) > 1e-12

    def rows(self, level: float) -> tuple[ShadowExposure, ...]:
        """Return the means so far, by source."""
        return tuple(
            ShadowExposure(
                source=name,
                current=found.current / self.n,
                candidate=found.candidate / self.n,
                difference=(found.candidate - found.current) / self.n,
                interval=self._interval(found, level),
                n_changed=found.n_changed,
            )
            for name, found in sorted(self._sums.items())
        )

    def _shares(self, tags: Sequence[DocTags]) -> dict[str, float]:
        weights = [1 / math.log2(rank + 1) for rank in range(1, len(tags) + 1)]
        total = sum(weights)
        shares: dict[str, float] = {}
        for weight, tag in zip(weights, tags, strict=True):
            name = tag.source or ""
            if name not in self._sums and len(self._sums) >= _MOST_SOURCES:
                name = "other"
            shares[name] = shares.get(name, 0.0) + weight / total
        return shares

    def _interval(self, found: _Sums, level: float) -> Interval | None:
        """Student's t interval for the mean of the per-query differences."""
        if self.n < MIN_QUERIES or found.n_changed < MIN_CHANGED:
            return None
        from scipy.special import stdtrit

        mean = (found.candidate - found.current) / self.n
        variance = max(found.squares - self.n * mean**2, 0.0) / (self.n - 1)
        width = float(stdtrit(self.n - 1, 0.5 + level / 2)) * math.sqrt(variance / self.n)
        return Interval(
            estimate=mean,
            lower=max(mean - width, -1.0),
            upper=min(mean + width, 1.0),
            confidence_level=level,
            method="paired t",
            n_labeled=self.n,
            assumptions=_ASSUMPTIONS,
        )
