"""Parity calibration: scores of one source moved by what twins of it score too high."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import PathLike, read_fitted, write_fitted
from rag_sourcebias.core.data import DocTags, FloatArray
from rag_sourcebias.core.errors import CalibrationError, DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.means import clustered_mean, group_codes, normal_quantile, t_quantile

# Tag-aware parity calibration: documents of one source get other scores, in the same order.
# An encoder may give the rewrite of a text a systematically higher score than the text. Scores of
# both versions for the same queries say by how much (:mod:`rag_sourcebias.debias.parity`), and
# that number is then added to the scores of documents tagged as that source.


@dataclass(frozen=True, kw_only=True, eq=False)
class ParityCalibration:
    """A fitted calibration; a :class:`~rag_sourcebias.core.Rescorer`.

    Documents of the baseline, of a source that was not fitted, and of unknown source keep their
    scores.

    Parameters
    ----------
    encoder : str
        Fingerprint of the encoder (or reranker) whose scores were fitted; no other's scores may
        be calibrated with it.
    baseline : str
    sources : tuple of str, length S
    gaps : tuple of Interval, length S
        Mean of baseline score minus source score over the twins, clustered by query; the estimate
        is added to the scores of the source.
    n_pairs : tuple of int, length S
    """

    encoder: str
    baseline: str
    sources: tuple[str, ...]
    gaps: tuple[Interval, ...]
    n_pairs: tuple[int, ...]

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],  # noqa: ARG002
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,
    ) -> list[float] | None:
        """Return calibrated scores; None when no document is of a fitted source.

        Raises
        ------
        DataError
            If the retriever gave no scores.
        """
        sources = [tag.source for tag in tags]
        if not any(source in self.sources for source in sources):
            return None
        if scores is None:
            raise DataError(
                f"parity calibration needs the retriever's scores of the {len(doc_ids)} documents, "
                "there are none; keep them with InstrumentedRetriever(score_key=…)"
            )
        return [float(s) for s in self.apply(np.asarray(scores, dtype=np.float64), sources)]

    def apply(self, scores: FloatArray, sources: Sequence[str | None]) -> FloatArray:
        """Return calibrated scores of documents of the given sources; shape (n,)."""
        offsets = {s: gap.estimate for s, gap in zip(self.sources, self.gaps, strict=True)}
        moves = [0.0 if source is None else offsets.get(source, 0.0) for source in sources]
        return np.asarray(scores, dtype=np.float64) + np.array(moves, dtype=np.float64)


# A fitted parity calibration as a JSON file.


_KIND = "parity calibration"
_SCHEMA_VERSION = 1


def write_parity(calibration: ParityCalibration, path: PathLike) -> None:
    """Write a calibration as JSON; numbers are read back exactly.

    Raises
    ------
    DataError
        If the folder is missing.
    """
    write_fitted(calibration, path, kind=_KIND, version=_SCHEMA_VERSION)


def read_parity(path: PathLike, *, encoder: str | None = None) -> ParityCalibration:
    """Read what :func:`write_parity` wrote.

    Parameters
    ----------
    encoder : str, optional
        Fingerprint of the encoder in use.

    Raises
    ------
    CalibrationError
        If it was fitted on scores of another encoder.
    DataError
        If the file is missing, is not JSON, or holds no complete calibration.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    found = read_fitted(ParityCalibration, path, kind=_KIND, version=_SCHEMA_VERSION)
    if {len(found.gaps), len(found.n_pairs)} != {len(found.sources)}:
        raise DataError(f"{path}: expected one gap and number of pairs for each source")
    if encoder is not None and encoder != found.encoder:
        raise CalibrationError(
            f"{path} was fitted on scores of the encoder {found.encoder!r}; the one in use is "
            f"{encoder!r}. Fit it again on scores of that one"
        )
    return found


# Fit a parity calibration on twins: scores of two versions of one document for one query.
# Isotonic regression of one score on the other is left out on purpose: regression towards the mean
# pulls high scores down, and on ``nq-utd`` it turned a Relative Δ@3 of −9 into +13, where the
# offset gave about −1. Matching quantiles of the two scores did no better than the offset anywhere.
# Twins score so nearly alike that small shifts matter: with all-MiniLM-L6-v2, .003 moved Relative
# Δ@5 by 12 points on ``nfcorpus``. Fit on the corpus that is searched, and check the result there.


