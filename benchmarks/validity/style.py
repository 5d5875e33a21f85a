"""What ``measure_style_bias`` says about retrievers in worlds of known truth.

In a null world all styles have the same average rank; the twin of a null world has a planted
preference. The oracle test knows the null distribution of the sum of squared deviations of the
average ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from counting import study
from rates import row
from worlds import topics

from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.style.audit import measure_style_bias
from rag_sourcebias.style.data import StyleCode, StyleConfig, StyleSystem
from rag_sourcebias.style.measure import rank_versions, unfairness_score

FloatArray = npt.NDArray[np.float64]
STYLES = (2, 3, 4, 10)
SIZES = (10, 30, 100, 300)
COVERED = (20, 80)
RESULT = Path(__file__).parents[1] / "results" / "validity_style.json"
_TRUTH = 400_000  # queries


def _one(k: int) -> FloatArray:
    return np.eye(k)[0]


def _gradient(k: int) -> FloatArray:
    return np.linspace(0.5, -0.5, k)


def _plain(scores: FloatArray, _: np.random.Generator) -> FloatArray:
    return scores


def _ties(scores: FloatArray, _: np.random.Generator) -> FloatArray:
    return np.clip(np.round(scores), -1, 1)


def _camps(scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Every query wants one of two opposite orders of the styles."""
    camp = rng.choice([-1, 1], size=(len(scores), 1))
    return camp * np.arange(scores.shape[1]) + 0.5 * scores


def _unsteady(scores: FloatArray, _: np.random.Generator) -> FloatArray:
    """Styles differ in how much their scores vary."""
    return scores * np.linspace(0.2, 3, scores.shape[1])


# name: styles' shifts in standard deviations of a score, and what becomes of scores
WORLDS: dict[str, tuple[float, Callable[[int], FloatArray], Callable[..., FloatArray]]] = {
    "alike": (0.0, _one, _plain),
    "alike, ties": (0.0, _one, _ties),
    "alike, two camps": (0.0, _one, _camps),
    "alike, unsteady": (0.0, _one, _unsteady),
    "one style, a little": (0.3, _one, _plain),
    "one style": (1.0, _one, _plain),
    "gradient": (1.5, _gradient, _plain),
    "gradient, ties": (1.5, _gradient, _ties),
    "nearly one order": (5.0, _gradient, _plain),
    "topics": (0.0, _one, _plain),  # styles suit some topics, which are declared as clusters
}
NULL = tuple(name for name, world in WORLDS.items() if not world[0])
COVERAGE = ("alike", "one style", "nearly one order")
FOUR_COVERAGE = ("one style, a little", "gradient, ties")  # with four styles only
FEW = (10, 100)
PLANTED = ("one style", "gradient")  # with shifts that fall with √n


def draw(world: str, n: int, k: int, rng: np.random.Generator, *, faded: bool) -> FloatArray:
    """Similarities of n queries in k styles; faded shifts keep the power alike over n."""
    shift, shape, change = WORLDS[world]
    if faded:
        shift = 5.5 / np.sqrt(n)
    return change(rng.normal(size=(n, k)) + shift * shape(k), rng)


@cache
def _texts(n: int, k: int) -> StyledTexts:
    return StyledTexts(
        query_ids=tuple(map(str, range(n))),
        queries={"original": ("question",) * n},
        documents={f"style {j}": (f"text {j}",) * n for j in range(k)},
    )


def audit(
    scores: FloatArray,
    resamples: int,
    margin: float = 0.1,
    clusters: dict[str, str] | None = None,
) -> StyleSystem:
    """Audit similarities as a user would."""
    n, k = scores.shape
    config = StyleConfig(resamples=resamples, original="style 0", margin=margin)
    report = measure_style_bias(
        {"retriever": scores[:, None]}, _texts(n, k), config=config, clusters=clusters
    )
    return report.systems[0]


@cache
def truth(world: str, k: int) -> FloatArray:
    """Average ranks over very many queries."""
    if world in NULL:
        return np.full(k, (k + 1) / 2)
    rng = np.random.default_rng(20)
    return rank_versions(draw(world, _TRUTH, k, rng, faded=False)).mean(axis=0)


