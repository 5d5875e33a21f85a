"""Find the weight with the smallest |Relative Δ| that costs no quality (METHODS §5.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, Query, Run
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.core.tags import TwinTexts
from rag_sourcebias.core.values import (
    FloatArray,
    IntArray,
    Interval,
    NoninferiorityTest,
    as_generator,
    check_level,
)
from rag_sourcebias.debias.audit import other_sources, score_debias, unchanged_qualities
from rag_sourcebias.debias.data import (
    COLUMNS,
    QUALITIES,
    DebiasCandidate,
    DebiasConfig,
    DebiasPoint,
    DebiasScores,
    DebiasSearch,
)
from rag_sourcebias.debias.fit import fit_source_projection
from rag_sourcebias.debias.parity import ParityCalibration, scaled_calibration
from rag_sourcebias.debias.projection import ProjectedEncoder, ProjectionMethod
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.retrieval.cache import RememberedEncoder, Similarity
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.stats.changes import CrossedMean, noninferiority_test
from rag_sourcebias.stats.clusters import adjust_p_values, clustered_mean
from rag_sourcebias.stats.ratio import relative_delta_interval

# Points and zero crossing of a debias search ([K] Fig. 8 and 9), queries and seeds random.


_ROUNDING = 1e-9
_SEEDS = "seeds are a random sample of the seeds that could have been used"


def debias_points(
    candidates: Sequence[DebiasCandidate],
    *,
    relative_margin: float,
    level: float,
    confidence_level: float,
    adjust: bool,
) -> tuple[DebiasPoint, ...]:
    """Measure and test every weight; the first candidate is the reference.

    Parameters
    ----------
    candidates : sequence of DebiasCandidate
        By weight, aligned, the first one of weight 0.
    adjust : bool
        Whether a weight is admitted by Holm's p over all weights (any of them may then be
        chosen with these queries) or by its own.
    """
    reference = candidates[0]
    tests = [
        tuple(
            _test(candidate, reference, quality, relative_margin=relative_margin, level=level)
            for quality in QUALITIES
        )
        for candidate in candidates[1:]
    ]
    # Intersection-union: all hypotheses must be rejected, so the largest p counts as it is.
    largest = [max(test.p_value for test in of_weight) for of_weight in tests]
    adjusted = adjust_p_values(largest, correction="holm" if adjust else "none")
    points = [_point(reference, confidence_level)]
    for candidate, of_weight, p, p_adjusted in zip(
        candidates[1:], tests, largest, adjusted, strict=True
    ):
        admitted = p_adjusted is not None and p_adjusted <= level
        points.append(
            replace(
                _point(candidate, confidence_level),
                tests=of_weight,
                p_value=p,
                p_adjusted=p_adjusted,
                admitted=admitted,
                refusal=None if admitted else _why(of_weight, p_adjusted, level),
            )
        )
    return tuple(points)


def relative_delta_over_seeds(candidate: DebiasCandidate, *, confidence_level: float) -> Interval:
    """Relative Δ of the mean over seeds, with an interval for new queries and new seeds.

    The interval of :func:`~rag_sourcebias.relative_delta_interval` for the scores
    averaged over seeds, widened on the scale of ln(h / l) by what random seeds add to the
    variance of its influence values.
    """
    human, llm = candidate.baseline, candidate.other
    fixed = relative_delta_interval(
        human.mean(axis=0), llm.mean(axis=0), confidence_level=confidence_level
    )
    h, m = float(human.mean()), float(llm.mean())
    if candidate.shape[0] == 1 or min(h, m) == 0:
        return fixed
    added = CrossedMean.of(human / h - llm / m).seed_part((1 - confidence_level) / 2) ** 0.5
    lower, estimate, upper = (_log_ratio(v) for v in (fixed.lower, fixed.estimate, fixed.upper))
    return replace(
        fixed,
        lower=min(_percent(estimate - math.hypot(estimate - lower, added)), fixed.lower),
        upper=max(_percent(estimate + math.hypot(upper - estimate, added)), fixed.upper),
        method=f"{fixed.method}, queries × seeds",
        assumptions=(*fixed.assumptions, _SEEDS),
    )


def zero_crossing(points: Sequence[DebiasPoint], *, target: float) -> Interval | None:
    """Weight at which Relative Δ, linear between neighbouring weights, first meets the target.

    Its interval holds every weight whose interpolated interval holds the target (from the lowest
    to the highest): a set that inverts pointwise intervals covers the one true crossing at their
    level, and interpolated ends are never too close.

    Returns
    -------
    Interval or None
        None where the curve does not meet the target.
    """
    weights = np.array([p.weight for p in points])
    deltas = [p.relative_delta for p in points]
    middle, lower, upper = np.array([(d.estimate, d.lower, d.upper) for d in deltas]).T - target
    crossings = [
        at
        for i in range(len(points) - 1)
        if (at := _root(weights[i : i + 2], middle[i : i + 2])) is not None
    ]
    if not crossings:
        return None
    possible = [
        end
        for i in range(len(points) - 1)
        for end in _not_excluded(weights[i : i + 2], lower[i : i + 2], upper[i : i + 2])
    ]
    times = len(set(crossings))
    notes = (
        (lower[0] <= 0 <= upper[0], "weight 0 is not excluded"),
        (lower[-1] <= 0 <= upper[-1], "may lie beyond the largest weight tried"),
        (times > 1, f"the curve meets the target {times} times; the first is given"),
    )
    first = deltas[0]
    return Interval(
        estimate=crossings[0],
        lower=min(*possible, crossings[0]),
        upper=max(*possible, crossings[0]),
        confidence_level=first.confidence_level,
        method="inverted interpolated intervals",
        n_labeled=first.n_labeled,
        assumptions=(*first.assumptions, "Relative Δ is linear between neighbouring weights"),
        notes=tuple(note for applies, note in notes if applies),
    )


def _point(candidate: DebiasCandidate, confidence_level: float) -> DebiasPoint:
    """Return the curves' values of one weight, untested as for the reference."""
    human_only, llm_only, mixed = (
        _quality(candidate.of(quality), confidence_level) for quality in QUALITIES
    )
    return DebiasPoint(
        weight=candidate.weight,
        relative_delta=relative_delta_over_seeds(candidate, confidence_level=confidence_level),
        human_only=human_only,
        llm_only=llm_only,
        mixed=mixed,
        tests=(),
        p_value=None,
        p_adjusted=None,
        admitted=True,
    )


