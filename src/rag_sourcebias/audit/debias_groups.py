"""What a search tries: systems by weight and training seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.mitigate.search import MIN_SEEDS
from rag_sourcebias.protocols import RetrieverSpec

__all__ = ["DebiasVariant", "Seeds", "group_variants"]

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
    if deterministic:
        if seeds:
            raise DataError(
                f"variants have the seeds {seeds}, but the method is said to be deterministic; "
                "leave seeds out, or say deterministic=False"
            )
        return dict(sorted(groups.items())), ()
    _check_seeds(groups, seeds)
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
