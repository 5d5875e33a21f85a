"""How far a judge agrees with people: correlations, kappa and alpha, AUC, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems, mean_judge
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import InsufficientDataError, as_generator
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.decide import expit, t_quantile
from rag_sourcebias.infer.dependence import group_codes, mid_ranks
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.infer.samples import is_constant, judge_correlation
from rag_sourcebias.judged.data import Agreement, JudgeShare

# Chance-corrected agreement from a table of joint shares.


def cohen_kappa(tables: FloatArray, grades: FloatArray, *, power: int) -> FloatArray:
    """Cohen's kappa of contingency tables.

    Parameters
    ----------
    tables : float64 array of shape (b, K, K)
        Counts; rows are the human grade, columns the judge's.
    grades : float64 array of shape (K,)
        Their values.
    power : {0, 2}
        Disagreement is |difference| to this power: unweighted, or quadratic.

    Returns
    -------
    float64 array of shape (b,)
        NaN where no disagreement is expected by chance (one grade only).
    """
    gap = np.abs(grades[:, None] - grades[None, :])
    cost = (gap > 0).astype(np.float64) if power == 0 else gap**power
    total = tables.sum(axis=(1, 2))
    chance = np.einsum("bi,ij,bj->b", tables.sum(axis=2), cost, tables.sum(axis=1)) / total**2
    return _one_minus((tables * cost).sum(axis=(1, 2)) / total, chance)


def krippendorff_alpha(tables: FloatArray) -> FloatArray:
    """Krippendorff's ordinal alpha of two raters without missing values.

    Parameters
    ----------
    tables
        As in :func:`cohen_kappa`. Two grades are as far apart as there are grades given between.

    Returns
    -------
    float64 array of shape (b,)
    """
    coincidences = tables + tables.transpose(0, 2, 1)
    counts = coincidences.sum(axis=2)
    total = counts.sum(axis=1)
    through = np.cumsum(counts, axis=1) - counts / 2
    cost = (through[:, :, None] - through[:, None, :]) ** 2
    chance = np.einsum("bi,bij,bj->b", counts, cost, counts) / (total * (total - 1))
    return _one_minus((coincidences * cost).sum(axis=(1, 2)) / total, chance)


def _one_minus(seen: FloatArray, chance: FloatArray) -> FloatArray:
    result = np.full(len(seen), np.nan)
    np.divide(seen, chance, out=result, where=chance > 1e-12)
    return 1 - result


# Kendall's rank correlation with ties.


def kendall_tau_b(x: FloatArray, y: FloatArray) -> float:
    """Kendall's τ-b; NaN if x or y is constant.

    Takes as many steps as the coarser of the two has values, which grades keep small.
    ``scipy.stats.kendalltau`` gives the same, and takes longer to import than an audit takes.
    """
    _, code_x, ties_x = np.unique(x, return_inverse=True, return_counts=True)
    _, code_y, ties_y = np.unique(y, return_inverse=True, return_counts=True)
    if len(ties_x) > len(ties_y):
        code_x, code_y, ties_x, ties_y = code_y, code_x, ties_y, ties_x
    pairs = len(x) * (len(x) - 1) / 2
    untied_x = pairs - float((ties_x * (ties_x - 1.0)).sum()) / 2
    untied_y = pairs - float((ties_y * (ties_y - 1.0)).sum()) / 2
    if untied_x == 0 or untied_y == 0:
        return math.nan
    # concordant less discordant pairs of each value of x with all lower values
    score = 0.0
    lower = np.zeros(len(ties_y))
    order, ends = np.argsort(code_x, kind="stable"), np.cumsum(ties_x)
    for end, size in zip(ends.tolist(), ties_x.tolist(), strict=True):
        found = np.bincount(code_y[order[end - size : end]], minlength=len(ties_y))
        below = np.cumsum(lower) - lower
        above = lower.sum() - lower - below
        score += float(found @ (below - above))
        lower += found
    return score / math.sqrt(untied_x * untied_y)


# How well a judge orders items: correlations and AUC, with intervals for clustered items.


_BLOCK = 250_000  # weights held at once
_MANY = 5_000  # items, from which resampling says nothing that influence values do not
_ONE = 1 - 1e-12


def resampled_weights(
    clusters: IntArray, *, resamples: int, rng: np.random.Generator | int
) -> Iterator[FloatArray]:
    """Give bootstrap weights in blocks: how often each item is drawn with its cluster.

    Parameters
    ----------
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1, all used.

    Yields
    ------
    float64 array of shape (b, n)
        ``resamples`` rows in all.
    """
    generator = as_generator(rng)
    g = int(clusters.max()) + 1
    block = max(1, _BLOCK // max(len(clusters), g))
    for start in range(0, resamples, block):
        b = min(block, resamples - start)
        drawn = generator.integers(0, g, size=(b, g)) + np.arange(b)[:, None] * g
        counts = np.bincount(drawn.ravel(), minlength=b * g).reshape(b, g).astype(np.float64)
        yield counts[:, clusters]


def correlation_intervals(
    x: FloatArray,
    y: FloatArray,
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> tuple[Interval, Interval]:
    """Pearson's and Spearman's correlation with intervals.

    Cluster bootstrap standard error of Fisher's z with t(G − 2) quantiles: right for binary,
    skewed and clustered values, where Fisher's 1/√(n − 3) is not. Spearman's ranks are taken anew
    in every resample, with mid-ranks for ties. Beyond 5,000 items the standard error comes from
    influence values summed within clusters, those of the ranks included: in O(n log n), and the
    same within the error of 1,000 resamples.

    Parameters
    ----------
    x, y : float64 arrays of shape (n,)
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1; ``numpy.arange(n)`` for independent items.

    Returns
    -------
    pearson, spearman : Interval

    Raises
    ------
    InsufficientDataError
        With fewer than 4 clusters, or if x or y is constant.
    """
    g = int(clusters.max(initial=-1)) + 1
    if len(x) > _MANY:
        how = InferCode.FISHER_INFLUENCE
        found = [_linearised(x, y, clusters, ranked=ranked) for ranked in (False, True)]
    else:
        how = InferCode.FISHER_BOOTSTRAP
        rank_x, rank_y = _Ranks(x), _Ranks(y)
        blocks = resampled_weights(clusters, resamples=resamples, rng=rng)
        weights = chain((np.ones((1, len(x))),), blocks)  # first as the items are
        drawn = [
            (
                _weighted_correlation(w, x[None], y[None]),
                _weighted_correlation(w, rank_x(w), rank_y(w)),
            )
            for w in weights
        ]
        found = [(float(r[0]), _spread(r[1:])) for r in np.concatenate(drawn, axis=1)]
    pearson, spearman = (
        _on_fisher_scale(r, error, g, level=confidence_level, method=how(statistic=name))
        for (r, error), name in zip(found, ("Pearson", "Spearman"), strict=True)
    )
    return pearson, spearman


class _Ranks:
    """Mid-ranks of fixed values under changing weights."""

    def __init__(self, values: FloatArray) -> None:
        self._code = group_codes(values)
        self._order = np.argsort(self._code, kind="stable")
        self._starts = np.flatnonzero(np.diff(self._code[self._order], prepend=-1))

    def __call__(self, weights: FloatArray) -> FloatArray:
        total = np.add.reduceat(weights[:, self._order], self._starts, axis=1)
        return np.asarray((np.cumsum(total, axis=1) - total / 2)[:, self._code])


def _weighted_correlation(weights: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Row-wise correlation; NaN where a row is constant."""
    total = weights.sum(axis=1, keepdims=True)
    dx = x - (weights * x).sum(axis=1, keepdims=True) / total
    dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    wx = weights * dx
    cross = (wx * dy).sum(axis=1)
    scale = np.sqrt((wx * dx).sum(axis=1) * (weights * dy * dy).sum(axis=1))
    result = np.full(len(cross), np.nan)
    np.divide(cross, scale, out=result, where=scale > 1e-12 * np.abs(total[:, 0]))
    return np.clip(result, -1.0, 1.0, out=result)


