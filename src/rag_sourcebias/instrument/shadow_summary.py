"""What a shadow comparison found, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import to_plain

__all__ = ["ShadowExposure", "ShadowLatency", "ShadowSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowExposure:
    """Share of the exposure of one source under both retrievers, for the same queries.

    Parameters
    ----------
    source : str
        ``""`` are documents of unknown source.
    current, candidate : float
        Mean over queries of the source's share of Σ 1/log2(rank + 1), in [0, 1].
    difference : float
        Candidate minus current.
    interval : Interval or None
        Of the difference; None where too few queries say how much it varies.
    n_changed : int
        Queries in which the share differs.
    """

    source: str
    current: float
    candidate: float
    difference: float
    interval: Interval | None
    n_changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowLatency:
    """Seconds that the last (at most 1,000) timed retrievals took; p95 is the 95th percentile."""

    n: int
    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSummary:
    """Both retrievers on the queries seen so far.

    Parameters
    ----------
    n_queries : int
        Queries compared.
    n_empty : int
        Those among them for which both returned nothing; they enter no other number.
    n_unsampled, n_failed, n_dropped : int
        Queries left out: by the sampling, because the one that did not answer raised, and because
        the queue was full or closed or a result could not be read.
    depth : int
        Ranks compared.
    overlap, rank_biased_overlap, first_changed : float or None
        Means in [0, 1]; ``first_changed`` is the share of queries with another first document.
        None before there is a query.
    persistence : float
        p of the rank-biased overlap.
    exposure : tuple of ShadowExposure
        Over the queries for which both returned something, ``n_exposed`` of them.
    n_exposed : int
    latency_current, latency_candidate : ShadowLatency or None
    most_changed : tuple of (str, float)
        Identifiers of queries with the smallest rank-biased overlap, where identifiers were given.
    note : str
        Why there is no interval, or "".
    """

    n_queries: int
    n_empty: int
    n_unsampled: int
    n_failed: int
    n_dropped: int
    depth: int
    overlap: float | None
    rank_biased_overlap: float | None
    first_changed: float | None
    persistence: float
    exposure: tuple[ShadowExposure, ...]
    n_exposed: int
    latency_current: ShadowLatency | None
    latency_candidate: ShadowLatency | None
    most_changed: tuple[tuple[str, float], ...]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    def __str__(self) -> str:
        parts = [self._counts()]
        if self.overlap is not None:
            parts.append(
                f"Of the first {self.depth} documents {100 * self.overlap:.1f} % are the same "
                f"(rank-biased overlap {self.rank_biased_overlap:.3f}, p = {self.persistence:g}), "
                f"and {100 * (self.first_changed or 0.0):.1f} % of the queries have another first "
                "document."
            )
        parts += [_exposure_text(row) for row in self.exposure]
        if self.note:
            parts.append(self.note)
        if self.latency_current and self.latency_candidate:
            now, then = self.latency_current, self.latency_candidate
            parts.append(
                f"Median time {1000 * now.median:.3g} ms against {1000 * then.median:.3g} ms "
                f"(95th percentile {1000 * now.p95:.3g} and {1000 * then.p95:.3g} ms); the one "
                "that does not answer is asked later, on another thread."
            )
        parts.append("None of this says which ranking is better; that takes judged queries.")
        return " ".join(parts)

    def _counts(self) -> str:
        left_out = [
            f"{n} {why}"
            for n, why in (
                (self.n_unsampled, "not sampled"),
                (self.n_failed, "failed"),
                (self.n_dropped, "dropped"),
            )
            if n
        ]
        rest = f" ({', '.join(left_out)})" if left_out else ""
        empty = f", {self.n_empty} of them without a result from either" if self.n_empty else ""
        return f"{self.n_queries} queries compared{empty}{rest}."


def _exposure_text(row: ShadowExposure) -> str:
    ends = ""
    if row.interval is not None:
        ends = (
            f", {100 * row.interval.confidence_level:.4g}% interval "
            f"[{100 * row.interval.lower:+.1f}, {100 * row.interval.upper:+.1f}]"
        )
    return (
        f"{row.source or 'Unknown source'}: {100 * row.current:.1f} % of the exposure now, "
        f"{100 * row.candidate:.1f} % with the candidate "
        f"({100 * row.difference:+.1f} points{ends})."
    )
