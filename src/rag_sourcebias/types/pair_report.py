"""Is a paired corpus fit for an audit, as data: criteria, pairs, each corpus searched alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.histograms import Histogram
from rag_sourcebias.types.pair_checks import PairSummary, PairThresholds
from rag_sourcebias.types.pair_tests import SoleCorpusTest
from rag_sourcebias.types.reports import DataSummary
from rag_sourcebias.types.serial import from_versioned, to_plain

__all__ = [
    "PAIRS_SCHEMA_VERSION",
    "CheckedPair",
    "NamedIds",
    "PairCheckConfig",
    "PairCriteria",
    "PairReport",
    "SourcePairs",
]

PAIRS_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class PairCheckConfig:
    """Settings of the checks, besides their thresholds.

    Parameters
    ----------
    cutoffs : tuple of int
        Of the measures on corpora searched alone.
    measures : tuple of str
        Out of ``"NDCG"``, ``"MAP"``, ``"MRR"``, ``"P"``, ``"Recall"``.
    margin : float
        Difference of two means in [0, 1] that counts as none. The default, 5 points of
        NDCG × 100, is below the 7 to 12 points by which neural models differ at NDCG@1 on the
        mixed SciFact of [K] Table 4: what it lets pass cannot be taken for such a bias. Some 200
        queries can show it; half of it needs four times as many.
    level : float
        Error probability of the tests, after correction over the report.
    confidence_level : float
    ties : {"expected", "trec"}
    gain : {"linear", "exponential"}
    depth : int
        Documents retrieved per query.
    worst : int
        Flagged pairs of each source whose texts the report keeps.
    text_limit : int
        Characters of each text that the report keeps.
    resamples : int
        Of the permutation tests.
    seed : int
    """

    cutoffs: tuple[int, ...] = (1, 3, 5, 10)
    measures: tuple[str, ...] = ("NDCG", "MAP")
    margin: float = 0.05
    level: float = 0.05
    confidence_level: float = 0.95
    ties: Literal["expected", "trec"] = "expected"
    gain: Literal["linear", "exponential"] = "linear"
    depth: int = 100
    worst: int = 20
    text_limit: int = 4_000
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.cutoffs or min(self.cutoffs) < 1:
            raise DataError(f"cutoffs {self.cutoffs} must be one or more numbers of at least 1")
        if self.depth < max(self.cutoffs):
            raise DataError(f"depth {self.depth} is below the largest cutoff {max(self.cutoffs)}")
        if not 0 < self.margin < 1:
            raise DataError(f"margin {self.margin!r} is outside (0, 1); 0.05 is 5 points ×100")
        if not 0 < self.level < 0.5:
            raise DataError(f"level {self.level!r} is outside (0, 0.5); 0.05 is usual")
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level!r} is outside (0, 1)")
        if self.worst < 0 or self.text_limit < 1:
            raise DataError(
                f"worst {self.worst} must be at least 0, text_limit {self.text_limit} at least 1"
            )


@dataclass(frozen=True, kw_only=True)
class NamedIds:
    """How many, and the first of them.

    Parameters
    ----------
    n : int
    first : tuple of str
    """

    n: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairCriteria:
    """The three criteria of [K] §2 for one source, counted.

    Parameters
    ----------
    n_documents : int
        Of the corpus, all sources.
    untagged : NamedIds
        Documents without a source.
    n_pairs : int
        Documents with exactly the one counterpart.
    baseline_alone, other_alone : NamedIds
        Documents of the two sources without a counterpart.
    repeated : NamedIds
        Pairs with several documents of one source, of which the first is checked.
    n_labels : int
        Judgments of baseline documents that have a counterpart; 0 without judgments.
    labels_missing : NamedIds
        Of these, (query, document) whose counterpart is not judged for that query.
    labels_differ : NamedIds
        Of these, those whose counterpart has another grade.
    labels_added : NamedIds
        Judgments of counterparts whose baseline version is not judged for that query.
    """

    n_documents: int
    untagged: NamedIds
    n_pairs: int
    baseline_alone: NamedIds
    other_alone: NamedIds
    repeated: NamedIds
    n_labels: int
    labels_missing: NamedIds
    labels_differ: NamedIds
    labels_added: NamedIds

    @property
    def sources_known(self) -> bool:
        """Whether every document has a source."""
        return not self.untagged.n

    @property
    def one_to_one(self) -> bool:
        """Whether every document of both sources has exactly one counterpart."""
        return not (self.baseline_alone.n or self.other_alone.n or self.repeated.n)

    @property
    def labels_copied(self) -> bool | None:
        """Whether every judgment holds for the counterpart; None without judgments."""
        if not self.n_labels and not self.labels_added.n:
            return None
        return not (self.labels_missing.n or self.labels_differ.n or self.labels_added.n)


@dataclass(frozen=True, kw_only=True)
class CheckedPair:
    """One flagged pair with both texts.

    Parameters
    ----------
    baseline_text, other_text : str
        Cut to ``PairCheckConfig.text_limit`` characters.
    baseline_length, other_length : int
        Characters of the whole texts.
    broken : bool
    flags, reasons : tuple of str
        One reason per flag.
    values : mapping of str to float
        Values that the pair has, by name as in :class:`PairChecks`.
    numbers_missing, numbers_added, names_missing, names_added : tuple of str
        As written.
    """

    pair_id: str
    baseline_text: str
    other_text: str
    baseline_length: int
    other_length: int
    broken: bool
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    values: Mapping[str, float]
    numbers_missing: tuple[str, ...] = ()
    numbers_added: tuple[str, ...] = ()
    names_missing: tuple[str, ...] = ()
    names_added: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class SourcePairs:
    """Documents of one source and their baseline versions.

    Parameters
    ----------
    source : str
    criteria : PairCriteria
    summary : PairSummary
    histograms : mapping of str to Histogram
        Of ``length_ratio``, ``jaccard``, ``overlap`` ([K] Fig. 3) and, with an encoder, ``cosine``
        ([K] Fig. 5).
    flagged_ids : mapping of str to tuple of str
        All pairs with each flag; flags that nobody has are absent.
    worst : tuple of CheckedPair
    by_chance : float or None
        Likeness of mismatched pairs below which a pair counts as unrelated.
    """

    source: str
    criteria: PairCriteria
    summary: PairSummary
    histograms: Mapping[str, Histogram] = field(repr=False)
    flagged_ids: Mapping[str, tuple[str, ...]] = field(repr=False)
    worst: tuple[CheckedPair, ...] = field(repr=False)
    by_chance: float | None = None

    @property
    def broken_share(self) -> float:
        """Share of pairs that are broken, in [0, 1]; 0 without pairs."""
        return self.summary.n_broken / self.summary.n_pairs if self.summary.n_pairs else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PairReport:
    """What was found about a paired corpus.

    Parameters
    ----------
    kind : {"pairs"}
    data : DataSummary
    baseline_source : str
    sources : tuple of SourcePairs
    thresholds : PairThresholds
    threshold_reasons : mapping of str to str
        Why each threshold is what it is, in words.
    sole_corpus : tuple of SoleCorpusTest
    family : str
        Over which tests p-values are adjusted, in words.
    n_tests : int
    encoder : str
        Name of the encoder behind the cosines; empty without one.
    settings : mapping of str to mapping
        Of the encoder and of each retriever, by name.
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
    """

    schema_version: int = PAIRS_SCHEMA_VERSION
    kind: Literal["pairs"] = "pairs"
    data: DataSummary
    baseline_source: str
    config: PairCheckConfig
    sources: tuple[SourcePairs, ...]
    thresholds: PairThresholds
    threshold_reasons: Mapping[str, str]
    environment: Mapping[str, str]
    created: str
    sole_corpus: tuple[SoleCorpusTest, ...] = ()
    family: str = ""
    n_tests: int = 0
    encoder: str = ""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def of_source(self, source: str) -> SourcePairs:
        """Return the pairs of one source."""
        for found in self.sources:
            if found.source == source:
                return found
        raise DataError(f"no source {source!r}; there are {[s.source for s in self.sources]}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PairReport:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        return from_versioned(cls, data, version=PAIRS_SCHEMA_VERSION, what="pair report")
