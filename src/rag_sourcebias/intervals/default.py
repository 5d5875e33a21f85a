"""The default method, and labels alone, for one mean."""

from __future__ import annotations

import math
from dataclasses import replace

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.quantiles import t_quantile
from rag_sourcebias.intervals.classical import has_spread, spread_values, t_interval
from rag_sourcebias.intervals.form import Form, choose_form, draw_interval
from rag_sourcebias.intervals.regression import fit_regression
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.values import Target, judge_correlation
from rag_sourcebias.types.intervals import JUDGE_NOTES, Interval, JudgeFinding

__all__ = ["MIN_CLUSTERS", "MIN_LABELED", "SCORE_FORM", "assumptions_of", "default_interval"]

MIN_LABELED = 10  # below, no method with a judge covers and beats labels alone
MIN_CLUSTERS = 5
SCORE_FORM = "regression on the judge, score form"  # of bounded values


def default_interval(
    sample: JudgedSample,
    method: str,
    target: Target,
    level: float,
    bounds: tuple[float, float] | None,
) -> Interval:
    """Regression on the judge or, with no judge columns, labels alone."""
    human, judge = sample.y[:, 0], sample.x[:, 0]
    n = sample.n_labeled
    form = choose_form(sample, bounds)
    _check_enough(sample, form.bounds)
    correlation = judge_correlation(human, judge)
    found_judge: JudgeFinding = "" if method == "labels" else _judge_finding(sample, correlation)
    notes = (JUDGE_NOTES[found_judge],) if found_judge else ()
    alone = method == "labels" or found_judge in {"few", "constant"}
    if alone:
        sample = _without_judge(sample)
    asked = method == "labels" or n < MIN_LABELED
    plain = asked and sample.n_strata == 1 and sample.cluster is None and not sample.shifted
    if plain and form == Form(None):
        share = n / (n + sample.n_unlabeled)
        found = t_interval(
            human, confidence_level=level, fraction_labeled=share if target == "pool" else 0.0
        )
        if target == "unlabeled" and sample.n_unlabeled:
            stretch = math.sqrt(1 + n / sample.n_unlabeled)
            half = found.half_width * stretch
            found = replace(
                found, lower=found.estimate - half, upper=found.estimate + half, target=target
            )
        return replace(
            found,
            n_unlabeled=sample.n_unlabeled,
            correlation=correlation,
            notes=notes,
            judge=found_judge,
            target=target,
        )
    fit = fit_regression(sample, target)
    name = "labels alone" if alone else "regression on the judge"
    if form.bounds is not None:
        name = "labels alone, score form" if alone else SCORE_FORM
    quantile = t_quantile(0.5 + level / 2, fit.degrees)
    estimate, lower, upper = draw_interval(sample, fit, target, quantile, form)
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        method=name,
        target=target,
        n_labeled=n,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=correlation,
        notes=(*notes, form.note) if form.note else notes,
        judge=found_judge,
    )


def _check_enough(sample: JudgedSample, bounds: tuple[float, float] | None) -> None:
    if sample.n_labeled < 2:
        raise InsufficientDataError(
            f"{sample.n_labeled} human label(s): an interval needs at least 2 and the judge helps "
            f"from {MIN_LABELED} on",
            n=sample.n_labeled,
            n_needed=MIN_LABELED,
        )
    if sample.cluster is not None and sample.n_units < MIN_CLUSTERS:
        raise InsufficientDataError(
            f"{sample.n_units} labelled cluster(s): an interval needs at least {MIN_CLUSTERS}",
            n=sample.n_units,
            n_needed=MIN_CLUSTERS,
        )
    if bounds is None:
        spread_values(sample.y[:, 0])  # raises, with the remedy


def _judge_finding(sample: JudgedSample, correlation: float) -> JudgeFinding:
    """Whether labels alone must be used, or the judge is of no use."""
    units = sample.n_units
    if units < MIN_LABELED:
        return "few"
    if not any(has_spread(column) for column in sample.x.T):
        return "constant"
    return "weak" if abs(correlation) <= 1 / math.sqrt(units - 2) else ""


def _without_judge(sample: JudgedSample) -> JudgedSample:
    return replace(sample, x=sample.x[:, :0], x_unlabeled=sample.x_unlabeled[:, :0])


def assumptions_of(sample: JudgedSample) -> tuple[str, ...]:
    """What must hold for an interval from this sample."""
    if sample.shifted:
        drawn = "the weights are the true density ratios of the pool to the labelled items"
    elif sample.n_strata > 1:
        drawn = "within each stratum the labelled items were drawn at random from the judged pool"
    else:
        drawn = "the labelled items were drawn at random from the judged pool"
    units = "items are independent" if sample.cluster is None else "clusters are independent"
    same = "the judge treats labelled and unlabelled items alike"
    return drawn, units, same
