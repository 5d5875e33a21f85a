"""Are two corpora searched alone as easy as each other: one test as data ([K] Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.types.intervals import Interval

__all__ = ["SoleCorpusTest", "SoleVerdict"]

SoleVerdict = Literal["equivalent", "different", "open"]


@dataclass(frozen=True, kw_only=True)
class SoleCorpusTest:
    """One measure of one retriever on the baseline texts alone and on the other source's alone.

    Parameters
    ----------
    system : str
    other : str
        Source compared with the baseline.
    measure : str
        Such as ``"NDCG@5"``.
    mean_baseline, mean_other : float
        In [0, 1], over the same queries.
    difference : Interval or None
        Baseline minus other, paired by query; None where it was refused.
    p_different, p_different_adjusted : float or None
        Sign-flip permutation test of no difference.
    margin, level : float
    p_equivalent, p_equivalent_adjusted : float or None
        Two one-sided tests of a difference of the margin or more.
    n_queries : int
        With a text and a relevant document in both corpora.
    n_needed : int or None
        Queries with which equal means would pass the test of equivalence with probability .8,
        corrected as the first of all tests; None where the difference seen is not within it.
    note : str or None
        Why it was not a t test.
    refusal : str or None
        Why there is no test.
    """

    system: str
    other: str
    measure: str
    mean_baseline: float
    mean_other: float
    difference: Interval | None
    p_different: float | None
    margin: float
    level: float
    p_equivalent: float | None
    n_queries: int
    n_needed: int | None
    p_different_adjusted: float | None = None
    p_equivalent_adjusted: float | None = None
    note: str | None = None
    refusal: str | None = None

    @property
    def verdict(self) -> SoleVerdict:
        """``"equivalent"`` where a difference of the margin is excluded, even if there is one."""
        if self.p_equivalent_adjusted is not None and self.p_equivalent_adjusted <= self.level:
            return "equivalent"
        if self.p_different_adjusted is not None and self.p_different_adjusted <= self.level:
            return "different"
        return "open"

    @property
    def needs_queries(self) -> int | None:
        """Queries needed where more of them could decide; None otherwise."""
        if self.verdict == "open" and self.n_needed is not None and self.n_needed > self.n_queries:
            return self.n_needed
        return None
