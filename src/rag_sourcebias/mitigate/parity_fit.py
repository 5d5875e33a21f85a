"""Fit a parity calibration on twins: scores of two versions of one document for one query.

Two forms. ``"offset"`` adds the mean gap of the twins. ``"quantiles"`` maps the score distribution
of one version to that of the other (equipercentile equating), for a gap that grows or shrinks with
the score. Isotonic regression of one score on the other is left out on purpose: regression towards
the mean pulls high scores down, and on ``nq-utd`` it turned a Relative Δ@3 of −9 into +13, where
both forms here gave about −1.

Twins score so nearly alike that small shifts matter: with all-MiniLM-L6-v2, .003 moved Relative
Δ@5 by 12 points on ``nfcorpus``. Fit on the corpus that is searched, and check the result there.

``calibration = fit_parity([scored_twins(run, …)], encoder=encoder.fingerprint)``, then
``DebiasCompressor(calibration)`` or ``calibration.apply_to(run, tags)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.measures.twins import twin_ranks
from rag_sourcebias.mitigate.parity import ParityCalibration, ParityForm, ScoreMap
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["ScoredTwins", "fit_parity", "scored_twins"]


_MIN_QUERIES = 10
# The mean gap must be known to an eighth of the gaps' standard deviation, which is 5 points of the
# twins' win rate (φ(0)/8): with independent pairs that takes (1.97 · 8)² of them.
_PRECISION = 1 / 8
_MIN_PAIRS = 249
_BIN_PAIRS = 50  # the mean score of a bin is then known to a seventh of its spread
_MAX_BINS = 20
_MIN_BINS = 5  # fewer say nothing about the form that an offset does not


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

    Raises
    ------
    DataError
        If the lengths differ or a score is not finite.
    """

    source: str
    baseline_scores: FloatArray
    source_scores: FloatArray
    queries: npt.NDArray[np.integer[Any]]

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise DataError("twins need the source of the other version, such as 'llm:llama-2'")
        shapes = {np.shape(a) for a in (self.baseline_scores, self.source_scores, self.queries)}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise DataError(
                f"twins of {self.source!r}: shapes {sorted(shapes)}; expected three columns of "
                "the same length"
            )
        for scores in (self.baseline_scores, self.source_scores):
            if len(bad := np.flatnonzero(~np.isfinite(scores))):
                raise DataError(
                    f"twins of {self.source!r}: score {scores[bad[0]]} in pair {bad[0]}; expected "
                    "finite numbers"
                )


def scored_twins(
    run: Run, qrels: Qrels, tags: TagTable, *, source: str, baseline: str = "human"
) -> ScoredTwins:
    """Collect scores of twins that are both relevant, from a run over the mixed corpus.

    Raises
    ------
    DataError
        If the run has no scores, or holds only one version of a pair: keeping pairs of which both
        reached the run's depth would select on the scores.
    """
    if run.scores is None:
        raise DataError(f"run {run.name!r} has no scores; parity calibration needs them")
    found = twin_ranks(run, qrels, tags, baseline=baseline, other=source)
    cut = int(np.count_nonzero(np.isnan(found.baseline_rank) | np.isnan(found.other_rank)))
    if cut or found.n_unseen:
        raise DataError(
            f"run {run.name!r} misses one version of {cut} pairs and both of {found.n_unseen}; "
            f"retrieve to a depth that holds all of them (the corpus has {len(tags)} documents)"
        )
    return ScoredTwins(
        source=source,
        baseline_scores=found.baseline_score,
        source_scores=found.other_score,
        queries=found.query,
    )


