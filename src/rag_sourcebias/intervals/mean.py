"""One function for the mean of human values: the default method and the others by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.intervals.bootstrap import bootstrap_interval
from rag_sourcebias.intervals.default import default_interval
from rag_sourcebias.intervals.ppi import (
    crossfit_ppi_interval,
    paper_ppi_interval,
    ppi_interval,
)
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.values import Design, Target, check_target
from rag_sourcebias.types.intervals import Interval

__all__ = ["Method", "mean_interval"]

Method = Literal["regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap"]


def mean_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    method: Method = "regression",
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    lam: float = 1.0,
    rng: np.random.Generator | int = 0,
    **design: Unpack[Design],
) -> Interval:
    """Interval for the mean human value, from a few human and many judge values.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items, in the same order and any units.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of the other items.
    method : str
        ``"regression"`` (default): regression on the judge, delete-one jackknife variance,
        t(n − 2), from 20 labels on corrected for skewness (Hall 1992). Below 10 labels it returns
        labels alone and says so. ``"labels"``: human labels alone (t). ``"ppi"``: fixed power
        ``lam``. ``"ppi++"``: tuned power. ``"ppi-crossfit"``. ``"ppi-paper"``: Eq. 8–11 of
        Oosterhuis et al. (KDD 2024). ``"bootstrap"``: their baseline, percentiles of the labels
        alone.
    target : {"population", "pool", "unlabeled"}
        The mean over the population the items were drawn from, over these n + N items, or over
        the N unlabelled ones.
    bounds : tuple of float, optional
        Range of the human values; the interval stays within it. When every human value is 0 or 1,
        or half of them or more pile up at one end and fewer than 10 depart from it, the interval
        is a score interval on the effective number of items, which stays honest near the ends of
        the range and when all labels agree. Piled-up labels without bounds are taken to lie in
        the range seen, and a note says so.
    rng : numpy.random.Generator or int
        For ``"ppi-crossfit"`` and ``"bootstrap"``.
    **design
        How the labelled items were drawn; nothing means at random, one by one. ``weights``:
        density ratios (pool over labelled), shape (n,), when they were drawn from another
        distribution. ``strata``, ``strata_unlabeled``: labels of length n and N within which they
        were drawn. ``clusters``, ``clusters_unlabeled``: labels of length n and N of items that
        belong together, such as answers to one question; drawn as a whole.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 labels, 2 in each stratum or 5 labelled clusters, or when all human
        values are equal and no bounds are known.
    DataError
        If values are missing or not finite, or options do not go together.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(5, 2, 1050)
    >>> judge = truth + rng.normal(1, 1, 1050)
    >>> print(mean_interval(truth[:50], judge[:50], judge[50:]))
    4.985 [4.715, 5.256] (95%, regression on the judge, n = 50 + 1000 unlabelled, judge r = 0.89)
    """
    check_level(confidence_level)
    check_target(target)
    if method not in get_args(Method):
        raise DataError(f"method {method!r} is not one of {', '.join(get_args(Method))}")
    sample = JudgedSample.build(y, yhat, yhat_unlabeled, **design)
    if sample.shifted and target == "pool":
        raise DataError("weights with target 'pool': the labelled items are not of the pool")
    if method in ("regression", "labels"):
        return default_interval(sample, method, target, confidence_level, bounds)
    extra = [name for name, value in design.items() if value is not None]
    if extra or bounds is not None:
        raise DataError(
            f"method {method!r} does not take {', '.join(extra) or 'bounds'}; use 'regression'"
        )
    human, judge, pool = sample.y[:, 0], sample.x[:, 0], sample.x_unlabeled[:, 0]
    if method == "ppi":
        return ppi_interval(
            human, judge, pool, lam=lam, target=target, confidence_level=confidence_level
        )
    if method == "ppi++":
        return ppi_interval(
            human, judge, pool, lam=None, target=target, confidence_level=confidence_level
        )
    if target != "population":
        raise DataError(f"method {method!r} is defined for target 'population', not {target!r}")
    if method == "ppi-crossfit":
        return crossfit_ppi_interval(human, judge, pool, confidence_level=confidence_level, rng=rng)
    if method == "ppi-paper":
        everything = np.concatenate([judge, pool])
        return paper_ppi_interval(human, judge, everything, confidence_level=confidence_level)
    found = bootstrap_interval(human, confidence_level=confidence_level, kind="empirical", rng=rng)
    return replace(found, n_unlabeled=len(pool))