_MIN_QUERIES = 10
# The mean gap must be known to an eighth of the gaps' standard deviation, which is 5 points of the
# twins' win rate (φ(0)/8): with independent pairs that takes (1.97 · 8)² of them.
_PRECISION = 1 / 8
_MIN_PAIRS = 249
_ASSURED = 1.28  # nine forecasts in ten suffice, were the logarithm of the variance normal


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTwins:
    """Scores of both versions of documents for the same queries.

    Parameters
    ----------
    source : str
        Source of the other version, such as ``"llm:llama-2"``.
    baseline_scores, source_scores : float64 arrays of shape (n,)
        Row i holds one query and both versions of one document.
    queries : integer array of shape (n,)
        Same number, same query; pairs of one query are not independent.
    """

    source: str
    baseline_scores: FloatArray
    source_scores: FloatArray
    queries: npt.NDArray[np.integer[Any]]


def fit_parity(
    twins: Sequence[ScoredTwins],
    *,
    encoder: str,
    baseline: str = "human",
) -> ParityCalibration:
    """Fit a calibration, one offset for each source.

    Parameters
    ----------
    twins : sequence of ScoredTwins
        One item for each source.
    encoder : str
        ``fingerprint`` of the encoder that gave the scores.
    baseline : str
        Source whose scores stay as they are.

    Raises
    ------
    InsufficientDataError
        If the pairs of a source leave its mean gap less certain than an eighth of the gaps'
        standard deviation; it says how many are needed.
    """
    return ParityCalibration(
        encoder=encoder,
        baseline=baseline,
        sources=tuple(found.source for found in twins),
        gaps=tuple(_gap(found) for found in twins),
        n_pairs=tuple(len(found.queries) for found in twins),
    )


def _gap(twins: ScoredTwins) -> Interval:
    """Mean gap of the twins, refused where they are too few to know it."""
    gaps = twins.baseline_scores - twins.source_scores
    n, n_queries = len(gaps), len(np.unique(twins.queries))
    if n_queries < _MIN_QUERIES:
        raise InsufficientDataError(
            f"{n} pairs of {twins.source!r} for {n_queries} queries are too few to calibrate; at "
            f"least {_MIN_PAIRS} pairs for {_MIN_QUERIES} queries are needed",
            n=n,
            n_needed=max(_MIN_PAIRS, n),
        )
    found = clustered_mean(gaps, twins.queries)
    wanted = _PRECISION * float(gaps.std(ddof=1))
    if n < _MIN_PAIRS or found.half_width > wanted:
        needed = max(_MIN_PAIRS, _pairs_needed(twins.queries, gaps, found, wanted))
        raise InsufficientDataError(
            f"{n} pairs of {twins.source!r} for {n_queries} queries leave the mean gap "
            f"{found.estimate:.4g} uncertain by ±{found.half_width:.2g}; ±{wanted:.2g} (an eighth "
            f"of the gaps' standard deviation, 5 points of win rate) takes at least {needed} "
            "pairs, of more queries",
            n=n,
            n_needed=needed,
        )
    return found


def _pairs_needed(
    queries: npt.NDArray[np.integer[Any]], gaps: FloatArray, found: Interval, wanted: float
) -> int:
    """Pairs with which the gap will most likely be known well enough.

    How much the pairs of a query depend on one another is itself known from few queries, so the
    upper end of its uncertainty is taken: with the estimate, half of the forecasts are too low.
    """
    if not wanted > 0:
        return 0
    g, tail = found.n_labeled, 0.5 + found.confidence_level / 2
    codes, residuals = group_codes(queries), gaps - gaps.mean()
    sums, squares = (np.bincount(codes, weights=values) for values in (residuals, residuals**2))
    excess = sums**2 - np.sum(sums**2) / np.sum(squares) * squares
    unsure = math.sqrt(2 * float(np.mean(excess**2)) / g) / float(np.mean(sums**2))
    error = found.half_width / t_quantile(tail, g - 1) / wanted * math.sqrt(len(gaps))
    needed = error**2 * math.exp(_ASSURED * (1 + 6 / g) * unsure)
    queries_then = max(g, g * normal_quantile(tail) ** 2 * needed / len(gaps))
    return math.ceil(needed * t_quantile(tail, queries_then - 1) ** 2)
