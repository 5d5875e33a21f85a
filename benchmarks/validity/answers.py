"""What ``measure_answer_bias`` says about correctness scores in worlds of known truth.

Four systems answer in the same length and are right as often, or not; a score is made of
correctness, of the system, of both, or of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
from counting import study
from rates import row
from worlds import topics

from rag_sourcebias.answers.audit import measure_answer_bias
from rag_sourcebias.answers.data import AnswerConfig, AnswerScorer, AnswerStyle, AnswerUse
from rag_sourcebias.core.texts import AnswerTexts

FloatArray = npt.NDArray[np.float64]
SIZES = (60, 400)
RESULT = Path(__file__).parents[1] / "results" / "validity_answers.json"
SYSTEMS = ("a", "b", "c", "d")
_OWN = np.array([0.5, 0.0, -0.3, 0.1])  # of each system, in standard deviations of the noise
_UNEVEN = np.array([0.85, 0.75, 0.6, 0.7])

# name: weight of correctness, weight of the system, share of right answers per system
WORLDS: dict[str, tuple[float, float, FloatArray]] = {
    "noise": (0.0, 0.0, np.full(4, 0.7)),
    "noise, systems differ": (0.0, 0.0, _UNEVEN),
    "correctness": (1.5, 0.0, np.full(4, 0.7)),
    "correctness, systems differ": (1.5, 0.0, _UNEVEN),
    "style": (0.0, 1.0, np.full(4, 0.7)),
    # The systems that are right more often also score higher: pooled, style looks like skill.
    "style, systems differ": (0.0, 8.0, _UNEVEN),
    "correctness and style": (1.5, 1.0, _UNEVEN),
    "barely useful": (0.17771, 0.0, np.full(4, 0.7)),  # an AUC of .55 exactly
    # Systems are better at some topics, which are declared as clusters.
    "topics": (1.5, 0.0, np.full(4, 0.7)),
}
_TOPICAL = 0.6  # of a system at a topic, in standard deviations of the noise
# Where nothing but the weight of the system is missing.
NULL = {
    "style": "noise",
    "style, systems differ": "noise, systems differ",
    "correctness and style": "correctness, systems differ",
}


def draw(world: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, AnswerTexts]:
    """Draw answers to n questions, easy ones and hard ones, and their scores."""
    right, own, share = WORLDS[world]
    k = len(SYSTEMS)
    odds = np.log(share / (1 - share)) + rng.normal(size=(n, 1))
    correct = (rng.random((n, k)) < 1 / (1 + np.exp(-odds))).astype(float)
    noise = rng.normal(size=(n, k))
    if right:
        # A question moves all its scores; where scores know no answer it has nothing to move.
        noise = 0.8 * noise + 0.6 * rng.normal(size=(n, 1))
    scores = right * correct + own * _OWN + noise
    lengths = 3 + rng.integers(0, 4, size=n * k)
    return scores.ravel(), AnswerTexts(
        question_ids=tuple(str(i // k) for i in range(n * k)),
        systems=SYSTEMS * n,
        answers=tuple("word " * int(size) for size in lengths),
        references=(("word",),) * (n * k),
        correct=correct.ravel(),
    )


def audit(
    world: str, n: int, rng: np.random.Generator, own: float = 0.0, *, declared: bool = True
) -> AnswerScorer:
    """Audit one draw as a user would, who declares topics; ``own`` is planted beside these."""
    (scores, answers), clusters = draw(world, n, rng), None
    if world == "topics":
        effects, clusters = topics(n, len(SYSTEMS), rng)
        scores += (_TOPICAL * effects + own * _OWN).ravel()
    report = measure_answer_bias(
        {"score": scores},
        answers,
        config=AnswerConfig(resamples=400),
        clusters=clusters if declared else None,
        text_statistics=False,
    )
    return report.scorers[0]


def truth(world: str) -> tuple[float, float]:
    """AUC within systems, and unfairness: noise has a standard deviation of 1."""
    right, own, _ = WORLDS[world]
    variance = 1 + _TOPICAL**2 * (world == "topics")
    return NormalDist().cdf(right / (2 * variance) ** 0.5), float(np.std(own * _OWN))


def counts(world: str, n: int, runs: int, seed: int) -> dict[str, Any]:
    """Audit ``runs`` draws of one world and count verdicts and intervals that hold."""
    rng = np.random.default_rng((seed, n, *world.encode()))
    auc, unfair = truth(world)
    found = {f"style {code}": 0 for code in AnswerStyle} | {f"use {code}": 0 for code in AnswerUse}
    found |= {"auc": 0, "auc_tested": 0, "unfairness": 0, "unfairness_tested": 0, "pooled": 0}
    spreads = []
    for _ in range(runs):
        scorer = audit(world, n, rng)
        found[f"style {scorer.finding.style}"] += 1
        found[f"use {scorer.finding.use}"] += 1
        for key, interval, value in (
            ("auc", scorer.raw.auc_within, auc),
            ("unfairness", scorer.raw.unfairness, unfair),
        ):
            if interval is not None:
                found[f"{key}_tested"] += 1
                found[key] += interval.lower - 1e-9 <= value <= interval.upper + 1e-9
        if scorer.raw.unfairness is not None:
            spreads.append(round(scorer.raw.unfairness.estimate, 9))
        # What the pooled AUC would have said, for comparison.
        found["pooled"] += scorer.raw.auc is not None and scorer.raw.auc.lower > 0.55
    figures = {key: int(value) for key, value in found.items()}
    return {"counts": figures, "runs": runs, "spreads": spreads}


def cells() -> list[tuple[str, int]]:
    """Return (world, questions) of every cell."""
    return [(world, n) for world in WORLDS for n in SIZES]


def rows(found: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Turn counts into figures with their bars."""
    return [figure for cell, chunks in found.items() if chunks for figure in _figures(cell, found)]


