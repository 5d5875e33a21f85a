"""What shares are held against: the corpus, the pool of candidates, or a frozen past."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.errors import DataError

__all__ = ["Baseline", "CorpusShare", "PoolShare", "ReferenceWindow", "baseline_of"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CorpusShare:
    """Known shares, such as those of the documents of each source in the corpus.

    Parameters
    ----------
    shares : mapping of str to float
        In [0, 1], with sum at most 1; ``""`` names documents without a tag. Only these groups are
        tested; others are counted.

    Raises
    ------
    DataError
        If there is none, one is outside [0, 1], or they sum to more than 1.
    """

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        found = dict(self.shares)
        if not found:
            raise DataError("a corpus share needs at least one group")
        for group, share in found.items():
            if not isinstance(group, str) or not (math.isfinite(share) and 0 <= share <= 1):
                raise DataError(f"share {share!r} of group {group!r} must be a number in [0, 1]")
        if sum(found.values()) > 1 + _ROUNDING:
            raise DataError(f"shares sum to {sum(found.values()):.9g}, which is more than 1")
        object.__setattr__(self, "shares", {g: float(share) for g, share in found.items()})

    @property
    def words(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{group or 'untagged'} {s:.4g}" for group, s in self.shares.items())
        return f"known shares: {parts}"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"kind": "corpus", "shares": dict(self.shares)}


@dataclass(frozen=True, slots=True)
class PoolShare:
    """Share among all candidates of the same query.

    The application retrieves more than it shows and reports all of it: the first ``shown``
    documents are watched, and all documents of the event are their pool. Given the pool, each
    rank has this share of a group on average as long as the order knows nothing of it.

    Parameters
    ----------
    shown : int
        At least 1. Events of no more documents than that are their own pool.

    Raises
    ------
    DataError
        If ``shown`` is below 1.
    """

    shown: int = 10

    def __post_init__(self) -> None:
        if self.shown < 1:
            raise DataError(f"shown must be at least 1, got {self.shown}")

    @property
    def words(self) -> str:
        """One line for people."""
        return f"share among all candidates of the same query (first {self.shown} shown)"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"kind": "pool", "shown": self.shown}


@dataclass(frozen=True, slots=True)
class ReferenceWindow:
    """Share in the first observations, which are then frozen.

    The error of the window is part of the level; see
    :mod:`rag_sourcebias.monitor.sequential.reference`.

    Parameters
    ----------
    n : int
        Observations of each set of labels, 2 to 100,000.

    Raises
    ------
    DataError
        If ``n`` is out of its range.
    """

    n: int = 1_000

    def __post_init__(self) -> None:
        if not 2 <= self.n <= 100_000:
            raise DataError(f"a reference window has 2 to 100000 observations, got {self.n}")

    @property
    def words(self) -> str:
        """One line for people."""
        return f"share in the first {self.n} observations"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"kind": "reference", "n": self.n}


Baseline = CorpusShare | PoolShare | ReferenceWindow


def baseline_of(data: Mapping[str, Any] | None) -> Baseline | None:
    """Return the baseline that ``to_plain`` described.

    Raises
    ------
    DataError
        If it is none.
    """
    if data is None:
        return None
    kinds = {"corpus": CorpusShare, "pool": PoolShare, "reference": ReferenceWindow}
    arguments = dict(data)
    kind = arguments.pop("kind", None)
    try:
        found: Baseline = kinds[kind](**arguments)
    except (KeyError, TypeError):
        raise DataError(f"stored baseline {dict(data)!r:.80} is none of {list(kinds)}") from None
    return found