def _quality(values: FloatArray, confidence_level: float) -> Interval:
    seeds, n = values.shape
    fixed = clustered_mean(
        values.mean(axis=0), np.arange(n), confidence_level=confidence_level, bounds=(0.0, 1.0)
    )
    if seeds == 1:
        return fixed
    added = CrossedMean.of(values).seed_part((1 - confidence_level) / 2) ** 0.5
    centre = fixed.estimate
    return replace(
        fixed,
        lower=max(min(centre - math.hypot(centre - fixed.lower, added), fixed.lower), 0.0),
        upper=min(max(centre + math.hypot(fixed.upper - centre, added), fixed.upper), 1.0),
        method=f"{fixed.method}, queries × seeds",
        assumptions=(*fixed.assumptions, _SEEDS),
    )


def _test(
    candidate: DebiasCandidate,
    reference: DebiasCandidate,
    quality: str,
    *,
    relative_margin: float,
    level: float,
) -> NoninferiorityTest:
    treated, before = candidate.of(quality), reference.of(quality)
    test = noninferiority_test(
        treated, before, relative_margin=relative_margin, level=level, quality=quality
    )
    if quality not in candidate.unchanged:
        return test
    differs = np.argwhere(np.abs(treated - before) > _ROUNDING)
    if len(differs):
        row, column = differs[0]
        raise DataError(
            f"weight {candidate.weight:g}: {quality} is declared unchanged, but seed row {row}, "
            f"query column {column} went from {before[row, column]} to {treated[row, column]}"
        )
    return replace(test, p_value=0.0, lower=0.0, n_needed=None, note="unchanged by construction")