def _spread(drawn: FloatArray) -> float:
    """Standard deviation of Fisher's z over resamples."""
    z = np.arctanh(np.clip(drawn[~np.isnan(drawn)], -_ONE, _ONE))
    # a handful of resamples with |r| = 1 would make the deviation infinite: use quantiles
    return float(np.subtract(*np.quantile(z, [0.84134, 0.15866]))) / 2


def _linearised(
    x: FloatArray, y: FloatArray, clusters: IntArray, *, ranked: bool
) -> tuple[float, float]:
    """Return a correlation and the standard error of its Fisher's z, from influence values.

    Where ranked, x and y are shares of items below, ties counting one half. An item also moves the
    shares of all items above it: by 1 minus their share, weighted with what the share is worth.
    """
    sides = [(mid_ranks(v) - 0.5) / len(v) if ranked else v for v in (x, y)]
    u, v = ((side - side.mean()) / side.std() for side in sides)
    r = float(np.clip((u * v).mean(), -1.0, 1.0))
    influence = u * v - r / 2 * (u**2 + v**2)
    if ranked:
        for values, own, other, spread in ((x, u, v, sides[0].std()), (y, v, u, sides[1].std())):
            influence += _above(values, other - r * own) / spread
        influence -= influence.mean()
    sums = np.bincount(clusters, weights=influence)
    error = math.sqrt(float(sums @ sums) * len(sums) / (len(sums) - 1)) / len(x)
    return r, error / max(1 - r * r, 1 - _ONE)


