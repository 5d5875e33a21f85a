"""What changed between two systems on the same queries: Relative Δ and quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import (
    clustered_difference,
    difference_test,
    noninferiority_test,
    relative_delta_interval,
)
from rag_sourcebias.inference.delta_change import delta_change_interval, delta_change_test
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.types.debias import QUALITIES
from rag_sourcebias.types.debias_report import DebiasConfig, QualityChange, SkewChange
from rag_sourcebias.types.debias_scores import DebiasScores
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.tests import NoninferiorityTest

__all__ = ["quality_changes", "skew_changes", "unchanged_qualities"]

_SAME = 1e-9
_BY_CONSTRUCTION = "unchanged by construction"


def skew_changes(
    before: DebiasScores | None, after: DebiasScores, config: DebiasConfig
) -> tuple[SkewChange, ...]:
    """Relative Δ at every cutoff, and its change where there is something to compare with.

    Parameters
    ----------
    before : DebiasScores or None
        Of the unchanged system; None for that system itself.
    """
    return tuple(_skew(before, after, cutoff, config) for cutoff in config.cutoffs)


def quality_changes(
    before: DebiasScores,
    after: DebiasScores,
    config: DebiasConfig,
    *,
    unchanged: Sequence[str] = (),
) -> tuple[QualityChange, ...]:
    """Change of the three qualities at every cutoff, tested at the quality cutoff.

    Parameters
    ----------
    unchanged : sequence of str
        Qualities that cannot change by construction: where they did not, they pass without a test.
    """
    return tuple(
        _quality(before, after, quality, cutoff, config, by_construction=quality in unchanged)
        for cutoff in config.cutoffs
        for quality in QUALITIES
    )


def unchanged_qualities(before: RetrieverSpec, after: RetrieverSpec) -> tuple[str, ...]:
    """Qualities that a system cannot change: new scores may keep the order within a source."""
    if (
        isinstance(after, RescoredSpec)
        and after.keeps_order_within_source
        and _same_system(before, after.first)
    ):
        return ("human-only", "llm-only")
    return ()


def _same_system(one: RetrieverSpec, two: RetrieverSpec) -> bool:
    """Whether two recipes retrieve the same, whatever they are called."""

    def identity(spec: RetrieverSpec) -> tuple[object, ...]:
        scorers = (getattr(spec, "encoder", None), getattr(spec, "reranker", None))
        prints = tuple(getattr(scorer, "fingerprint", None) for scorer in scorers)
        return type(spec), dict(spec.settings), prints

    return one is two or identity(one) == identity(two)


def _skew(
    before: DebiasScores | None, after: DebiasScores, cutoff: int, config: DebiasConfig
) -> SkewChange:
    refusals: dict[str, str] = {}

    def attempt(what: str, compute: Callable[[], Interval]) -> Interval | None:
        try:
            return compute()
        except InsufficientDataError as error:
            refusals[what] = str(error)
            return None

    def relative_delta(scores: DebiasScores) -> Interval:
        return relative_delta_interval(
            scores.of("baseline", cutoff),
            scores.of("other", cutoff),
            confidence_level=config.confidence_level,
        )

    now = attempt("after", lambda: relative_delta(after))
    was = change = p_value = None
    if before is not None:
        was = attempt("before", lambda: relative_delta(before))
        columns = [s.of(row, cutoff) for s in (before, after) for row in ("baseline", "other")]
        change = attempt(
            "change",
            lambda: delta_change_interval(*columns, confidence_level=config.confidence_level),
        )
        if was is not None and now is not None:
            rng = np.random.default_rng((config.seed, cutoff))
            p_value = delta_change_test(*columns, resamples=config.resamples, rng=rng)
    return SkewChange(
        cutoff=cutoff,
        before=was,
        after=now,
        change=change,
        p_value=p_value,
        refusal="; ".join(f"{what}: {why}" for what, why in refusals.items()) or None,
    )


def _quality(
    before: DebiasScores,
    after: DebiasScores,
    quality: str,
    cutoff: int,
    config: DebiasConfig,
    *,
    by_construction: bool,
) -> QualityChange:
    reference, treated = before.of(quality, cutoff), after.of(quality, cutoff)
    refusals: list[str] = []
    difference: Interval | None = None
    test: NoninferiorityTest | None = None
    try:
        difference = clustered_difference(
            treated - reference,
            np.arange(len(treated)),
            confidence_level=config.confidence_level,
        )
    except InsufficientDataError as error:
        refusals.append(f"difference: {error}")
    if cutoff == config.quality_cutoff:
        try:
            test = noninferiority_test(
                treated[None, :],
                reference[None, :],
                relative_margin=config.relative_margin,
                level=config.level,
                quality=quality,
            )
        except InsufficientDataError as error:
            refusals.append(f"test: {error}{_needed(error)}")
    if by_construction and np.all(np.abs(treated - reference) <= _SAME):
        if difference is not None:
            difference = replace(difference, lower=0.0, upper=0.0, method=_BY_CONSTRUCTION)
        if test is not None:
            test = replace(test, p_value=0.0, lower=0.0, n_needed=None, note=_BY_CONSTRUCTION)
    return QualityChange(
        quality=quality,
        cutoff=cutoff,
        before=float(reference.mean()),
        after=float(treated.mean()),
        difference=difference,
        p_value=difference_test(treated - reference, np.arange(len(treated))),
        test=test,
        refusal="; ".join(refusals) or None,
    )


def _needed(error: InsufficientDataError) -> str:
    return "" if error.n_needed is None else f" (needed: {error.n_needed})"