def _spreads(chunks: list[dict[str, Any]]) -> FloatArray:
    return np.concatenate([chunk["spreads"] for chunk in chunks])


def _figures(
    cell: tuple[Any, ...], found: dict[tuple[Any, ...], list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    world, n = cell
    chunks = found[cell]
    total = {key: sum(c["counts"][key] for c in chunks) for key in chunks[0]["counts"]}
    runs = sum(chunk["runs"] for chunk in chunks)
    auc, unfair = truth(world)
    about = {"auc": auc, "unfairness": unfair}
    for key in ("auc", "unfairness"):
        tested = total[f"{key}_tested"]
        yield row(world, n, "coverage", total[key], tested, 0.93, of=key, **about)
        yield row(world, n, "refusal", runs - tested, runs, None, of=key, **about)
    styled = total[f"style {AnswerStyle.REWARDS}"] + total[f"style {AnswerStyle.SLIGHT}"]
    tested = total["unfairness_tested"]
    if unfair:
        # The oracle knows what spread the null world exceeds in at most .025 of runs, as the lower
        # end of a 95 % interval does; where most runs have too few questions there is no figure.
        null = _spreads(found[NULL[world], n])
        if min(len(null), tested) > runs / 2:
            oracle = float(np.mean(_spreads(chunks) > np.quantile(null, 0.975)))
            of = {"of": "rewards style", "oracle": oracle}
            yield row(world, n, "power", styled, tested, 0.9 * oracle, **of, **about)
    else:
        yield row(world, n, "size", styled, runs, 0.05, of="rewards style", **about)
    useless, useful = total[f"use {AnswerUse.USELESS}"], total[f"use {AnswerUse.SEPARATES}"]
    if abs(auc - 0.5) < 0.01:
        # An interval around .5 whose end is known ends below .55 in .90 of runs with 400 questions,
        # and with fewer reaches beyond: nobody can tell.
        bar = 0.8 if n >= 400 else None
        yield row(world, n, "power", useless, runs, bar, of="useless", **about)
        yield row(world, n, "size", useful, runs, 0.05, of="separates", **about)
        yield row(world, n, "size", total["pooled"], runs, None, of="pooled AUC", **about)
    elif abs(auc - 0.55) < 0.01:
        yield row(world, n, "size", useless, runs, 0.05, of="useless", **about)
        yield row(world, n, "size", useful, runs, 0.05, of="separates", **about)
    else:
        yield row(world, n, "power", useful, runs, 0.9, of="separates", **about)
        yield row(world, n, "size", useless, runs, 0.05, of="useless", **about)


if __name__ == "__main__":
    study(counts, cells(), rows, RESULT)