def _why(tests: Sequence[NoninferiorityTest], p_adjusted: float | None, level: float) -> str:
    reasons = [
        f"{test.quality} changed by {test.change:+.2f} %, a loss of {-test.lower:.2f} % is not "
        f"excluded{f' ({test.note})' if test.note else ''}, accepted is "
        f"{100 * test.relative_margin:g} %"
        for test in tests
        if not test.passed
    ]
    if not reasons:
        reasons = [f"every test passes alone, but not over all weights (p {p_adjusted:.3f})"]
    return f"not admitted at level {level:g}: " + "; ".join(reasons)


def _log_ratio(percent: float) -> float:
    share = percent / 200
    return math.copysign(math.inf, share) if abs(share) >= 1 else 2 * math.atanh(share)


def _percent(log_ratio: float) -> float:
    return 200 * math.tanh(log_ratio / 2)


def _root(weights: FloatArray, values: FloatArray) -> float | None:
    """Where the line through two points is 0, if between them."""
    if values[0] == 0:
        return float(weights[0])
    if values[1] == 0:
        return float(weights[1])
    if values[0] * values[1] > 0:
        return None
    return float(weights[0] + (weights[1] - weights[0]) * values[0] / (values[0] - values[1]))


def _not_excluded(weights: FloatArray, lower: FloatArray, upper: FloatArray) -> list[float]:
    """Ends of the weights on one segment where lower ≤ 0 ≤ upper."""
    inside = [0.0, 1.0]
    for first, last in (upper, -lower):  # both must be at least 0
        if first < 0 and last < 0:
            return []
        if first < 0:
            inside[0] = max(inside[0], first / (first - last))
        elif last < 0:
            inside[1] = min(inside[1], first / (first - last))
    if inside[0] > inside[1]:
        return []
    return [float(weights[0] + share * (weights[1] - weights[0])) for share in inside]


# Find the debias weight with the smallest |Relative Δ| that costs no quality (METHODS §5.1).


MIN_SEEDS = 3
_ALL_MUST_PASS = (
    "a weight is admitted when all three qualities pass, each at the full level: rejecting a union "
    "of hypotheses needs no correction (intersection-union test)"
)
_SPLIT = "the weight was chosen on other queries than it is reported on; nothing is adjusted"
_CURVE_SHARED = (
    "chosen and reported on the same queries: tests are Holm-adjusted over the weights and the "
    "interval of the chosen weight is Bonferroni-adjusted, the curve holds point by point"
)


