"""Arithmetic that the papers' own figures must obey, computed by the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Columns = dict[str, Any]


def relative_deltas(where: Mapping[str, Any]) -> Columns:
    """Relative Δ from printed means ([K] K0.9 and K0.10)."""
    from printed import cells

    from rag_sourcebias.measure.relevance import relative_delta

    human, llm = cells(where, "human"), cells(where, "llm")
    found = [relative_delta(h, g) for h, g in zip(human["y"], llm["y"], strict=True)]
    return {"x": human["x"], "y": [value for value in found if value is not None]}


def length_changes(human: Mapping[str, float], other: Mapping[str, float]) -> Columns:
    """Percent by which rewrites are longer, from printed mean lengths."""
    return {
        "x": list(other),
        "y": [100 * (other[name] / human[name.partition(",")[0]] - 1) for name in other],
    }


def masked_example(removed: bool = False) -> Columns:
    """[K] App. A: six documents, one relevant, in both versions.

    The human copy is third and the LLM copy fifth: with either as the target the other counts as
    not relevant and keeps its place. ``removed``: wrongly, the other copy leaves the list.
    """
    from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
    from rag_sourcebias.measure.relevance import source_scores

    names = ("d2@human", "d3@llm", "d1@human", "d4@human", "d1@llm", "d5@llm")
    qrels = Qrels.from_dict({"q": {"d1@human": 1, "d1@llm": 1}})
    tags = TagTable.from_tags([(name, DocTags(source=name.partition("@")[2])) for name in names])
    x, y = [], []
    for measure in ("NDCG", "MAP"):
        for source, other in (("human", "d1@llm"), ("llm", "d1@human")):
            listed = [name for name in names if not (removed and name == other)]
            run = Run.from_dict({"q": {name: float(6 - i) for i, name in enumerate(listed)}})
            scores = source_scores(run, qrels, tags, measures=(measure,), cutoffs=(5,))
            x.append(f"{measure}@5, {source}")
            y.append(float(scores.of(f"{measure}@5", source)[0]))
    return {"x": x, "y": y}


def prompts(of: str, next_one: bool = False) -> Columns:
    """1 for each prompt that stands in the library word for word as in the paper.

    ``next_one``: wrongly, each is looked for where the one after it stands.
    """
    from prompt_texts import PROMPTS

    pairs = PROMPTS[of]()
    ours = [mine for mine, _ in pairs.values()]
    if next_one:
        ours = [*ours[1:], ours[0]]
    return {
        "x": list(pairs),
        "y": [
            float(theirs in mine if of == "[W] styles" else mine == theirs)
            for mine, (_, theirs) in zip(ours, pairs.values(), strict=True)
        ],
    }


def predictions(probs: Mapping[str, Sequence[float]], mean_grade: bool = False) -> Columns:
    """[R] Fig. 1 at λ = −1, 0 and 1: the least gain, the prediction, the largest gain (Eq. 21).

    ``mean_grade``: wrongly, the gain of the mean grade in place of the mean gain.
    """
    from rag_sourcebias.judged.crc import perturb

    grades = np.arange(5.0)
    gains = 2.0**grades - 1
    x, y = [], []
    for name, row in probs.items():
        values = np.array([row], dtype=np.float64)
        values /= values.sum()
        for lam in (-1.0, 0.0, 1.0):
            x.append(f"{name}, λ = {lam:g}")
            moved = perturb(values, lam)
            gain = 2.0 ** (moved @ grades) - 1 if mean_grade else moved @ gains
            y.append(float(gain[0]))
    return {"x": x, "y": y}


def limits(probs: Mapping[str, Sequence[float]], best_first: bool = False) -> Columns:
    """Largest fall of the gain along λ: 0 where it only rises ([R] Eq. 16 to 19).

    ``best_first``: wrongly, the grades are read in falling order.
    """
    from rag_sourcebias.judged.crc import perturb

    gains = 2.0 ** np.arange(5) - 1
    gains = gains[::-1] if best_first else gains
    falls = []
    for row in probs.values():
        values = np.array([row], dtype=np.float64)
        values /= values.sum()
        path = np.array(
            [float((perturb(values, lam) @ gains)[0]) for lam in np.linspace(-1, 1, 201)]
        )
        falls.append(float(max(0.0, -np.diff(path).min())))
    return {"x": list(probs), "y": falls}


def batch_of_one(sizes: Sequence[int], level: float = 0.95) -> Columns:
    """1 where calibration on that many single queries is refused, as it must be below 19.

    ``level``: another confidence level needs other sizes.
    """
    from rag_sourcebias.core.errors import CalibrationError
    from rag_sourcebias.judged.crc import RankedLabels, per_query_intervals

    rng = np.random.default_rng(0)
    refused = []
    for n in sizes:
        labels = RankedLabels.from_grid(
            rng.dirichlet(np.ones(4), (n, 10)),
            1 / np.log2(np.arange(2.0, 12.0)),
            2.0 ** np.arange(4) - 1,
        )
        try:
            per_query_intervals(
                labels, labels.utilities() * 0.8, labels, rule="paper", confidence_level=level
            )
        except CalibrationError:
            refused.append(1.0)
        else:
            refused.append(0.0)
    return {"x": list(sizes), "y": refused}


def rank_sums(n: int = 50, k: int = 10, best_of_ties: bool = False) -> Columns:
    """[W] Eq. 2: average ranks of k versions sum to k(k + 1)/2, with and without ties.

    ``best_of_ties``: wrongly, tied versions share the best of their ranks.
    """
    from scipy.stats import rankdata

    from rag_sourcebias.style.measure import rank_versions

    def ranks(values: np.ndarray) -> np.ndarray:
        if best_of_ties:
            return np.asarray(rankdata(-values, method="min", axis=1))
        return np.asarray(rank_versions(values))

    rng = np.random.default_rng(0)
    free = rng.normal(size=(n, k))
    tied = np.round(free)
    return {
        "x": ["no ties", "many ties", "all tied"],
        "y": [float(ranks(values).mean(axis=0).sum()) for values in (free, tied, np.zeros((n, k)))],
    }


def unfairness_bounds(k: int = 10, n: int = 400, ddof: int = 0) -> Columns:
    """[W] Eq. 3: the largest possible score, and N times what rankings at random get."""
    from rag_sourcebias.style.measure import max_unfairness, null_unfairness, unfairness_score

    order = np.arange(1.0, k + 1)
    ranks = np.random.default_rng(0).permuted(np.tile(order, (n, 1)), axis=1)
    return {
        "x": ["largest", "score of the extreme order", "N × null expectation"],
        "y": [
            float(max_unfairness(k, ddof=ddof)),
            float(unfairness_score(order, ddof=ddof)),
            n * float(null_unfairness(ranks, ddof=ddof)),
        ],
    }


def unfairness_rows(cells: Mapping[str, Sequence[float]], what: str) -> Columns:
    """Mean or population standard deviation of each row of [W] Table 1."""
    reduce = np.mean if what == "mean" else np.std
    return {"x": list(cells), "y": reduce(list(cells.values()), axis=1).tolist()}
