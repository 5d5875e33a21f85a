"""What an audit of writing styles found, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.skew import TextStatistic
from rag_sourcebias.core.values import FriedmanTest, Interval, RankPair, Stored, from_versioned

# Queries and documents in several writing styles.


Versions = Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class StyledTexts:
    """n queries, each with one document; both written in several styles.

    Parameters
    ----------
    query_ids : tuple of str, length n
        Unique.
    queries, documents : mapping of style to tuple of (str or None), each of length n
        The text of query i (of its document) in that style, None where there is none. The first
        style of each is the original.
    doc_ids : tuple of str, length n
        Of the documents; queries that share a document share the id. Default: the query ids.
    distractors : tuple of str
        Further documents for an index.
    name, license, attribution : str

    Raises
    ------
    DataError
        If there is no query or style, an id occurs twice, a column has another length, or a text
        is not text.
    """

    query_ids: tuple[str, ...]
    queries: Versions = field(repr=False)
    documents: Versions = field(repr=False)
    doc_ids: tuple[str, ...] = field(default=(), repr=False)
    distractors: tuple[str, ...] = field(default=(), repr=False)
    name: str = "styles"
    license: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        n = len(self.query_ids)
        if not n:
            raise DataError("there is no query; at least one is needed")
        twice = [name for name, count in Counter(self.query_ids).items() if count > 1]
        if twice:
            raise DataError(f"query id {twice[0]!r} occurs twice; each query may come once")
        if not self.doc_ids:
            object.__setattr__(self, "doc_ids", self.query_ids)
        if len(self.doc_ids) != n:
            raise DataError(f"{len(self.doc_ids)} document ids for {n} queries; need as many")
        for side, versions in (("query", self.queries), ("document", self.documents)):
            if not versions:
                raise DataError(f"there is no {side} style; give the texts of at least one")
            for style, texts in versions.items():
                self._check(f"{side} style {style!r}", texts)

    def _check(self, what: str, texts: tuple[str | None, ...]) -> None:
        if len(texts) != len(self):
            raise DataError(f"{what} has {len(texts)} texts for {len(self)} queries; need as many")
        for query_id, text in zip(self.query_ids, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise DataError(
                    f"{what}, query {query_id!r}: {text!r:.80} is not text; use None for a "
                    "version that does not exist"
                )

    def __len__(self) -> int:
        return len(self.query_ids)


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
        [W] Eq. 3, in [0, :func:`~rag_sourcebias.style.measure.max_unfairness`].
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


# What an audit of writing styles found, as data.


STYLE_SCHEMA_VERSION = 1


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
    ties : {"average", "min", "max"}
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

    original: str = "human"
    original_query: str = "original"
    ddof: int = 0
    ties: Literal["average", "min", "max"] = "average"
    missing: Literal["refuse", "balanced"] = "balanced"
    cutoffs: tuple[int, ...] = (1, 5, 10)
    confidence_level: float = 0.95
    correction: Literal["holm", "bh", "none"] = "holm"
    resamples: int = 10_000
    seed: int = 0
    margin: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise DataError(
                f"margin {self.margin!r} is outside (0, 1); 0.1 lets average ranks of 11 styles "
                "differ by 1 place"
            )
        if not self.cutoffs or min(self.cutoffs) < 1:
            raise DataError(f"cutoffs {self.cutoffs} must be one or more numbers of at least 1")
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level} is outside (0, 1)")
        if self.resamples < 100:
            raise DataError(f"resamples {self.resamples} is too few for a test; use at least 100")
        if self.ddof not in (0, 1):
            raise DataError(f"ddof {self.ddof} must be 0 or 1")


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
    dropped: tuple[str, ...] = ()
    n_distractors: int = 0
    license: str = ""
    attribution: str = ""


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
    against_original: tuple[RankPair, ...] = ()
    adjusted_ranks: tuple[Interval | None, ...] = ()
    length_slope: float | None = None


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
    change: Interval | None = None
    p_value: float | None = None
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
    relative_delta: float | None = None
    interval: Interval | None = None


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
    pairs : tuple of RankPair
        All pairs of document styles under the original query style, adjusted together.
    mean_unfairness : Interval or None
        Over query styles ([W] Table 1, Avg).
    sd_unfairness : Interval or None
        Only in reports of version 0.1: its intervals held too rarely.
    finding : StyleFinding or None
        The verdict; None in reports of version 0.1.
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
    ranks: npt.NDArray[np.float64] = field(repr=False)
    rows: tuple[StyleRow, ...]
    pairs: tuple[RankPair, ...] = ()
    mean_unfairness: Interval | None = None
    sd_unfairness: Interval | None = None
    finding: StyleFinding | None = None
    matching: tuple[StyleGain, ...] = ()
    quality: tuple[StyleQuality, ...] = ()
    index_scores: tuple[StyleIndexScore, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def average_ranks(self) -> npt.NDArray[np.float64]:
        """Average ranks, shape (q, d) ([W] Eq. 2)."""
        means: npt.NDArray[np.float64] = self.ranks.mean(axis=0)
        return means


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleReport(Stored):
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

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StyleReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        return from_versioned(cls, data, version=STYLE_SCHEMA_VERSION, what="style report")