def search_debias_weight(
    candidates: Sequence[DebiasCandidate],
    *,
    target: float = 0.0,
    relative_margin: float = 0.01,
    level: float = 0.05,
    confidence_level: float = 0.95,
    deterministic: bool = False,
    select_on: Sequence[int] | IntArray | None = None,
    report_on: Sequence[int] | IntArray | None = None,
) -> DebiasSearch:
    """Choose the weight whose Relative Δ is nearest the target among those that keep quality.

    A weight is admitted when one-sided paired tests show that human-only, LLM-only and mixed
    quality each lost less than ``relative_margin`` against weight 0.

    Parameters
    ----------
    candidates : sequence of DebiasCandidate
        One per weight, 0 included, with the same seeds and queries in the same order.
    target : float
        Relative Δ aimed at, in percent, within (−200, 200).
    relative_margin : float
        Largest loss accepted, as a share of the quality at weight 0.
    level : float
        Error probability of the tests.
    confidence_level : float
        Of every interval.
    deterministic : bool
        True for methods without a seed (projection, calibrated scores): one row per candidate.
        Otherwise at least 3 seeds are asked for, and intervals and tests hold for new seeds.
    select_on, report_on : sequences of int, optional
        Columns used for choosing, and columns for the curve and for confirming the choice
        (:func:`split_queries` draws them). Without them all queries serve both, and tests and
        interval of the chosen weight pay for the choice instead. A parameter that was itself
        fitted on queries must have been fitted on other queries than either.

    Returns
    -------
    DebiasSearch
        ``chosen`` is None, and ``refusal`` says why, when no weight above 0 is admitted or the
        reported queries do not confirm it.

    Raises
    ------
    DataError
        If candidates do not align, repeat a weight or lack weight 0, or the split overlaps.
    InsufficientDataError
        With fewer than 3 seeds, or fewer than 20 queries on either side.
    """
    if not -200 < target < 200:
        raise DataError(f"target {target!r} is outside (-200, 200), the range of Relative Δ")
    check_level(confidence_level)
    ordered = _aligned(candidates)
    _check_n_seeds(ordered[0].shape[0], deterministic)
    split = _split(select_on, report_on, ordered[0].shape[1])
    settings: dict[str, Any] = {
        "relative_margin": relative_margin,
        "level": level,
        "confidence_level": confidence_level,
    }
    if split is None:
        reported = ordered
        selection = points = debias_points(ordered, **settings, adjust=True)
        confidence_level = 1 - (1 - confidence_level) / len(ordered)
    else:
        chooser, reported = ([_columns(c, part) for c in ordered] for part in split)
        selection = debias_points(chooser, **settings, adjust=False)
        points = debias_points(reported, **settings, adjust=False)
    selected = _select(selection, target)
    chosen, refusal = _confirm(selected, selection, points, relative_margin)
    crossing = zero_crossing(points, target=target)
    return DebiasSearch(
        target=target,
        relative_margin=relative_margin,
        level=level,
        n_seeds=ordered[0].shape[0],
        points=points,
        selection=selection,
        split=split is not None,
        selected=selected,
        chosen=chosen,
        chosen_relative_delta=next(
            (
                relative_delta_over_seeds(c, confidence_level=confidence_level)
                for c in reported
                if c.weight == selected
            ),
            None,
        ),
        zero_crossing=crossing,
        refusal=refusal,
        assumptions=(_ALL_MUST_PASS, _CURVE_SHARED if split is None else _SPLIT),
        notes=() if crossing else (_no_crossing(points, target),),
    )


def split_queries(n: int, *, rng: np.random.Generator | int = 0) -> tuple[IntArray, IntArray]:
    """Draw the columns for choosing (about half of them) and those for reporting.

    Together they are 0 … n − 1, each once and in rising order.

    Examples
    --------
    >>> choose, report = split_queries(80)
    >>> len(choose), len(report), set(choose) & set(report)
    (40, 40, set())
    """
    order = as_generator(rng).permutation(n).astype(np.int64)
    size = round(n / 2)
    return np.sort(order[:size]), np.sort(order[size:])


def _aligned(candidates: Sequence[DebiasCandidate]) -> list[DebiasCandidate]:
    """Return candidates by weight, after checking that they can be compared."""
    ordered = sorted(candidates, key=lambda c: c.weight)
    weights = [c.weight for c in ordered]
    if len(set(weights)) != len(weights):
        raise DataError(f"a weight occurs twice in {weights}; give every weight once")
    if len(weights) < 2 or weights[0] != 0:
        raise DataError(f"weights {weights} must hold 0, the reference, and at least one more")
    for candidate in ordered[1:]:
        for kind in ("shape", "seeds", "query_ids"):
            mine, theirs = getattr(candidate, kind), getattr(ordered[0], kind)
            if mine != theirs:
                raise DataError(
                    f"{kind} of weight {candidate.weight:g} differ from those of weight 0: "
                    f"{_brief(mine, theirs)}; rows are paired by seed and columns by query"
                )
    return ordered


