"""What ``measure_source_bias`` says about rankers in worlds of known truth.

Every null world has a twin with a planted preference. The oracle test knows the distribution of
the summed skew in the null world; the margin of the twin's audit is its true centred Δ, so that
"alike" is wrong there half the time at best.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from counting import study
from rates import row
from worlds import UNEVEN, WORLDS, World

from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.measure.relevance import (
    chance_scores,
    exposure,
    join,
    source_codes_for,
)
from rag_sourcebias.source.audit import measure_source_bias, merge_llms
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport

SIZES = (10, 30, 100, 300)
RESULT = Path(__file__).parents[1] / "results" / "validity_source.json"
_BY_NAME = {world.name: world for world in (*WORLDS, *UNEVEN)}
_MEASURE = "NDCG"


def audit(world: World, n: int, strength: float, rng: Any, margin: float = 5.0) -> SkewReport:
    """Draw rankings and audit them as a user would."""
    fixed, run = world.draw(n, strength, rng)
    config = AuditConfig(
        measures=(_MEASURE,),
        cutoffs=(5,),
        browsing=world.browsing,
        merge_llms=world.merge,
        margin=margin,
        resamples=2_000 if world.uneven else 10_000,  # flips of clusters take a second otherwise
    )
    return measure_source_bias(run, fixed.qrels, fixed.tags, config=config, clusters=fixed.clusters)


@cache
def truth(name: str, strength: float) -> tuple[float, float]:
    """Centred Relative Δ and human exposure beyond its share, over very many queries."""
    world, rng = _BY_NAME[name], np.random.default_rng(20)
    skew = base = seen = 0.0
    draws, n = (2_000, 100) if world.uneven else (8, 10_000)  # popular things are few in each draw
    for _ in range(draws if strength or world.browsing else 0):
        fixed, run = world.draw(n, strength, rng)
        tags = merge_llms(fixed.tags) if world.merge else fixed.tags
        group = source_codes_for(fixed.qrels.doc_ids, tags)
        chance = chance_scores(
            join(run, fixed.qrels), fixed.qrels, group, measures=(_MEASURE,), cutoffs=(5,)
        )
        skew, base = skew + chance.skew_terms.sum(), base + chance.base_terms.sum()
        for browsing in world.browsing:
            human = tags.counts()["human"] / len(tags)
            seen += (exposure(run, tags, browsing=browsing).shares[0].mean() - human) / draws
    return float(100 * skew / base) if strength else 0.0, float(seen)


def counts(name: str, n: int, planted: bool, runs: int, seed: int) -> dict[str, Any]:
    """Audit ``runs`` draws of one world and count the verdicts."""
    world = _BY_NAME[name]
    strength = world.strength(n) if planted else 0.0
    true, seen = truth(name, strength)
    rng = np.random.default_rng((seed, n, planted, *name.encode()))
    found = dict.fromkeys(SkewCode, 0) | {"covered": 0, "rejected": 0}
    found |= {"flipped": 0, "twins": 0, "twins_covered": 0, "exposed": 0, "exposed_covered": 0}
    sums = []
    for _ in range(runs):
        system = audit(world, n, strength, rng, margin=abs(true) or 5.0).systems[0]
        verdict = system.verdicts[0]
        found[verdict.code] += 1
        skew = system.chance[0].skew[0]
        sums.append(float(skew.sum()))
        if world.flips:
            found["flipped"] += flipped(skew, world, n) < 0.05
        if verdict.interval is not None:
            found["covered"] += not verdict.interval.excludes(true)
            found["rejected"] += verdict.p_value is not None and verdict.p_value < 0.05
        if not planted and system.twins and system.twins[0].win_rate is not None:
            found["twins"] += 1
            found["twins_covered"] += not system.twins[0].win_rate.excludes(world.win_rate)
        if system.exposure and system.exposure[0].difference is not None:
            found["exposed"] += 1
            found["exposed_covered"] += not system.exposure[0].difference.excludes(seen)
    return {
        "counts": {str(k): int(v) for k, v in found.items()},
        "sums": [round(s, 6) for s in sums],
        "truth": true,
    }


def flipped(skew: np.ndarray[Any, Any], world: World, n: int) -> float:
    """Return the p-value of studentised sign flips of whole clusters, told nothing else."""
    rng = np.random.default_rng(0)
    cluster = world.draw(n, 0.0, rng)[0].cluster_of
    sums, sizes = np.bincount(cluster, skew), np.bincount(cluster)
    flips = np.vstack((np.ones(len(sums)), rng.choice([-1, 1], size=(999, len(sums)))))
    means = (flips @ sums) / n
    spread = np.sqrt(np.square(flips * sums - means[:, None] * sizes).sum(axis=1))
    statistic = np.abs(means) / np.maximum(spread, 1e-12)
    return float(np.mean(statistic >= statistic[0] * (1 - 1e-9)))


def rows(
    found: dict[tuple[Any, ...], list[dict[str, Any]]], worlds: tuple[World, ...] = WORLDS
) -> list[dict[str, Any]]:
    """Turn counts into figures with their bars."""
    result = []
    for world in worlds:
        for n in SIZES:
            null, twin = found.get((world.name, n, False)), found.get((world.name, n, True))
            if not null or not twin:
                continue
            result += _figures(world, n, null, twin)
    return result


def _total(chunks: list[dict[str, Any]]) -> tuple[dict[str, int], np.ndarray[Any, Any]]:
    keys = chunks[0]["counts"]
    total = {key: sum(chunk["counts"][key] for chunk in chunks) for key in keys}
    return total, np.concatenate([chunk["sums"] for chunk in chunks])


def _figures(
    world: World, n: int, null: list[dict[str, Any]], twin: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    zero, blind = _total(null)
    planted, skewed = _total(twin)
    runs = len(blind)
    about = {"about": world.about, "truth": twin[0]["truth"]}
    name = world.name
    # With all runs refused nothing is claimed; the independent queries are what counts.
    refused = zero[SkewCode.REFUSED]
    bound = 0.02 if n >= 100 and not (world.sparse or world.uneven) else None
    favours = zero[SkewCode.FAVOURS_BASELINE] + zero[SkewCode.FAVOURS_OTHER]
    figures = [
        row(name, n, "rejection", zero["rejected"], runs, world.size, **about),
        row(name, n, "favours", favours, runs, world.size, **about),
        row(name, n, "refusal", refused, runs, bound, **about),
        row(name, n, "coverage", zero["covered"], runs - refused, 0.93, of="null", **about),
        row(
            name,
            n,
            "coverage",
            planted["covered"],
            runs - planted[SkewCode.REFUSED],
            0.93,
            of="twin",
            **about,
        ),
        row(name, n, "alike at margin", planted[SkewCode.ALIKE], runs, 0.05, **about),
        row(name, n, "wrong sign", planted[SkewCode.FAVOURS_OTHER], runs, 0.05, **about),
    ]
    if zero["twins"]:
        figures.append(
            row(name, n, "coverage", zero["twins_covered"], zero["twins"], 0.93, of="win rate")
        )
    for of, total in (("exposure", zero), ("exposure, twin", planted)):
        if total["exposed"]:
            covered = total["exposed_covered"]
            figures.append(row(name, n, "coverage", covered, total["exposed"], 0.93, of=of))
    judged = runs - planted[SkewCode.REFUSED]
    if judged > runs / 2:
        critical = float(np.quantile(np.abs(blind), 0.95))
        oracle = float(np.mean(np.abs(skewed) > critical))
        if world.flips:
            oracle = planted["flipped"] / runs
        figures.append(
            row(
                name,
                n,
                "power",
                planted[SkewCode.FAVOURS_BASELINE],
                judged,
                world.share * oracle if n >= world.least else None,
                oracle=oracle,
                **about,
            )
        )
    return figures


def cells(worlds: tuple[World, ...] = WORLDS) -> list[tuple[str, int, bool]]:
    """Return (world, queries, planted) of every cell."""
    return [
        (world.name, n, planted)
        for world in worlds
        for n in SIZES[world.uneven :]  # ten queries hold two or three topics
        for planted in (False, True)
    ]


if __name__ == "__main__":
    study(counts, cells(), rows, RESULT)
