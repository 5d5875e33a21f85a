"""What distinguishes two sources, as data: spectra, geometry, perplexity, parts of a score gap."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "GapDecomposition",
    "GapFactor",
    "PerplexityGap",
    "SourceGeometry",
    "SpectrumComparison",
    "VectorMap",
]

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
    lower, upper : float64 arrays of shape (m,)
        Interval of each difference on its own; NaN beyond ``n_supported``.
    band_lower, band_upper : float64 arrays of shape (m,)
        Band that holds all differences up to there at once with the stated confidence.
    head, tail : Interval, Interval or None
        Mean difference, in percent, over the first tenth of the values and over the last half;
        no tail where there are too few pairs for it.
    confidence_level : float
    n : int
        Pairs of documents.
    resamples : int
    centred, normalised : bool
        Whether each source's mean was subtracted, and whether rows were scaled to length 1 before.
    method : {"exact", "randomised"}
    """

    human: FloatArray = field(repr=False)
    other: FloatArray = field(repr=False)
    difference: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    band_lower: FloatArray = field(repr=False)
    band_upper: FloatArray = field(repr=False)
    head: Interval
    tail: Interval | None
    confidence_level: float
    n: int
    resamples: int
    centred: bool
    normalised: bool
    method: str

    def __post_init__(self) -> None:
        names = ("other", "difference", "lower", "upper", "band_lower", "band_upper")
        shapes = {name: getattr(self, name).shape for name in names}
        if wrong := {name: s for name, s in shapes.items() if s != self.human.shape}:
            raise DataError(f"columns {wrong} beside {self.human.shape} singular values")

    @property
    def n_supported(self) -> int:
        """How many of the values have intervals.

        A resample of n pairs holds about 0.63 n different ones: later values vanish in it, and
        what it would tell of their error is wrong.
        """
        return min(len(self.human), int(PAIRS_HELD * self.n))


@dataclass(frozen=True, kw_only=True)
class SourceGeometry:
    """Where the vectors of two sources lie.

    Parameters
    ----------
    n, dimension : int
        Pairs, and components of a vector.
    shift : float
        Length of the mean difference between the versions of a document.
    common_share : Interval or None
        Share of the mean squared difference between versions that is the same for all pairs;
        unbiased, hence below 0 at times.
    probe_accuracy : Interval
        Of a linear probe on documents of pairs it has not seen; 0.5 is chance.
    probe_pair_accuracy : Interval
        How often it scores the other version above the human one of the same pair.
    twin_cosine : Interval or None
        Mean cosine of the two versions.
    anisotropy_human, anisotropy_other, anisotropy_difference : Interval or None
        Mean cosine between different documents of a source, and other minus human.
    """

    n: int
    dimension: int
    shift: float
    common_share: Interval | None
    probe_accuracy: Interval
    probe_pair_accuracy: Interval
    twin_cosine: Interval | None
    anisotropy_human: Interval | None
    anisotropy_other: Interval | None
    anisotropy_difference: Interval | None


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
    method : {"pca", "tsne", "umap"}
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
    no_difference : float
        Value at which the versions do not differ in it.
    component : Interval
        slope · (mean − no_difference), in units of the score.
    share : Interval or None
        Component over the mean gap; None where the mean gap is not well apart from 0.
    variance_share : Interval
        Share of the variance of gaps, averaged over orders of entry (Lindeman, Merenda and Gold).
    extrapolated : bool
        Whether no pair reaches ``no_difference``.
    """

    name: str
    slope: Interval
    mean: float
    no_difference: float
    component: Interval
    share: Interval | None
    variance_share: Interval
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
    remainder_share : Interval or None
    r_squared : Interval
        Share of the variance of gaps that goes with all factors.
    n, n_queries : int
    notes : tuple of str
    """

    gap: Interval
    factors: tuple[GapFactor, ...]
    remainder: Interval
    remainder_share: Interval | None
    r_squared: Interval
    n: int
    n_queries: int
    notes: tuple[str, ...] = ()