def counts(world: str, n: int, k: int, planted: bool, runs: int, seed: int) -> dict[str, Any]:
    """Audit ``runs`` draws of one world and count verdicts and intervals that hold."""
    rng = np.random.default_rng((seed, n, k, planted, *world.encode()))
    covering = n in COVERED
    ranks = truth(world, k)
    unfair = float(unfairness_score(ranks))
    # Where styles differ, "alike" within their true distance is wrong one time in 20 at most.
    margin = float(np.ptp(ranks)) / (k - 1) if covering and world not in NULL else 0.1
    found = dict.fromkeys(StyleCode, 0) | {"unfairness": 0, "means": 0, "refused": 0, "rejected": 0}
    sums = []
    for run in range(runs):
        scores, clusters = draw(world, n, k, rng, faded=planted), None
        if world == "topics":
            effects, clusters = topics(n, k, rng)
            scores += effects
        system = audit(scores, 400 if covering else 100, min(margin, 0.999), clusters)
        verdict, first = system.finding, system.rows[0]
        found[verdict.code] += 1
        found["rejected"] += first.friedman.p_value < 0.05
        sums.append(round(float(np.sum((system.average_ranks[0] - (k + 1) / 2) ** 2)), 9))
        if covering:
            interval, at = first.unfairness_interval, run % k
            found["refused"] += interval is None
            found["unfairness"] += interval is not None and _holds(interval, unfair)
            found["means"] += _holds(first.average_ranks[at], float(ranks[at]))
    return {"counts": {str(key): int(v) for key, v in found.items()}, "sums": sums}


def _holds(interval: Any, value: float) -> bool:
    return interval.lower - 1e-9 <= value <= interval.upper + 1e-9


def cells() -> list[tuple[str, int, int, bool]]:
    """Return (world, queries, styles, planted) of every cell."""
    found = [(w, n, k, False) for w in COVERAGE for n in COVERED for k in STYLES]
    found += [(w, n, 4, False) for w in FOUR_COVERAGE for n in COVERED]
    found += [(NULL[0], n, k, False) for n in SIZES for k in STYLES]
    found += [(w, n, 4, False) for w in NULL[1:-1] for n in FEW]
    found += [("topics", n, 4, False) for n in SIZES[2:]]  # with fewer, clusters are refused
    found += [(PLANTED[0], n, k, True) for n in SIZES for k in STYLES]
    return found + [(PLANTED[1], n, 4, True) for n in FEW]


def rows(found: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Turn counts into figures with their bars."""
    return [figure for cell, chunks in found.items() if chunks for figure in _figures(cell, found)]


def _total(chunks: list[dict[str, Any]]) -> tuple[dict[str, int], FloatArray]:
    total = {key: sum(c["counts"][key] for c in chunks) for key in chunks[0]["counts"]}
    return total, np.concatenate([chunk["sums"] for chunk in chunks])


def _figures(
    cell: tuple[Any, ...], found: dict[tuple[Any, ...], list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    world, n, k, planted = cell
    total, sums = _total(found[cell])
    runs, about = len(sums), {"styles": k}
    if n in COVERED:
        held = runs - total["refused"]
        yield row(world, n, "coverage", total["unfairness"], held, 0.93, of="unfairness", **about)
        yield row(world, n, "coverage", total["means"], runs, 0.93, of="average rank", **about)
        yield row(world, n, "refusal", total["refused"], runs, None, of="unfairness", **about)
        if world not in NULL:
            alike = total[StyleCode.ALIKE]
            yield row(world, n, "alike at margin", alike, runs, 0.05, **about)
    if n not in SIZES:
        return
    if not planted:
        yield row(world, n, "size", total["rejected"], runs, 0.05, **about)
        yield row(world, n, "favours", total[StyleCode.FAVOURS], runs, 0.05, **about)
        return
    null = found.get(("alike", n, k, False))
    if null:
        # The smallest critical value that the null world exceeds in at most 5 % of runs.
        blind = np.sort(_total(null)[1])
        critical = blind[int(np.ceil(0.95 * len(blind))) - 1] + 1e-9
        oracle = float(np.mean(sums > critical))
        favours = total[StyleCode.FAVOURS]
        yield row(world, n, "power", favours, runs, 0.9 * oracle, oracle=oracle, **about)


if __name__ == "__main__":
    study(counts, cells(), rows, RESULT)