def fit_parity(
    twins: Sequence[ScoredTwins],
    *,
    encoder: str,
    baseline: str = "human",
    form: ParityForm = "offset",
    confidence_level: float = 0.95,
) -> ParityCalibration:
    """Fit a calibration, one increasing map for each source.

    Parameters
    ----------
    twins : sequence of ScoredTwins
        One item for each source.
    encoder : str
        ``fingerprint`` of the encoder that gave the scores.
    baseline : str
        Source whose scores stay as they are.
    form : {"offset", "quantiles"}
        ``"offset"`` adds the mean gap of the twins. ``"quantiles"`` maps the score distribution of
        one version to that of the other (equipercentile equating), for a gap that grows or shrinks
        with the score.

    Raises
    ------
    InsufficientDataError
        If the pairs of a source leave its mean gap less certain than an eighth of the gaps'
        standard deviation, or are too few for quantiles; it says how many are needed.
    DataError
        If a source is given twice or is the baseline.
    """
    names = tuple(found.source for found in twins)
    if not names or len(set(names)) < len(names) or baseline in names:
        raise DataError(
            f"twins of the sources {list(names)} with baseline {baseline!r}; expected one item "
            "for each source other than the baseline"
        )
    if not encoder.strip():
        raise DataError("the fingerprint of the encoder is empty; give encoder.fingerprint")
    if form not in get_args(ParityForm):
        raise DataError(f"unknown form {form!r}; use one of {list(get_args(ParityForm))}")
    gaps = tuple(_gap(found, confidence_level) for found in twins)
    return ParityCalibration(
        encoder=encoder,
        baseline=baseline,
        form=form,
        sources=names,
        maps=tuple(
            _offset(gap.estimate) if form == "offset" else _quantiles(found)
            for found, gap in zip(twins, gaps, strict=True)
        ),
        gaps=gaps,
        n_pairs=tuple(len(found.queries) for found in twins),
    )


def _gap(twins: ScoredTwins, level: float) -> Interval:
    """Mean gap of the twins, refused where they are too few to know it."""
    gaps = twins.baseline_scores - twins.source_scores
    n, n_queries = len(gaps), len(np.unique(twins.queries))
    if n < _MIN_PAIRS or n_queries < _MIN_QUERIES:
        raise InsufficientDataError(
            f"{n} pairs of {twins.source!r} for {n_queries} queries are too few to calibrate; at "
            f"least {_MIN_PAIRS} pairs for {_MIN_QUERIES} queries are needed",
            n=n,
            n_needed=max(_MIN_PAIRS, n),
        )
    found = clustered_mean(gaps, twins.queries, confidence_level=level)
    half, wanted = (found.upper - found.lower) / 2, _PRECISION * float(gaps.std(ddof=1))
    if half > wanted:
        needed = math.ceil(n * (half / wanted) ** 2)
        raise InsufficientDataError(
            f"{n} pairs of {twins.source!r} for {n_queries} queries leave the mean gap "
            f"{found.estimate:.4g} uncertain by ±{half:.2g}; ±{wanted:.2g} (an eighth of the gaps' "
            f"standard deviation, 5 points of win rate) takes about {needed} pairs, of "
            "more queries",
            n=n,
            n_needed=needed,
        )
    return found


def _offset(gap: float) -> ScoreMap:
    return ScoreMap(knots=np.zeros(1), values=np.array([gap]))


def _quantiles(twins: ScoredTwins) -> ScoreMap:
    """Match the mean scores of equally filled bins of both sorted columns."""
    n = len(twins.queries)
    if n < _MIN_BINS * _BIN_PAIRS:
        raise InsufficientDataError(
            f"{n} pairs of {twins.source!r} are too few to match quantiles; at least "
            f"{_MIN_BINS * _BIN_PAIRS} are needed, or form='offset'",
            n=n,
            n_needed=_MIN_BINS * _BIN_PAIRS,
        )
    bins = min(n // _BIN_PAIRS, _MAX_BINS)
    knots, values = (
        np.array([part.mean() for part in np.array_split(np.sort(column), bins)])
        for column in (twins.source_scores, twins.baseline_scores)
    )
    # Bins of one repeated score would make a step, which could neither keep the order nor be undone
    tiny = 1e-9 * max(1e-300, float(np.ptp(knots)), float(np.ptp(values)))
    kept = [0]
    for j in range(1, bins):
        if min(knots[j] - knots[kept[-1]], values[j] - values[kept[-1]]) > tiny:
            kept.append(j)
    return ScoreMap(knots=knots[kept], values=values[kept])
