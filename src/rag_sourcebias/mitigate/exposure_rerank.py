"""Exposure-aware re-ranking: every source keeps a minimum share at every depth.

The method is DetConstSort (Geyik, Ambler & Kenthapadi, "Fairness-aware ranking in search &
recommendation systems with application to LinkedIn Talent Search", KDD 2019, Algorithm 3), which
has a feasible answer for any number of sources, with the changes named in
:func:`constrained_order`. It is written here because no well-kept library offers one:
fairsearchcore (FA*IR, two groups) was last released in 2019, FairRankTune in 2023, AIF360 in April
2024, and fairlearn has no re-ranking.

It is for a source that is crowded out. Rounded down, a minimum share says nothing about the first
place, and where twins already alternate in the ranking there is next to nothing to change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.source import source_codes_for
from rag_sourcebias.types.documents import DocTags, TagTable
from rag_sourcebias.types.rankings import Run

__all__ = ["ExposureReranker", "constrained_order"]


def constrained_order(groups: Sequence[int], shares: Sequence[Fraction]) -> list[int]:
    """Order candidates so that each prefix holds a minimum number of every group.

    The first k places hold at least ``min(floor(share · k), size of the group)`` of each group.
    Within a group the order stays; a candidate moves ahead of a better one only where a minimum
    demands it.

    Parameters
    ----------
    groups : sequence of int, length n
        Group of each candidate, best candidate first.
    shares : sequence of Fraction
        Minimum share of each group, in [0, 1], together at most 1.

    Returns
    -------
    list of int, length n
        Indices of the candidates in their new order.

    Raises
    ------
    DataError
        If the shares add up to more than 1.

    Notes
    -----
    DetConstSort places the next best of a group in the first prefix that needs it, and moves it up
    past worse ones that can still wait. Two things differ from the printed algorithm. Its condition
    for waiting (``maxIndices[start − 1] ≥ start``, places counted from 0 and prefixes from 1) lets
    a candidate slip one place below its minimum; here it must be in the prefix. And it takes groups
    that never run out and shares that add up to 1; here a group may run out, and who is in no
    minimum is merged in by rank, as far up as the others can wait.

    Among all orders that keep the minima, the one for two groups reverses the fewest pairs of
    candidates and is the first in lexical order of ranks (tested against all orders of up to 6).
    With three groups or more it need not be, as in the paper: 5 % of random small cases had a
    better one.
    """
    if sum(shares) > 1:
        raise DataError(f"minimum shares {[float(s) for s in shares]} add up to more than 1")
    n = len(groups)
    waiting: list[list[int]] = [[] for _ in shares]
    for index in range(n - 1, -1, -1):
        waiting[groups[index]].append(index)  # the best candidate of a group is its last item
    placed: list[int] = []
    deadlines: list[int] = []

    def place(candidate: int, deadline: int) -> None:
        at = len(placed)
        while at and placed[at - 1] > candidate and deadlines[at - 1] > at:
            at -= 1
        placed.insert(at, candidate)
        deadlines.insert(at, deadline)

    counts = [0] * len(shares)
    for k in range(1, n + 1):
        due = [
            group
            for group, share in enumerate(shares)
            if waiting[group] and share.numerator * k // share.denominator > counts[group]
        ]
        for group in sorted(due, key=lambda g: waiting[g][-1]):
            place(waiting[group].pop(), k)
            counts[group] += 1
    for candidate in sorted(index for rest in waiting for index in rest):
        place(candidate, n)
    return placed


class ExposureReranker:
    """Re-rank what one query retrieved; a :class:`~rag_sourcebias.protocols.Rescorer`.

    Only the order of the documents is read, not their scores. Untagged documents keep their ranks;
    minimum shares count among the tagged ones. The new scores are n, n − 1, …, 1.

    Parameters
    ----------
    minimum_shares : mapping of str to float, optional
        Minimum share of each source among the first k documents, for every k; together at most 1.
        Sources that are not named have no minimum. By default the share of each source among the
        candidates of the query, so that who ranks first no longer depends on the source; retrieve
        more documents than are shown, so that this share is that of a wider pool.

    Raises
    ------
    DataError
        If a share is outside [0, 1], or they add up to more than 1.
    """

    def __init__(self, minimum_shares: Mapping[str, float] | None = None) -> None:
        self.minimum_shares = None if minimum_shares is None else dict(minimum_shares)
        self._shares = None if minimum_shares is None else _exact(minimum_shares)

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],  # noqa: ARG002
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,  # noqa: ARG002
    ) -> list[float] | None:
        """Return scores that fall with the new rank; None when there is one source only."""
        if len(tags) != len(doc_ids):
            raise DataError(f"{len(doc_ids)} documents but {len(tags)} tags; need as many")
        order = self.order([tag.source for tag in tags])
        if order is None:
            return None
        new = [0.0] * len(order)
        for rank, index in enumerate(order):
            new[index] = float(len(order) - rank)
        return new

    def order(self, sources: Sequence[str | None]) -> list[int] | None:
        """Return the new order of documents of these sources, given best first."""
        names = sorted({source for source in sources if source is not None})
        if len(names) < 2:
            return None
        tagged = [index for index, source in enumerate(sources) if source is not None]
        groups = [names.index(source) for source in sources if source is not None]
        if self._shares is None:
            shares = [Fraction(groups.count(group), len(groups)) for group in range(len(names))]
        else:
            shares = [self._shares.get(name, Fraction(0)) for name in names]
        order = list(range(len(sources)))
        for place, chosen in zip(tagged, constrained_order(groups, shares), strict=True):
            order[place] = tagged[chosen]
        return order

    def apply_to(self, run: Run, tags: TagTable) -> Run:
        """Return the run with every query re-ranked; it has no scores any more."""
        codes = source_codes_for(run.doc_ids, tags)[run.doc_codes]
        sources = [tags.sources[code] if code >= 0 else None for code in codes.tolist()]
        picked = np.arange(len(codes))
        for start, stop in zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True):
            order = self.order(sources[start:stop])
            if order is not None:
                picked[start:stop] = np.asarray(order) + start
        return Run(
            query_ids=run.query_ids,
            offsets=run.offsets,
            doc_codes=run.doc_codes[picked],
            doc_ids=run.doc_ids,
            name=run.name,
            n_duplicates=run.n_duplicates,
        )


def _exact(shares: Mapping[str, float]) -> dict[str, Fraction]:
    """Shares as the decimals they were written as: .29 of 100 is 29, not 28."""
    for source, share in shares.items():
        if not (math.isfinite(share) and 0 <= share <= 1):
            raise DataError(
                f"minimum share {share!r} of {source!r} is outside [0, 1]; give shares such as .5"
            )
    exact = {source: Fraction(str(float(share))) for source, share in shares.items()}
    if not exact or sum(exact.values()) > 1:
        raise DataError(
            f"minimum shares {dict(shares)} add up to {float(sum(exact.values())):g}; expected at "
            "least one source and at most 1 together"
        )
    return exact
