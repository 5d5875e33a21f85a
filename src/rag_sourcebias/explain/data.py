"""Why a retriever sees two sources differently, as data: what ``explain`` reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.data import FloatArray, Histogram
from rag_sourcebias.core.errors import check_level, require_at_least, setting
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.measure.texts import DataSummary

# What distinguishes two sources, as data: spectra, perplexity, parts of a score gap.


PAIRS_HELD = 0.6
"""Share of the pairs of which a resample surely holds as many different ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SpectrumComparison:
    """Singular values of the vectors of two sources ([K] Fig. 6).

    Parameters
    ----------
    human, other : float64 arrays of shape (m,)
        Singular values of each matrix of vectors, largest first.
    difference : float64 array of shape (m,)
        (other − human) / human · 100, per index.
    band_lower, band_upper : float64 arrays of shape (m,)
        Band that holds all differences at once with the stated confidence; NaN beyond
        ``n_supported``.
    head, tail : Interval, Interval or None
        Mean difference, in percent, over the first tenth of the values and over the last half;
        no tail where there are too few pairs for it.
    confidence_level : float
    n : int
        Pairs of documents.
    resamples : int
    centred, normalised : bool
        Whether each source's mean was subtracted, and whether rows were scaled to length 1 before.
    """

    human: FloatArray = field(repr=False)
    other: FloatArray = field(repr=False)
    difference: FloatArray = field(repr=False)
    band_lower: FloatArray = field(repr=False)
    band_upper: FloatArray = field(repr=False)
    head: Interval
    tail: Interval | None
    confidence_level: float
    n: int
    resamples: int
    centred: bool
    normalised: bool

    @property
    def n_supported(self) -> int:
        """How many of the values have intervals.

        A resample of n pairs holds about 0.63 n different ones: later values vanish in it, and
        what it would tell of their error is wrong.
        """
        return min(len(self.human), int(PAIRS_HELD * self.n))


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorMap:
    """Vectors of both sources in a plane.

    Parameters
    ----------
    human, other : float64 arrays of shape (n, 2)
        Row i of both is one pair.
    variance_shares : tuple of float, length 2
        Share of the variance of all vectors along each axis; empty unless the axes are main
        components.
    method : {"pca", "tsne"}
    """

    human: FloatArray = field(repr=False)
    other: FloatArray = field(repr=False)
    variance_shares: tuple[float, ...]
    method: str = "pca"


@dataclass(frozen=True, kw_only=True)
class PerplexityGap:
    """Log-perplexity of one source minus that of the human version of the same text.

    Parameters
    ----------
    mean_human, mean_other : float
        Mean log-perplexity (nats per token).
    gap : Interval
    share_lower : Interval
        Share of pairs whose other version has the lower perplexity; ties count half.
    gap_equal_length : Interval or None
        Gap at equal length, by regression on the log length ratio; None where lengths do not vary
        or there are too few pairs.
    n : int
        Pairs with both perplexities.
    n_left_out : int
        Pairs without: one of the texts has no token to predict.
    """

    mean_human: float
    mean_other: float
    gap: Interval
    share_lower: Interval
    gap_equal_length: Interval | None
    n: int
    n_left_out: int


@dataclass(frozen=True, kw_only=True)
class GapFactor:
    """What goes with one difference between versions in a regression of the score gap.

    Parameters
    ----------
    name : str
    slope : Interval
        Change of the score gap per unit, at equal values of the other factors.
    mean : float
        Mean of the factor.
    component : Interval
        slope · mean, in units of the score.
    extrapolated : bool
        Whether no pair comes to no difference (0).
    """

    name: str
    slope: Interval
    mean: float
    component: Interval
    extrapolated: bool


@dataclass(frozen=True, kw_only=True)
class GapDecomposition:
    """Mean score gap of twins as a sum of parts that go with differences between versions.

    An association: which of the differences causes the gap, it cannot say.

    Parameters
    ----------
    gap : Interval
        Mean of other's score minus human's.
    factors : tuple of GapFactor
    remainder : Interval
        Gap at no difference in any factor; components and remainder sum to the gap.
    n, n_queries : int
    notes : tuple of str
    """

    gap: Interval
    factors: tuple[GapFactor, ...]
    remainder: Interval
    n: int
    n_queries: int
    notes: tuple[str, ...] = ()


# Why a retriever sees two sources differently, as data: what ``explain`` reports.


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
    map_method : {"pca", "tsne"}
    map_limit : int
        Pairs on the map.
    centre, normalise : bool
        Of the vectors whose spectra are compared.
    confidence_level : float
    resamples : int
        Of the spectrum's band.
    seed : int
    """

    baseline_source: str = setting("human", "Source of the originals.", panel="What is looked at")
    limit: int | None = setting(
        None,
        "Pairs of each source, drawn at random, those relevant to a judged query first. "
        "\\[default: all]",
        panel="What is looked at",
        least=2,
    )
    perplexity_limit: int | None = setting(
        500,
        "Pairs of each source that a language model reads.",
        option="perplexity-pairs",
        panel="What is looked at",
        least=2,
    )
    map_method: Literal["pca", "tsne"] = setting(
        "pca",
        "pca or tsne (a picture only: distances of tsne mean little).",
        option="map",
        panel="How",
    )
    map_limit: int = 1_000
    centre: bool = setting(
        False, "Subtract each source's mean vector before spectra are compared.", panel="How"
    )
    normalise: bool = setting(
        False, "Scale vectors to length 1 before spectra are compared.", panel="How"
    )
    confidence_level: float = setting(0.95, "", panel="How")
    resamples: int = 200
    seed: int = setting(0, "", panel="How")

    def __post_init__(self) -> None:
        bounded = ("limit", "perplexity_limit", "map_limit")
        require_at_least(1, **{name: getattr(self, name) for name in bounded})
        check_level(self.confidence_level)


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
    """

    mean_words_human: float
    mean_words_other: float
    log_length_ratio: Interval
    jaccard: Histogram
    overlap: Histogram


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
    cosine : Histogram or None
        Of the vectors of both versions ([K] Fig. 5).
    spectrum : SpectrumComparison or None
    map : VectorMap or None
        The first ``map_limit`` pairs.
    perplexity : tuple of ModelPerplexity
    decomposition : GapDecomposition or None
        Of the encoder's score gap of relevant pairs, by query.
    notes : tuple of str
    missing : mapping of str to str
        Why a field is None or empty, by its name.
    """

    source: str
    n_pairs: int
    n_available: int
    texts: TextComparison
    cosine: Histogram | None = None
    spectrum: SpectrumComparison | None = None
    map: VectorMap | None = None
    perplexity: tuple[ModelPerplexity, ...] = ()
    decomposition: GapDecomposition | None = None
    notes: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False)
class ExplainResults(Stored):
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
    inputs, model : str
        How a command names the data and the encoder; empty where none can.
    """

    _versioned = ("report of an explanation", EXPLAIN_SCHEMA_VERSION)

    config: ExplainConfig
    data: DataSummary
    encoder: str
    sources: tuple[SourceExplanation, ...]
    environment: Mapping[str, str]
    created: str
    warnings: tuple[str, ...] = ()
    schema_version: int = EXPLAIN_SCHEMA_VERSION
    kind: Literal["explain"] = "explain"
    inputs: str = ""
    model: str = ""