def _above(values: FloatArray, worth: FloatArray) -> FloatArray:
    """Mean over all items of ``worth`` where they lie above each item, half of it where equal."""
    code = group_codes(values)
    total = np.bincount(code, weights=worth)
    return np.asarray(((total.sum() - np.cumsum(total) + total / 2) / len(values))[code])


def _on_fisher_scale(r: float, error: float, g: int, *, level: float, method: Finding) -> Interval:
    lower = upper = r
    if abs(r) < _ONE:
        width = t_quantile(0.5 + level / 2, g - 2) * error
        centre = math.atanh(r)
        lower, upper = math.tanh(centre - width), math.tanh(centre + width)
    return Interval(
        estimate=r,
        lower=min(lower, r),
        upper=max(upper, r),
        confidence_level=level,
        method=method,
        n_labeled=g,
        assumptions=(InferCode.ITEMS_SAMPLED(),),
    )


# Chance-corrected agreement: Cohen's kappa and Krippendorff's alpha, with intervals.


_MOST_GRADES = 25
_UNDEFINED = 0.01  # share of resamples that may be undefined
_BUNDLES = 2_048  # of clusters; their resamples spread as those of more clusters do, within 2 %
_LEVELS = ("kappa", "kappa_quadratic", "alpha_ordinal")


