"""Queries and documents in several writing styles: from files, and what an audit found."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    setting,
)
from rag_sourcebias.core.finding import Evidence, Interval
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.measure.relevance import check_cutoffs

# Statistics of style ranks that a report holds; computed in ``measures`` and ``inference``.


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


@dataclass(frozen=True, kw_only=True)
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
    n_needed: int | None
    favoured: tuple[str, ...]
    silenced: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unfairness:
    """The unfairness score with what is needed to read it.

    Parameters
    ----------
    score : float
        [W] Eq. 3, in [0, :func:`~rag_sourcebias.style.measure.max_unfairness`].
    null_expectation : float
        Mean score of a retriever without preferences on as many queries with the same ties.
    corrected : float
        ``score - null_expectation``: 0 on average without preferences, negative by chance. The
        more styles really differ, the smaller the true bias: then it is too low, by at most
        ``null_expectation``.
    normalised : float
        ``score`` in parts of its maximum, in [0, 1].
    ddof : int
    n_queries, n_styles : int
    """

    score: float
    null_expectation: float
    corrected: float
    normalised: float
    ddof: int
    n_queries: int
    n_styles: int


# What an audit of writing styles found, as data.


STYLE_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class FriedmanTest:
    """Friedman's test that no style is ranked higher than another (Friedman 1937).

    Parameters
    ----------
    statistic : float
        χ², corrected for ties; 0 when every query ties all styles.
    degrees : int
        k − 1.
    p_value : float
        By Box's F, with two styles by the sign test.
    w : float or None
        Kendall's W, in [0, 1]; None when every query ties all styles.
    n_queries, n_styles : int
    """

    statistic: float
    degrees: int
    p_value: float
    w: float | None
    n_queries: int
    n_styles: int


@dataclass(frozen=True, kw_only=True)
class RankPair:
    """Two styles compared on the same queries.

    Parameters
    ----------
    first, second : str
    difference : float
        Average rank of the first minus that of the second; negative when the first is preferred.
    interval : Interval or None
        For the difference, not adjusted for the number of pairs; None when all queries agree
        exactly.
    p_value, p_adjusted : float
        Two-sided sign-flip permutation test; adjusted over all pairs compared.
    """

    first: str
    second: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True)
class StyleConfig:
    """Settings of a style audit.

    Parameters
    ----------
    original : str
        Document style that the others are compared with: the text as it was found.
    original_query : str
        Query style that the others are compared with.
    ddof : int
        Of the standard deviation in the unfairness score ([W] does not state it).
    margin : float
        Share of the k − 1 places by which average ranks may differ and still count as alike.
    missing : {"refuse", "balanced"}
        Raise when a version is missing, or use only the queries that have every version.
    cutoffs : tuple of int
        Of NDCG and recall in an index.
    confidence_level : float
    correction : {"holm", "bh", "none"}
    resamples : int
        Of the bootstrap over queries and of permutation tests.
    seed : int
    """

    original: str = setting(
        "human", "Document style that the others are compared with.", panel="Data"
    )
    original_query: str = setting(
        "original", "Query style that the others are compared with.", panel="Data"
    )
    ddof: int = 0
    missing: Literal["balanced", "refuse"] = setting(
        "balanced",
        "Where some version of a query is missing: balanced (use the queries that have all, and "
        "say how many were dropped) or refuse.",
        panel="Data",
    )
    cutoffs: tuple[int, ...] = setting(
        (1, 5, 10), "Cutoffs k of NDCG and recall in the index, separated by commas."
    )
    confidence_level: float = setting(0.95, "")
    correction: Literal["holm", "bh", "none"] = setting("holm", "holm, bh or none.")
    resamples: int = setting(10_000, "Of bootstrap and permutation tests.")
    seed: int = setting(0, "")
    margin: float = setting(
        0.1, "Average ranks that differ by less than this share of the k - 1 places are alike."
    )

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
        check_cutoffs(self.cutoffs)
        require_at_least(100, resamples=self.resamples)
        check_settings(
            (
                0 < self.margin < 1,
                "margin",
                f"{self.margin!r} is outside (0, 1); 0.1 lets average ranks of 11 styles "
                "differ by 1 place",
            ),
            (self.ddof in (0, 1), "ddof", f"{self.ddof} must be 0 or 1"),
        )


@dataclass(frozen=True, kw_only=True)
class StyleData:
    """The data behind a report.

    Parameters
    ----------
    n_queries : int
        Queries that have every version: all figures rest on these.
    dropped : tuple of str
        Queries left out because a version was missing.
    doc_styles, query_styles : tuple of str
        In the order of all arrays.
    n_distractors : int
        Documents of the index that are no version of any query's document.
    """

    name: str
    n_queries: int
    doc_styles: tuple[str, ...]
    query_styles: tuple[str, ...]
    dropped: tuple[str, ...]
    n_distractors: int
    license: str
    attribution: str


@dataclass(frozen=True, kw_only=True)
class StyleRow:
    """One query style of one system: how it ranks the document styles.

    Parameters
    ----------
    average_ranks : tuple of Interval or None, length d
        None where all queries agree exactly (the mean is in :attr:`StyleSystem.ranks`).
    unfairness : Unfairness
    unfairness_interval : Interval or None
    friedman : FriedmanTest
    against_original : tuple of RankPair, length d − 1
        Each document style (``first``) with the original (``second``), adjusted over the styles
        of this row; empty where the original is not among the document styles.
    adjusted_ranks : tuple of Interval or None
        Average ranks at equal length; empty where lengths cannot be told apart from styles.
    length_slope : float or None
        Ranks per unit of ln(words); negative when longer versions rank higher.
    """

    query_style: str
    average_ranks: tuple[Interval | None, ...]
    unfairness: Unfairness
    unfairness_interval: Interval | None
    friedman: FriedmanTest
    against_original: tuple[RankPair, ...]
    adjusted_ranks: tuple[Interval | None, ...]
    length_slope: float | None


def telling_styles(found: StyleFinding, row: StyleRow, original: str) -> tuple[str, str]:
    """Return the two styles that show a finding best: that which ranks higher first.

    The original and the style named that lies furthest from it; where none is named, the best and
    the worst.
    """
    named = {*found.favoured, *found.silenced}
    pairs = [pair for pair in row.against_original if pair.first in named]
    if not pairs:
        return found.best, found.worst
    most = max(pairs, key=lambda pair: abs(pair.difference)).first
    return (most, original) if most in found.favoured else (original, most)


@dataclass(frozen=True, kw_only=True)
class StyleGain:
    """Ranks that a document style gains when the query is in the same style.

    Parameters
    ----------
    style : str
        "" for all styles together.
    mean : float
        Average rank under all other query styles minus that under its own; positive: it ranks
        higher under queries of its own style.
    gain : Interval or None
    """

    style: str
    mean: float
    gain: Interval | None


@dataclass(frozen=True, kw_only=True)
class StyleQuality:
    """What it costs to ask in a style: quality over an index of the original documents.

    Parameters
    ----------
    query_style : str
        Style in which the queries are asked.
    measure : str
        ``"NDCG@5"``, ``"Recall@5"`` or the like.
    mean : float
        In [0, 1].
    score : Interval or None
    change : Interval or None
        Minus the score of the original query style, paired by query; None for that style itself
        and where no query differs.
    p_value, p_adjusted : float or None
        Two-sided paired permutation test, adjusted over query styles × measures.
    """

    query_style: str
    measure: str
    mean: float
    score: Interval | None
    change: Interval | None
    p_value: float | None
    p_adjusted: float | None = None


@dataclass(frozen=True, kw_only=True)
class StyleIndexScore:
    """One document style in an index that holds all styles: what source bias is for sources.

    Parameters
    ----------
    doc_style : str
        The style whose versions count as relevant.
    measure : str
        NDCG of the version in that style alone; other versions and documents are irrelevant.
    mean : float
        In [0, 1].
    score : Interval or None
    relative_delta : float or None
        Of the original style against this one, percent: positive when the original ranks higher.
    interval : Interval or None
        For Relative Δ.
    """

    doc_style: str
    measure: str
    mean: float
    score: Interval | None
    relative_delta: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleSystem:
    """One encoder, lexical scorer or whole retrieval stack.

    Parameters
    ----------
    name : str
    settings : mapping of str to str
    query_ids : tuple of str, length n
    ranks : float64 array of shape (n, q, d)
        Rank of each document style among the versions of the query's document; 1 is most similar.
    rows : tuple of StyleRow, length q
    mean_unfairness : Interval or None
        Over query styles ([W] Table 1, Avg).
    finding : StyleFinding
        The verdict.
    evidence : tuple of Evidence
        Queries in which the two styles of the verdict lie furthest apart.
    matching : tuple of StyleGain
        The last one, with style "", is all styles together.
    quality : tuple of StyleQuality
    index_scores : tuple of StyleIndexScore
        Under the original query style.
    notes : tuple of str
    """

    name: str
    settings: Mapping[str, str]
    query_ids: tuple[str, ...]
    ranks: npt.NDArray[np.float64]
    rows: tuple[StyleRow, ...]
    finding: StyleFinding
    mean_unfairness: Interval | None
    evidence: tuple[Evidence, ...]
    matching: tuple[StyleGain, ...]
    quality: tuple[StyleQuality, ...] = ()
    index_scores: tuple[StyleIndexScore, ...] = ()
    notes: tuple[str, ...]

    @property
    def average_ranks(self) -> npt.NDArray[np.float64]:
        """Average ranks, shape (q, d) ([W] Eq. 2)."""
        return np.asarray(self.ranks.mean(axis=0))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StyleResults(Stored):
    """The result of a style audit.

    Parameters
    ----------
    kind : {"style"}
        Tells report files apart.
    systems : tuple of StyleSystem
    document_statistics, query_statistics : tuple of TextStatistic
        Empty where texts were not given.
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
        What the reader must know before trusting a number.
    """

    _versioned = ("style report", STYLE_SCHEMA_VERSION)

    schema_version: int
    data: StyleData
    config: StyleConfig
    systems: tuple[StyleSystem, ...]
    environment: Mapping[str, str]
    created: str
    document_statistics: tuple[TextStatistic, ...] = ()
    query_statistics: tuple[TextStatistic, ...] = ()
    warnings: tuple[str, ...] = ()
    kind: Literal["style"] = "style"

    def system(self, name: str) -> StyleSystem:
        """Return one system by name."""
        for system in self.systems:
            if system.name == name:
                return system
        raise DataError(f"no system {name!r}; there are {[s.name for s in self.systems]}")
