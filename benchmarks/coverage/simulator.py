"""Simulated judged rankings whose truth is known.

A query has a level: how much relevant text there is for it. A document has a relevance that falls
with the logarithm of its rank and scatters about the query's level. People grade it by cuts on that
relevance. The judge sees a compressed, shifted and noisy copy of it, with an error of its own for
every query, and states how likely each grade is. The presets meet Table 1 of Oosterhuis et al.
(KDD 2024): mean DCG@10 by human and by judge labels, of BM25, random, judge-ranked and ideal
orders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.judged.crc import RankedLabels


@dataclass(frozen=True)
class Preset:
    """People (fall to cuts) and judge (slope to softness)."""

    fall: float
    query_sd: float
    cuts: tuple[float, ...]
    slope: float
    shift: float
    judge_query_sd: float
    judge_doc_sd: float
    softness: float  # 0 would put all probability on one grade


TREC_DL = Preset(
    fall=0.362,
    query_sd=0.715,
    cuts=(-0.45, 0.15, 0.75),
    slope=0.66,
    shift=0.39,
    judge_query_sd=0.62,
    judge_doc_sd=0.60,
    softness=0.19,
)
PRESETS = {
    "TREC-DL": TREC_DL,
    # twice the mean error of the preset above
    "2x-biased": replace(TREC_DL, shift=0.88),
    "over-confident": replace(TREC_DL, slope=0.9, shift=0.62, softness=0.03),
    "Robust04": Preset(
        fall=0.409,
        query_sd=0.903,
        cuts=(-0.108, 1.192),
        slope=0.30,
        shift=0.42,
        judge_query_sd=0.42,
        judge_doc_sd=0.39,
        softness=0.24,
    ),
}


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """Grades (queries, documents) by people; probabilities (…, grades) by the judge."""

    grades: np.ndarray
    probs: np.ndarray

    @property
    def gains(self) -> np.ndarray:
        """2^r − 1 of every grade."""
        return np.exp2(np.arange(self.probs.shape[-1])) - 1.0

    def human(self) -> np.ndarray:
        """DCG of every query by human grades."""
        return self.gains[self.grades] @ dcg(self.grades.shape[1])

    def judge(self) -> np.ndarray:
        """DCG of every query by the judge's mean gains."""
        return self.probs @ self.gains @ dcg(self.grades.shape[1])

    def labels(self) -> RankedLabels:
        return RankedLabels.from_grid(self.probs, dcg(self.grades.shape[1]), self.gains)

    def with_judge(self, probs: np.ndarray) -> JudgedQueries:
        return replace(self, probs=probs)


def dcg(depth: int, cutoff: int = 10) -> np.ndarray:
    """1 / log2(rank + 1) through the cutoff, then 0."""
    rank = np.arange(1, depth + 1)
    return np.where(rank <= cutoff, 1 / np.log2(rank + 1), 0.0)


def draw(
    n_queries: int, rng: np.random.Generator, *, preset: str = "TREC-DL", depth: int = 10
) -> JudgedQueries:
    """Draw judged queries; documents in BM25 order."""
    p = PRESETS[preset]
    cuts = np.array(p.cuts)
    shape = (n_queries, depth)
    level = p.query_sd * rng.standard_normal((n_queries, 1)) - p.fall * np.log(
        np.arange(1, depth + 1)
    )
    relevance = level + rng.standard_normal(shape)
    grades = (relevance[..., None] > cuts).sum(axis=-1)
    seen = (
        p.slope * relevance
        + p.shift
        + p.judge_query_sd * rng.standard_normal((n_queries, 1))
        + p.judge_doc_sd * rng.standard_normal(shape)
    )
    above = 1 / (1 + np.exp(np.clip((cuts - seen[..., None]) / p.softness, -700, 700)))
    ones, zeros = np.ones((*shape, 1)), np.zeros((*shape, 1))
    above = np.concatenate([ones, above, zeros], axis=-1)
    return JudgedQueries(grades, above[..., :-1] - above[..., 1:])


# --- other judges, from the same queries ---------------------------------------------------------


def oracle(queries: JudgedQueries, tau: float) -> JudgedQueries:
    """Probability moved to the human grade ([R] §7, RQ3)."""
    truth = np.eye(queries.probs.shape[-1])[queries.grades]
    return queries.with_judge((1 - tau) * queries.probs + tau * truth)


def votes(queries: JudgedQueries, n_votes: int, rng: np.random.Generator) -> JudgedQueries:
    """Share of each grade among sampled answers."""
    return queries.with_judge(rng.multinomial(n_votes, queries.probs) / n_votes)


def one_hot(queries: JudgedQueries) -> JudgedQueries:
    """The likeliest grade only."""
    return queries.with_judge(np.eye(queries.probs.shape[-1])[queries.probs.argmax(axis=-1)])


def constant(queries: JudgedQueries) -> JudgedQueries:
    """The same answer to everything."""
    return queries.with_judge(np.full_like(queries.probs, 1 / queries.probs.shape[-1]))


def inverted(queries: JudgedQueries) -> JudgedQueries:
    """The best grade for the worst document."""
    return queries.with_judge(queries.probs[..., ::-1].copy())


def perfect(queries: JudgedQueries) -> JudgedQueries:
    """The human grade."""
    return oracle(queries, 1.0)


def table_1(preset: str, rng: np.random.Generator, *, n_queries: int = 20_000) -> dict:
    """Mean DCG@10 by human and judge labels of the four rankers of [R] Table 1."""
    totals: dict[str, list[np.ndarray]] = {}
    chunk = 2_000
    for _ in range(0, n_queries, chunk):
        queries = draw(chunk, rng, preset=preset, depth=100)
        human, judge = queries.gains[queries.grades], queries.probs @ queries.gains
        ties = 1e-6 * rng.random(human.shape)
        orders = {"random": ties, "BM25": None, "judge": -judge, "perfect": ties - human}
        for name, key in orders.items():
            order = np.tile(np.arange(100), (chunk, 1)) if key is None else np.argsort(key, axis=1)
            both = [np.take_along_axis(gain, order, axis=1) @ dcg(100) for gain in (human, judge)]
            totals.setdefault(name, []).append(np.array(both))
    by_ranker = {name: np.concatenate(parts, axis=1) for name, parts in totals.items()}
    human, judge = by_ranker["BM25"]
    means = {
        name: [round(float(v), 2) for v in values.mean(axis=1)]
        for name, values in by_ranker.items()
    }
    return {
        "DCG@10 by human, by judge": means,
        "BM25: correlation": round(float(np.corrcoef(human, judge)[0, 1]), 3),
        "BM25: sd by human, by judge": [round(float(human.std()), 2), round(float(judge.std()), 2)],
        "BM25: slope": round(float(np.cov(human, judge)[0, 1] / judge.var(ddof=1)), 3),
    }
