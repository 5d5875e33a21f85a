"""The curves of [K] Fig. 8 and 9 over the debias weight, from runs that are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.debias.data import MIN_SEEDS, DebiasConfig, DebiasScores, DebiasSearch
from rag_sourcebias.debias.search import debias_curve

CUTOFFS = (1, 3, 5, 10)
MIN_WEIGHTS = 3  # fewer draw no curve
Runs = Mapping[float, Mapping[int, DebiasScores]]  # by weight and seed


def complete(runs: Runs) -> tuple[list[float], list[int]]:
    """Weights with at least one run, and the seeds that all of them have."""
    weights = sorted(weight for weight, found in runs.items() if found)
    if not weights:
        return [], []
    return weights, sorted(set.intersection(*(set(runs[w]) for w in weights)))


def search(
    runs: Runs, *, skew: int, quality: int, deterministic: bool = False
) -> DebiasSearch | str:
    """The curve; why not, where runs are missing."""
    weights, seeds = complete(runs)
    if len(weights) < 2 or 0 not in weights:
        return f"runs of weights {weights} so far; 0 and at least one more are needed"
    if not deterministic and len(seeds) < MIN_SEEDS:
        return f"{len(seeds)} seeds so far; at least {MIN_SEEDS} are needed"
    config = DebiasConfig(cutoffs=(skew,), skew_cutoff=skew, quality_cutoff=quality)
    scores = {weight: [runs[weight][seed] for seed in seeds] for weight in weights}
    try:
        return debias_curve(scores, searched="debias weight", data="", config=config)
    except InsufficientDataError as error:
        return str(error)


def series(runs: Runs, cutoff: int, *, deterministic: bool = False) -> dict[str, dict]:
    """Relative Δ and human-only quality over the weight, with intervals where seeds allow them.

    Without enough seeds only means over the finished ones are given.
    """
    weights, seeds = complete(runs)
    if not seeds or len(weights) < MIN_WEIGHTS:
        return {}
    found = search(runs, skew=cutoff, quality=cutoff, deterministic=deterministic)
    seeded = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    columns = {}
    for name in ("relative_delta", "human-only", "llm-only", "mixed"):
        if isinstance(found, str):
            values = [plain(runs[w], seeds, name, cutoff) for w in weights]
            column = {"x": weights, "y": values}
        else:
            intervals = [getattr(p, name.replace("-", "_")) for p in found.points]
            column = {
                "x": [p.weight for p in found.points],
                "y": [i.estimate for i in intervals],
                "lower": [i.lower for i in intervals],
                "upper": [i.upper for i in intervals],
            }
        factor = 1 if name == "relative_delta" else 100
        columns[f"{name}@{cutoff}"] = {
            key: [round(v if key == "x" else factor * v, 4) for v in values]
            for key, values in column.items()
        } | {
            "note": "" if deterministic else seeded,
            "seeds": seeds,
            "by_seed": [
                [round(factor * plain(runs[w], [s], name, cutoff), 2) for w in weights]
                for s in seeds
            ],
        }
    return columns


def plain(runs: Mapping[int, DebiasScores], seeds: Sequence[int], name: str, cutoff: int) -> float:
    """Mean over seeds; Relative Δ of the means, percent."""

    def mean(row: str) -> float:
        return float(np.mean([runs[seed].of(row, cutoff).mean() for seed in seeds]))

    if name != "relative_delta":
        return mean(name)
    human, llm = mean("baseline"), mean("other")
    return 200 * (human - llm) / (human + llm)
