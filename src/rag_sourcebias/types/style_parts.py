"""Statistics of style ranks that a report holds; computed in ``measures`` and ``inference``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["StyleCode", "StyleFinding", "Unfairness"]


class StyleCode(StrEnum):
    """What can be said of one system and its document styles.

    The first that applies: nothing was ranked, there are too few queries for any verdict, all
    average ranks lie within the margin of each other, the test of equal average ranks is
    significant, or none of these.
    """

    TIED = "tied"
    TOO_FEW = "too_few"
    ALIKE = "alike"
    FAVOURS = "favours"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleFinding:
    """The verdict on one system, under the original query style, with what it rests on.

    Parameters
    ----------
    code : StyleCode
    best, worst : str
        Styles with the smallest and the largest average rank.
    apart : float
        Distance of these two average ranks, in places.
    apart_at_most : float
        Upper confidence bound for the distance of any two true average ranks.
    margin : float
        Distance in places within which styles count as ranked alike.
    p_value : float
        Of equal average ranks (:class:`FriedmanTest`).
    n_queries : int
    n_needed : int or None
        Queries with which a verdict is reached four times in five; None where there is one.
    favoured, silenced : tuple of str
        Styles that rank above and below the original, after correction; only with ``FAVOURS``.
    """

    code: StyleCode
    best: str
    worst: str
    apart: float
    apart_at_most: float
    margin: float
    p_value: float
    n_queries: int
    n_needed: int | None = None
    favoured: tuple[str, ...] = ()
    silenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfairness:
    """The unfairness score with what is needed to read it.

    Parameters
    ----------
    score : float
        [W] Eq. 3, in [0, :func:`~rag_sourcebias.measures.max_unfairness`].
    null_expectation : float
        Mean score of a retriever without preferences on as many queries with the same ties.
    corrected : float
        ``score - null_expectation``: 0 on average without preferences, negative by chance. The
        more styles really differ, the smaller the true bias: then it is too low, by at most
        ``null_expectation``.
    normalised : float
        ``score`` in parts of its maximum, in [0, 1].
    rank_range : float
        (max − min) / (k − 1) of the average ranks, in [0, 1].
    ddof : int
    n_queries, n_styles : int
    """

    score: float
    null_expectation: float
    corrected: float
    normalised: float
    rank_range: float
    ddof: int
    n_queries: int
    n_styles: int