def agreement_of(
    human: FloatArray,
    judge: FloatArray,
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> Agreement | None:
    """Measure agreement, with cluster bootstrap percentile intervals.

    What is resampled are the confusion tables of clusters; more than 2,048 clusters are bundled at
    random first, into as many sums of independent tables.

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
        A judge value that is no human grade is rounded to the nearest.
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1.

    Returns
    -------
    Agreement or None
        None where the human labels are not grades (more than 25 different values, or one), or the
        judge answers on another scale (outside the human grades by more than half a step).
    """
    grades = _shared_grades(human, judge)
    if grades is None:
        return None
    k, middle = len(grades), (grades[1:] + grades[:-1]) / 2
    code_h, code_j = np.searchsorted(grades, human), np.searchsorted(middle, judge)
    # tables of clusters, only for the cells that occur: a resample is then one matrix product
    used, place = np.unique(code_h * k + code_j, return_inverse=True)
    n_clusters = int(clusters.max()) + 1
    generator = as_generator(rng)
    bundle, g = clusters, n_clusters
    if n_clusters > _BUNDLES:
        g = _BUNDLES
        bundle = (generator.permutation(n_clusters) % g)[clusters]
    held = np.bincount(bundle * len(used) + place, minlength=g * len(used))
    per_cluster = held.reshape(g, len(used)).astype(np.float64)

    def statistics(weights: FloatArray) -> FloatArray:
        full = np.zeros((len(weights), k * k))
        full[:, used] = weights @ per_cluster
        return _statistics(full.reshape(-1, k, k), grades)

    once = statistics(np.ones((1, g)))[:, 0]
    blocks = resampled_weights(np.arange(g), resamples=resamples, rng=generator)
    drawn = np.concatenate([statistics(weights) for weights in blocks], axis=1)
    levels = {
        name: _percentile(float(once[i]), drawn[i], confidence_level, name, n_clusters)
        for i, name in enumerate(_LEVELS)
    }
    same = (code_h == code_j).astype(np.float64)
    exact = clustered_mean(same, clusters, confidence_level=confidence_level, bounds=(0.0, 1.0))
    rounded = bool(np.any(grades[code_j] != judge))
    return Agreement(n_grades=k, rounded=rounded, exact=exact, **levels)


def _shared_grades(human: FloatArray, judge: FloatArray) -> FloatArray | None:
    """Return the grades of both; None where the judge answers on another scale, or in none."""
    grades = np.unique(human)
    if not 2 <= len(grades) <= _MOST_GRADES:
        return None
    step = float(np.diff(grades).min())
    known = np.unique(judge)
    low, high = grades[0] - known[0], known[-1] - grades[-1]
    own = len(known) <= _MOST_GRADES and bool(np.all(np.mod(known - grades[0], step) == 0))
    if own and max(low, high) <= 2 * step:
        return np.union1d(grades, known)  # a grade only the judge uses is still a grade
    return grades if max(low, high) <= step / 2 else None


def _statistics(tables: FloatArray, grades: FloatArray) -> FloatArray:
    return np.stack(
        [
            cohen_kappa(tables, grades, power=0),
            cohen_kappa(tables, grades, power=2),
            krippendorff_alpha(tables),
        ]
    )


def _percentile(
    estimate: float, drawn: FloatArray, level: float, name: str, g: int
) -> Interval | None:
    undefined = np.isnan(drawn)
    if np.isnan(estimate) or undefined.mean() > _UNDEFINED:
        return None
    lower, upper = np.quantile(drawn[~undefined], [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        estimate=estimate,
        lower=min(float(lower), estimate),
        upper=max(float(upper), estimate),
        confidence_level=level,
        method=InferCode.AGREEMENT(statistic=name.replace("_", " ")),
        n_labeled=g,
        assumptions=(InferCode.ITEMS_SAMPLED(),),
    )


# How well a judge tells right from wrong: the area under the ROC curve.


def auc_interval(
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Probability that a positive item scores above a negative one, ties counting one half.

    Placement values (DeLong et al. 1988) summed within clusters (Obuchowski 1997), on the logit
    scale.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 positive or 2 negative items, or where scores separate them completely:
        the placements then have no spread.
    """
    n1 = int(np.count_nonzero(positive))
    n0 = len(positive) - n1
    if min(n0, n1) < 2:
        raise InsufficientDataError(
            f"AUC needs at least 2 items of each kind, there are {n1} positive and {n0} negative",
            n=min(n0, n1),
            n_needed=2,
        )
    own = np.empty(len(scores))
    for side in (positive, ~positive):
        own[side] = mid_ranks(scores[side])
    beaten = mid_ranks(scores) - own  # items of the other kind below each
    wins, losses = beaten[positive] / n0, 1 - beaten[~positive] / n1
    auc = float(wins.mean())
    influence = np.empty(len(scores))
    influence[positive] = (wins - auc) / n1 * math.sqrt(n1 / (n1 - 1))
    influence[~positive] = (losses - auc) / n0 * math.sqrt(n0 / (n0 - 1))
    sums = np.bincount(clusters, weights=influence)
    error = math.sqrt(float((sums**2).sum()))
    if error < 1e-12 or not 0 < auc < 1:
        raise InsufficientDataError(
            f"the judge separates all {n1} positive from all {n0} negative items (AUC {auc:g}); "
            "an interval needs items that overlap",
            n=min(n0, n1),
        )
    logit = math.log(auc / (1 - auc))
    g = len(sums)
    quantile = t_quantile(0.5 + confidence_level / 2, max(g - 2, 1))
    width = quantile * error / (auc * (1 - auc))
    return Interval(
        estimate=auc,
        lower=expit(logit - width),
        upper=expit(logit + width),
        confidence_level=confidence_level,
        method=InferCode.AUC(),
        n_labeled=g,
        assumptions=(InferCode.ITEMS_SAMPLED(),),
    )


# What each of several judges adds to their mean.


_SAME = 0.95  # correlation with another judge from which one of the two is redundant


def several_judges(items: JudgedItems) -> FloatArray | None:
    """Return the values of all judges; shape (n, p), or None for one."""
    return None if items.judges is None else np.stack([*items.judges.values()], axis=1)


def judge_shares(items: JudgedItems) -> tuple[JudgeShare, ...]:
    """Return what each judge adds; nothing for one judge."""
    values = several_judges(items)
    if values is None or items.judges is None:
        return ()
    found, names = [], [*items.judges]
    answered = ~np.isnan(values)
    apart = np.where(answered, values - np.nanmean(values, axis=0), 0.0)
    scale = np.sqrt((apart**2).sum(axis=0) / answered.sum(axis=0))
    apart /= np.where(scale > 0, scale, 1.0)
    together = answered.astype(np.float64)
    alike = apart.T @ apart / np.maximum(together.T @ together, 1.0)
    np.fill_diagonal(alike, -np.inf)
    for column, (name, judge) in enumerate(items.judges.items()):
        closest = int(alike[column].argmax())
        with_closest = float(np.clip(alike[column, closest], -1.0, 1.0))
        found.append(
            JudgeShare(
                name=name,
                n_missing=int(np.isnan(judge).sum()),
                correlation=_correlation(judge, items.human),
                without=_correlation(mean_judge(np.delete(values, column, axis=1)), items.human),
                closest=names[closest],
                with_closest=with_closest,
                redundant=with_closest >= _SAME,
            )
        )
    return tuple(found)


_RANGES = 2.5  # times another's largest value from which two judges hardly share a scale


def judge_warnings(items: JudgedItems) -> tuple[str, ...]:
    """Warn of judges that always say the same, or that answer on different scales."""
    judges = items.judges or {}
    constant = [name for name, judge in judges.items() if is_constant(judge)]
    warnings = []
    if constant:
        warnings.append(
            f"{len(constant)} of {len(judges)} judges gave the same value to every item and tell "
            f"nothing, first {constant[0]!r}; left out of the mean"
        )
    used = {name: judge for name, judge in judges.items() if name not in constant}
    reach = {name: float(np.nanmax(np.abs(judge))) for name, judge in used.items()}
    if reach and max(reach.values()) > _RANGES * min(reach.values()):
        low, high = min(reach, key=reach.__getitem__), max(reach, key=reach.__getitem__)
        spans = [
            f"{name!r} {np.nanmin(used[name]):g} to {np.nanmax(used[name]):g}"
            for name in (low, high)
        ]
        warnings.append(
            f"{len(used)} judges answer on different scales ({', '.join(spans)}); each is divided "
            "by its own spread before they are averaged, and the mean of the judges alone has no "
            "unit"
        )
    return tuple(warnings)


def _correlation(first: FloatArray, second: FloatArray) -> float:
    both = ~np.isnan(first) & ~np.isnan(second)
    return judge_correlation(first[both], second[both]) if both.any() else 0.0