def _brief(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> str:
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            return f"at position {i} {a!r}, not {b!r}"
    return f"{len(mine)} names, not {len(theirs)}"


def _check_n_seeds(seeds: int, deterministic: bool) -> None:
    if deterministic and seeds != 1:
        raise DataError(f"a deterministic method has one row per candidate, not {seeds}")
    if not deterministic and seeds < MIN_SEEDS:
        raise InsufficientDataError(
            f"{seeds} seed(s) do not show how much results vary between trainings; at least "
            f"{MIN_SEEDS} are needed (a method without seeds: deterministic=True)",
            n=seeds,
            n_needed=MIN_SEEDS,
        )


def _split(
    select_on: Sequence[int] | IntArray | None, report_on: Sequence[int] | IntArray | None, n: int
) -> tuple[IntArray, IntArray] | None:
    if select_on is None and report_on is None:
        return None
    if select_on is None or report_on is None:
        raise DataError("select_on and report_on belong together; give both or neither")
    parts = []
    for name, given in (("select_on", select_on), ("report_on", report_on)):
        part = np.asarray(given)
        if part.dtype.kind not in "iu" or part.ndim != 1:
            raise DataError(f"{name} must be column numbers, got {part.dtype} of {part.shape}")
        if len(np.unique(part)) != len(part) or np.any((part < 0) | (part >= n)):
            raise DataError(f"{name} must hold different column numbers from 0 to {n - 1}")
        parts.append(part.astype(np.int64))
    both = np.intersect1d(parts[0], parts[1])
    if len(both):
        raise DataError(
            f"select_on and report_on share {len(both)} queries, such as column {both[0]}; a "
            "report on queries that chose the weight is optimistic"
        )
    return parts[0], parts[1]


def _columns(candidate: DebiasCandidate, part: IntArray) -> DebiasCandidate:
    return replace(
        candidate,
        **{name: getattr(candidate, name)[:, part] for name in COLUMNS},
        query_ids=tuple(candidate.query_ids[i] for i in part) if candidate.query_ids else (),
    )


def _select(points: Sequence[DebiasPoint], target: float) -> float | None:
    if not any(p.admitted for p in points[1:]):
        return None
    # By weight, so that of two equally near the smaller is taken.
    return min(
        (p for p in points if p.admitted), key=lambda p: abs(p.relative_delta.estimate - target)
    ).weight


def _confirm(
    selected: float | None,
    selection: Sequence[DebiasPoint],
    points: Sequence[DebiasPoint],
    margin: float,
) -> tuple[float | None, str | None]:
    """Weight that the reported queries admit too, or why there is none."""
    if selected is None:
        return None, _nothing_admitted(selection[1:], margin)
    point = next(p for p in points if p.weight == selected)
    if point.admitted:
        return selected, None
    return None, (
        f"weight {selected:g} was chosen, but the queries reported do not confirm it: "
        f"{point.refusal}"
    )


def _nothing_admitted(tried: Sequence[DebiasPoint], margin: float) -> str:
    """Which quality stands in the way, and how many queries would decide."""
    failed = {
        quality: sum(not t.passed for p in tried for t in p.tests if t.quality == quality)
        for quality in QUALITIES
    }
    blame = [f"{q} fails at {k} of {len(tried)}" for q, k in failed.items() if k]
    # None: more queries do not help, unless the test passes anyway.
    needed = [
        max(t.n_needed or 0 for t in p.tests)
        for p in tried
        if all(t.passed or t.n_needed is not None for t in p.tests)
    ]
    n = tried[0].tests[0].n_queries
    hint = (
        f"; about {min(needed)} queries may show it for one of them"
        if needed and min(needed) > n
        else ""
    )
    reasons = ", ".join(blame) or "every test passes alone, but not over all weights"
    return (
        f"no weight above 0 is shown to lose less than {100 * margin:g} % of every quality on "
        f"{n} queries: {reasons}{hint}"
    )


def _no_crossing(points: Sequence[DebiasPoint], target: float) -> str:
    nearest = min(points, key=lambda p: abs(p.relative_delta.estimate - target))
    return (
        f"Relative Δ does not meet {target:g} at any weight up to {points[-1].weight:g}; nearest "
        f"is {nearest.relative_delta.estimate:.1f} at weight {nearest.weight:g}"
    )


# What a search tries: systems by weight and training seed.


Seeds = dict[int | None, RetrieverSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasVariant:
    """One system to try.

    Parameters
    ----------
    weight : float
        Debias weight, strength, or share of an offset; 0 is the unchanged method.
    spec : RetrieverSpec
    seed : int or None
        Of its training; None for a method without seeds. At weight 0, None is the untrained
        system, which stands for every seed.
    """

    weight: float
    spec: RetrieverSpec
    seed: int | None = None


def group_variants(
    variants: Sequence[DebiasVariant], *, deterministic: bool
) -> tuple[dict[float, Seeds], tuple[int, ...]]:
    """Systems by weight and seed, and the seeds that every weight has.

    Returns
    -------
    groups : dict of float to dict of int or None to RetrieverSpec
        By weight, 0 first. Without seeds the key is None; so is that of the untrained system at
        weight 0, which stands for every seed.
    seeds : tuple of int
        Empty for a deterministic method.

    Raises
    ------
    DataError
        If weight 0 or a seed of a weight is missing, or a variant occurs twice.
    InsufficientDataError
        With fewer than 3 seeds of a trained method.
    """
    groups: dict[float, Seeds] = {}
    for variant in variants:
        of_weight = groups.setdefault(variant.weight, {})
        if variant.seed in of_weight:
            raise DataError(
                f"weight {variant.weight:g} occurs twice"
                + (" without a seed" if variant.seed is None else f" with seed {variant.seed}")
                + "; give every weight and seed once"
            )
        of_weight[variant.seed] = variant.spec
    if 0 not in groups or len(groups) < 2:
        raise DataError(
            f"weights {sorted(groups)} must hold 0, the unchanged system that the others are "
            "compared with, and at least one more"
        )
    seeds = sorted({v.seed for v in variants if v.seed is not None})
    if not deterministic:
        _check_seeds(groups, seeds)
    elif seeds:
        raise DataError(
            f"variants have the seeds {seeds}, but the method is said to be deterministic; "
            "leave seeds out, or say deterministic=False"
        )
    return dict(sorted(groups.items())), tuple(seeds)


def _check_seeds(groups: Mapping[float, Seeds], seeds: Sequence[int]) -> None:
    for weight, specs in sorted(groups.items()):
        if weight == 0 and list(specs) == [None]:
            continue
        if None in specs:
            raise DataError(
                f"weight {weight:g} has a system without a seed; only weight 0 may be the "
                "untrained system (a method without seeds: deterministic=True)"
            )
        missing = [seed for seed in seeds if seed not in specs]
        if missing:
            raise DataError(
                f"weight {weight:g} lacks the seeds {missing}; every weight needs the seeds "
                f"{list(seeds)}, as results are paired by seed"
            )
    if len(seeds) < MIN_SEEDS:
        raise InsufficientDataError(
            f"{len(seeds)} seed(s) do not show how much results vary between trainings; train "
            f"every weight with at least {MIN_SEEDS} seeds",
            n=len(seeds),
            n_needed=MIN_SEEDS,
        )


# Systems that encode, index and retrieve once, for searches that try many variants of one.


class RememberedSpec:
    """A recipe that indexes a corpus once, and retrieves once for the same queries.

    Parameters
    ----------
    spec : RetrieverSpec
    """

    def __init__(self, spec: RetrieverSpec) -> None:
        self.name = spec.name
        self._spec = spec
        # What a calibration is checked against.
        self.encoder = getattr(spec, "encoder", None)
        self.reranker = getattr(spec, "reranker", None)
        self._built: dict[tuple[tuple[str, ...], tuple[str, ...]], Retriever] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the recipe."""
        return self._spec.settings

    def build(self, corpus: Corpus) -> Retriever:
        """Return the one retriever over a corpus."""
        key = corpus.doc_ids, corpus.texts
        if key not in self._built:
            self._built[key] = _RememberedRetriever(self._spec.build(corpus))
        return self._built[key]


class _RememberedRetriever:
    def __init__(self, retriever: Retriever) -> None:
        self.name = retriever.name
        self._retriever = retriever
        self._runs: dict[tuple[tuple[Query, ...], int], Run] = {}

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        key = tuple(queries), depth
        if key not in self._runs:
            self._runs[key] = self._retriever.retrieve(queries, depth)
        return self._runs[key]


# The systems a search over the strength of a projection, or the size of an offset, tries.


def projection_variants(
    encoder: Encoder,
    twins: TwinTexts,
    *,
    strengths: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    method: ProjectionMethod = "pca",
    n_directions: int = 4,
    similarity: Similarity = "cosine",
) -> list[DebiasVariant]:
    """Fit a projection once and apply it at every strength; 0 is the encoder itself.

    Texts are encoded once: the vectors of every text that is searched stay in memory.

    Parameters
    ----------
    strengths : sequence of float in [0, 1]
    twins, method, n_directions
        As in :func:`~rag_sourcebias.debias.fit_source_projection`.
    similarity : {"cosine", "dot"}
        Of the search.
    """
    remembered = RememberedEncoder(encoder)
    fitted = fit_source_projection(twins, remembered, method=method, n_directions=n_directions)
    return [
        DebiasVariant(
            weight=strength,
            spec=DenseSpec(
                ProjectedEncoder(
                    remembered,
                    replace(fitted, strength=strength),
                    name=f"{encoder.name}+projection×{strength:g}",
                )
                if strength
                else remembered,
                similarity=similarity,
            ),
        )
        for strength in strengths
    ]


def calibration_variants(
    spec: RetrieverSpec,
    calibration: ParityCalibration,
    *,
    shares: Sequence[float] = (0, 0.25, 0.5, 0.75, 1, 1.25),
) -> list[DebiasVariant]:
    """Rescore a retriever with shares of a calibration; 0 is the retriever itself.

    The first stage retrieves once for all of them.

    Parameters
    ----------
    spec : RetrieverSpec
        The first stage, with the encoder the calibration was fitted for.
    shares : sequence of float
        At least 0; above 1 corrects more than twins ask for.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.debias.parity.scaled_calibration`.
    """
    first = RememberedSpec(spec)
    return [
        DebiasVariant(
            weight=share,
            spec=RescoredSpec(
                first,
                scaled_calibration(calibration, share),
                name=f"{spec.name}+parity×{share:g}",
            )
            if share
            else first,
        )
        for share in shares
    ]


# Score every weight of a mitigation on one data set and choose one (METHODS §5.1).


_SAME = 1e-9
MIN_SPLIT_QUERIES = 2000
"""Queries from which half of them choose and the other half report. On ``nfcorpus`` half of 324
queries know Relative Δ only to ±14 points and chose another weight than all of them; 1,000 know it
to about ±5."""


def search_debias(
    dataset: Dataset,
    variants: Sequence[DebiasVariant],
    *,
    other: str | None = None,
    config: DebiasConfig | None = None,
    deterministic: bool,
    unchanged: tuple[str, ...] = (),
    split: bool | None = None,
    depth: int = 100,
    on_stage: Callable[[str], None] | None = None,
    rng: np.random.Generator | int = 0,
) -> DebiasSearch:
    """Measure the curves of [K] Fig. 8 and 9 and choose the weight that costs no quality.

    Relative Δ is that of NDCG at ``config.skew_cutoff``, quality is NDCG at
    ``config.quality_cutoff``.

    Parameters
    ----------
    dataset : Dataset
        Its queries must be others than those that the variants were fitted or trained on.
    variants : sequence of DebiasVariant
        Weight 0 included; the same seeds for every weight.
    other : str, optional
        Source compared with the baseline; may be left out where there is only one.
    config : DebiasConfig, optional
    deterministic : bool
        True for methods without training seeds: one variant per weight. Otherwise at least 3
        seeds.
    unchanged : tuple of str
        Qualities that the method cannot change, as in
        :class:`~rag_sourcebias.debias.data.DebiasCandidate`. Those of calibrated scores are found
        without it.
    split : bool, optional
        Whether one random half of the queries chooses and the other half reports. By default with
        2,000 queries or more; with fewer, all queries do both and the tests are Holm-adjusted
        instead.
    depth : int
        Documents retrieved per query.
    on_stage : callable, optional
        Told what begins, for progress display.
    rng : numpy.random.Generator or int
        Draws the halves.

    Returns
    -------
    DebiasSearch

    Raises
    ------
    DataError
        If weight 0 or a seed of a weight is missing, a variant occurs twice, or the source to
        compare is unknown or not clear.
    InsufficientDataError
        With fewer than 3 seeds of a trained method, or fewer than 20 queries.
    """
    config = config or DebiasConfig()
    groups, seeds = group_variants(variants, deterministic=deterministic)
    other = other or _only_other(dataset, config.baseline_source)
    stage = on_stage or (lambda _: None)
    known: dict[object, DebiasScores] = {}

    def score(spec: RetrieverSpec, what: str) -> DebiasScores:
        # Equal for systems with the same vectors and the same comparison.
        key: object = (
            (spec.encoder.fingerprint, spec.similarity) if type(spec) is DenseSpec else id(spec)
        )
        if key not in known:
            stage(f"{what}: {spec.name}")
            known[key] = score_debias(spec, dataset, config, other=other, depth=depth)
        return known[key]

    candidates = [
        _candidate(
            weight,
            [
                score(
                    of_weight.get(seed) or of_weight[None],
                    f"weight {weight:g}" + ("" if seed is None else f", seed {seed}"),
                )
                for seed in seeds or (None,)
            ],
            config,
            seeds,
        )
        for weight, of_weight in groups.items()
    ]
    candidates[1:] = [
        replace(found, unchanged=unchanged or _unchanged(groups, found, candidates[0]))
        for found in candidates[1:]
    ]
    n = candidates[0].shape[1]
    split = n >= MIN_SPLIT_QUERIES if split is None else split
    select_on, report_on = split_queries(n, rng=rng) if split else (None, None)
    return search_debias_weight(
        candidates,
        target=config.target,
        relative_margin=config.relative_margin,
        level=config.level,
        confidence_level=config.confidence_level,
        deterministic=deterministic,
        select_on=select_on,
        report_on=report_on,
    )


def _only_other(dataset: Dataset, baseline: str) -> str:
    others = other_sources(dataset, baseline)
    if len(others) > 1:
        raise DataError(
            f"data set {dataset.name!r} has several sources beside {baseline!r}: {list(others)}; "
            "name the one to search over as other"
        )
    return others[0]


def _candidate(
    weight: float, scores: Sequence[DebiasScores], config: DebiasConfig, seeds: tuple[int, ...]
) -> DebiasCandidate:
    def rows(name: str, cutoff: int) -> FloatArray:
        return np.stack([found.of(name, cutoff) for found in scores])

    return DebiasCandidate(
        weight=weight,
        baseline=rows("baseline", config.skew_cutoff),
        other=rows("other", config.skew_cutoff),
        human_only=rows("human-only", config.quality_cutoff),
        llm_only=rows("llm-only", config.quality_cutoff),
        mixed=rows("mixed", config.quality_cutoff),
        seeds=seeds,
        query_ids=scores[0].query_ids,
    )


def _unchanged(
    groups: Mapping[float, Seeds], found: DebiasCandidate, reference: DebiasCandidate
) -> tuple[str, ...]:
    """Qualities that no system of one weight can change.

    Scores are kept in single precision, so that a shift can make or break a tie once in a while:
    where that shows, the quality is tested instead.
    """
    before = groups[0.0].get(None)
    if before is None:
        return ()
    kept = [set(unchanged_qualities(before, spec)) for spec in groups[found.weight].values()]
    return tuple(
        quality
        for quality in QUALITIES
        if all(quality in of_spec for of_spec in kept)
        and np.allclose(found.of(quality), reference.of(quality), rtol=0, atol=_SAME)
    )
