"""Why a retriever sees two sources differently, as data: what ``explain`` reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.explain import (
    GapDecomposition,
    PerplexityGap,
    SourceGeometry,
    SpectrumComparison,
    VectorMap,
)
from rag_sourcebias.types.histograms import Histogram
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import DataSummary
from rag_sourcebias.types.serial import from_versioned, to_plain

__all__ = [
    "EXPLAIN_SCHEMA_VERSION",
    "BoundedPerplexity",
    "ExplainConfig",
    "ExplainReport",
    "LexicalShift",
    "ModelPerplexity",
    "SourceExplanation",
    "TermShift",
    "TextComparison",
]

EXPLAIN_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ExplainConfig:
    """Settings of an explanation.

    Parameters
    ----------
    baseline_source : str
    limit : int or None
        Pairs of each source that are looked at, drawn at random, those relevant to a judged query
        before all others; None takes all.
    perplexity_limit : int or None
        Of these, pairs whose perplexity is computed (the first ones of the draw).
    map_method : {"pca", "tsne", "umap"}
    map_limit : int
        Pairs on the map.
    centre, normalise : bool
        Of the vectors whose spectra are compared.
    n_values : int or None
        Singular values compared; None compares all.
    terms : int
        Words named per list.
    confidence_level : float
    resamples : int
        Of the spectrum's band and of shares of variance.
    seed : int
    """

    baseline_source: str = "human"
    limit: int | None = None
    perplexity_limit: int | None = 500
    map_method: Literal["pca", "tsne", "umap"] = "pca"
    map_limit: int = 1_000
    centre: bool = False
    normalise: bool = False
    n_values: int | None = None
    terms: int = 15
    confidence_level: float = 0.95
    resamples: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("limit", "perplexity_limit", "map_limit", "n_values", "terms"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise DataError(f"{name} must be at least 1, got {value}")
        if not 0 < self.confidence_level < 1:
            raise DataError(f"confidence_level {self.confidence_level!r} is outside (0, 1)")


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """Both versions of documents as texts ([K] Table 1, Fig. 3).

    Parameters
    ----------
    mean_words_human, mean_words_other : float
    log_length_ratio : Interval
        Mean of log(words of the other version / words of the human one).
    jaccard, overlap : Histogram
        |d^G ∩ d^H| / |d^G ∪ d^H| and |d^G ∩ d^H| / |d^H| over distinct words.
    vocabulary_human, vocabulary_other, vocabulary_shared : int
        Distinct words of all versions of each source, and of both.
    """

    mean_words_human: float
    mean_words_other: float
    log_length_ratio: Interval
    jaccard: Histogram
    overlap: Histogram
    vocabulary_human: int
    vocabulary_other: int
    vocabulary_shared: int


@dataclass(frozen=True, kw_only=True)
class TermShift:
    """A word that one source uses more than the other.

    Parameters
    ----------
    term : str
    n_human, n_other : int
        Documents that hold it.
    log_odds : float
        Log odds ratio of a document holding it, other over human, with Jeffreys' ½ added.
    """

    term: str
    n_human: int
    n_other: int
    log_odds: float


@dataclass(frozen=True, kw_only=True)
class LexicalShift:
    """What a lexical retriever sees: words of queries in both versions, and their weights.

    On a mixed corpus a word that rewriting drops stands in half of the documents that had it: its
    weight there is higher than in the human corpus alone, and every document that keeps it, a
    human one, gains. This is an artefact of mixing, not of relevance.

    Parameters
    ----------
    n_queries, n_pairs : int
        Judged queries with text, and their relevant pairs.
    coverage_human, coverage_other : Interval
        Share of a query's weight (sum of idf, on the mixed corpus) whose words the relevant
        document holds, clustered by query.
    coverage_gap : Interval
        Other minus human.
    idf_change_human_only, idf_change_other_only : Interval or None
        Mean of idf on the mixed corpus minus idf on the source's own corpus, over query words that
        only the human (other) version of a relevant pair holds. None without such words.
    gap_own_idf : Interval
        ``coverage_gap`` with each source's words weighted by idf on its own corpus.
    more_human, more_other : tuple of TermShift
        Words that distinguish the sources most, by z score of the log odds.
    """

    n_queries: int
    n_pairs: int
    coverage_human: Interval
    coverage_other: Interval
    coverage_gap: Interval
    idf_change_human_only: Interval | None
    idf_change_other_only: Interval | None
    gap_own_idf: Interval
    more_human: tuple[TermShift, ...]
    more_other: tuple[TermShift, ...]


@dataclass(frozen=True, kw_only=True)
class BoundedPerplexity:
    """How far the human text predicts its rewrite ([K] App. B, "Bounded Perplexity").

    Log-perplexity of the rewrite minus that of the rewrite after the human text. The paper's
    ε bounds it for every pair; what can be observed is its distribution under one model.

    Parameters
    ----------
    mean : Interval
    upper : float
        95 % quantile over pairs: ε that holds for 95 of 100.
    n : int
    """

    mean: Interval
    upper: float
    n: int


@dataclass(frozen=True, kw_only=True)
class ModelPerplexity:
    """Perplexities of both versions under one language model ([K] Fig. 7).

    Parameters
    ----------
    model : str
    kind : {"causal", "masked"}
    gap : PerplexityGap
    human, other : Histogram
        Log-perplexities; same edges.
    bounded : BoundedPerplexity or None
        Causal models only.
    """

    model: str
    kind: Literal["causal", "masked"]
    gap: PerplexityGap
    human: Histogram
    other: Histogram
    bounded: BoundedPerplexity | None = None


@dataclass(frozen=True, kw_only=True)
class SourceExplanation:
    """What distinguishes one source from the baseline. None: not computed; ``missing`` says why.

    Parameters
    ----------
    source : str
    n_pairs : int
        Pairs looked at, of ``n_available``.
    n_available : int
    texts : TextComparison
    lexical : LexicalShift or None
        None without judged queries.
    cosine : Histogram or None
        Of the vectors of both versions ([K] Fig. 5).
    spectrum : SpectrumComparison or None
    geometry : SourceGeometry or None
    map : VectorMap or None
        The first ``map_limit`` pairs.
    perplexity : tuple of ModelPerplexity
    decomposition : GapDecomposition or None
        Of the encoder's score gap of relevant pairs, by query.
    notes : tuple of str
    missing : mapping of str to str
        Why a field is None or empty, by its name; reports of version 0.1 say it in ``notes``.
    """

    source: str
    n_pairs: int
    n_available: int
    texts: TextComparison
    lexical: LexicalShift | None = None
    cosine: Histogram | None = None
    spectrum: SpectrumComparison | None = None
    geometry: SourceGeometry | None = None
    map: VectorMap | None = None
    perplexity: tuple[ModelPerplexity, ...] = ()
    decomposition: GapDecomposition | None = None
    notes: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExplainReport:
    """What distinguishes sources for one encoder: associations, not causes.

    Parameters
    ----------
    kind : {"explain"}
    config : ExplainConfig
    data : DataSummary
    encoder : str
        Name; empty where only texts were compared.
    sources : tuple of SourceExplanation
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
    """

    config: ExplainConfig
    data: DataSummary
    encoder: str
    sources: tuple[SourceExplanation, ...]
    environment: Mapping[str, str]
    created: str
    warnings: tuple[str, ...] = ()
    schema_version: int = EXPLAIN_SCHEMA_VERSION
    kind: Literal["explain"] = "explain"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExplainReport:
        """Read what :meth:`to_dict` returned.

        Raises
        ------
        UnsupportedVersionError
            If another release wrote it.
        DataError
            If a field is missing or malformed.
        """
        return from_versioned(
            cls, data, version=EXPLAIN_SCHEMA_VERSION, what="report of an explanation"
        )
