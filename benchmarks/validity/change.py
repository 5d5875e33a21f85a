"""What ``measure_debias`` says of encoders before and after, in worlds of known truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from counting import study
from rates import row

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, Run, TagTable
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import DebiasConfig

SIZES = (20, 80)
RESULT = Path(__file__).parents[1] / "results" / "validity_change.json"
_EXTRA = 8  # documents relevant to no query, per query

# (about, what changes, planted shift of human scores)
WORLDS = {
    "identical encoders": ("before and after rank alike", "nothing", 0.0),
    "new noise": ("other rankings, the same skew", "noise", 0.0),
    "a few queries": ("about eight queries rank otherwise, the same skew", "few", 0.0),
    "new noise, planted": ("human text loses half a standard deviation", "noise", -0.5),
}
# How much either system leans to human text; judged is what the first one had on its first ranks.
POOLED = {
    "pooled from the first": (
        "both lean to human text alike; the first one's top 10 is judged",
        1.0,
    ),
    "pooled, second blind": (
        "the first leans, the second knows no source; the same is judged",
        0.0,
    ),
}
POOLED_SIZES, POOL = (30, 100, 300), 10
_WIDTH, _RELEVANT = 40, 8  # documents of a query, by turns of either source; the first are relevant


@dataclass(frozen=True, eq=False)
class GivenScores:
    """A retriever whose scores are given: query by document of the mixed corpus."""

    name: str
    scores: np.ndarray[Any, Any]
    settings: Mapping[str, str] = field(default_factory=dict)

    def build(self, corpus: Corpus) -> _Search:
        """Index the rows of a corpus by their text, which is their number."""
        return _Search(self.scores, np.array([int(text) for text in corpus.texts]), corpus)


@dataclass(frozen=True, eq=False)
class _Search:
    scores: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]
    corpus: Corpus

    def retrieve(self, queries: Any, depth: int) -> Run:
        """Rank the documents of the query's block; the others are no candidates."""
        width = self.scores.shape[1]
        block = self.columns // width
        order = np.argsort(-self.scores[block, self.columns % width], kind="stable")
        order = order[np.argsort(block[order], kind="stable")]
        sizes = np.bincount(block, minlength=len(queries))
        first = np.concatenate(([0], np.cumsum(sizes)))
        kept = np.arange(len(order)) - first[block[order]] < depth
        return Run(
            query_ids=tuple(query.query_id for query in queries),
            offsets=np.concatenate(([0], np.cumsum(np.minimum(sizes, depth)))),
            doc_codes=order[kept].astype(np.int32),
            doc_ids=self.corpus.doc_ids,
        )


@cache
def data(n: int) -> Dataset:
    """One relevant human document and its rewrite per query, and documents of both sources."""
    width = 2 + _EXTRA
    tags = []
    for i in range(n):
        tags += [
            (f"q{i}h", DocTags(source="human", pair_id=f"p{i}")),
            (f"q{i}l", DocTags(source="llm:a", pair_id=f"p{i}")),
        ]
        tags += [(f"q{i}x{j}", DocTags(source=("human", "llm:a")[j % 2])) for j in range(_EXTRA)]
    table = TagTable.from_tags(tags)
    return Dataset(
        name="world",
        corpus=Corpus(texts=tuple(map(str, range(n * width))), tags=table),
        queries=tuple(Query(query_id=f"q{i}", text=f"q{i}") for i in range(n)),
        qrels=Qrels.from_rows([(f"q{i}", f"q{i}{s}", 1) for i in range(n) for s in "hl"]),
        design="rewrites",
    )


def drawn(name: str, n: int, rng: np.random.Generator) -> tuple[GivenScores, GivenScores]:
    """Return the encoders before and after."""
    _, what, shift = WORLDS[name]
    base = rng.normal(size=(n, 2 + _EXTRA))
    base[:, :2] += 0.6 + rng.normal(size=(n, 1))
    base[:, 0] += 0.2  # both favour human text a little
    after = base.copy()
    if what == "noise":
        after += 0.5 * rng.normal(size=base.shape)
        after[:, 0] += shift
        # the same distribution as before but for the shift, so that the skew is the same
        base += 0.5 * rng.normal(size=base.shape)
    elif what == "few":
        moved = rng.random(n) < 8 / n
        fresh = rng.normal(size=base.shape)
        fresh[:, :2] += 0.6 + rng.normal(size=(n, 1))
        fresh[:, 0] += 0.2 + shift
        after[moved] = fresh[moved]
    return GivenScores("before", base), GivenScores("after", after)


def pooled(name: str, n: int, rng: np.random.Generator) -> tuple[list[GivenScores], Dataset]:
    """Return two systems, and judgments of what the first one had on its first ranks."""
    human, relevant = np.arange(_WIDTH) % 2 == 0, np.arange(_WIDTH) < _RELEVANT
    easy = 1.5 * relevant + rng.normal(size=(n, _WIDTH))
    leans = {"before": 1.0, "after": POOLED[name][1]}
    systems = [
        GivenScores(system, easy + lean * human + rng.normal(size=easy.shape))
        for system, lean in leans.items()
    ]
    judged = np.argsort(-systems[0].scores, axis=1)[:, :POOL]
    names = [[f"q{i}d{j}" for j in range(_WIDTH)] for i in range(n)]
    sides = [DocTags(source=source) for source in ("human", "llm:a")] * (_WIDTH // 2)
    tags = TagTable.from_tags(pair for row in names for pair in zip(row, sides, strict=True))
    return systems, Dataset(
        name="pooled",
        corpus=Corpus(texts=tuple(map(str, range(n * _WIDTH))), tags=tags),
        queries=tuple(Query(query_id=f"q{i}", text=f"q{i}") for i in range(n)),
        qrels=Qrels.from_rows(
            (f"q{i}", names[i][j], int(relevant[j])) for i in range(n) for j in judged[i]
        ),
        design="independent",
    )


@cache
def oracle(name: str, n: int) -> float:
    """Power of a test that knows how the mean change of the gap between sources is distributed."""

    def changes(world: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        found = np.empty(20_000)
        for i in range(len(found)):
            before, after = (_gap(pair.scores) for pair in drawn(world, n, rng))
            found[i] = np.mean(after - before)
        return found

    null, planted = (
        changes("new noise", np.random.default_rng(5)),
        changes(name, np.random.default_rng(6)),
    )
    centre = float(np.mean(null))
    critical = float(np.quantile(np.abs(null - centre), 0.95))
    return float(np.mean(np.abs(planted - centre) > critical))


def _gap(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NDCG@5 of the human copy minus that of the other, by query."""
    ranks = 1 + (scores[:, None, :] > scores[:, :2, None]).sum(axis=2)
    gains = np.where(ranks <= 5, 1 / np.log2(1 + ranks), 0.0)
    return np.asarray(gains[:, 0] - gains[:, 1])


@cache
def truth(name: str) -> float:
    """Change of Relative Δ over very many queries."""
    if not WORLDS[name][2]:
        return 0.0
    rng, found = np.random.default_rng(21), []
    config = DebiasConfig(cutoffs=(5, 10), resamples=1)
    for _ in range(8):
        report = measure_debias(
            (pair := drawn(name, 10_000, rng))[0],
            [pair[1]],
            [data(10_000)],
            config=config,
        )
        found.append(report.datasets[0].outcomes[1].skew[0].change.estimate)
    return float(np.mean(found))


def counts(name: str, n: int, runs: int, seed: int) -> dict[str, Any]:
    """Compare ``runs`` pairs of encoders and count."""
    rng = np.random.default_rng((seed, n, *name.encode()))
    config = DebiasConfig(cutoffs=(5, 10), resamples=199)
    if name in POOLED:
        found = {"rejected": 0, "worse": 0}
        for _ in range(runs):
            (before, after), dataset = pooled(name, n, rng)
            report = measure_debias(before, [after], [dataset], config=config)
            skew = report.datasets[0].outcomes[1].skew[0]
            found["rejected"] += skew.stands and skew.p_value is not None and skew.p_value < 0.05
            found["worse"] += report.verdict == "made_worse"
        return {"counts": found, "truth": None, "runs": runs}
    true = truth(name)
    found = {"covered": 0, "refused": 0, "rejected": 0, "exactly_0": 0, "tested": 0, "right": 0}
    for _ in range(runs):
        before, after = drawn(name, n, rng)
        report = measure_debias(before, [after], [data(n)], config=config)
        skew = report.datasets[0].outcomes[1].skew[0]
        found["tested"] += skew.p_value is not None
        found["rejected"] += skew.p_value is not None and skew.p_value < 0.05
        if skew.change is None:
            found["refused"] += 1
            continue
        right = np.sign(skew.change.estimate) == np.sign(true)
        found["right"] += int(right and skew.p_value is not None and skew.p_value < 0.05)
        found["covered"] += not skew.change.excludes(true)
        found["exactly_0"] += skew.change.lower == skew.change.upper == 0.0
    return {"counts": found, "truth": true, "runs": runs}


def rows(found: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Turn counts into figures with their bars."""
    return [figure for cell, chunks in found.items() for figure in _figures(*cell, chunks)]


def _figures(name: str, n: int, chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    total = {key: sum(c["counts"][key] for c in chunks) for key in chunks[0]["counts"]}
    runs = sum(c["runs"] for c in chunks)
    if name in POOLED:
        about, lean = POOLED[name]
        more = {"about": about}
        # where the second system leans less there is a change to find
        kind, bar = ("rejection", 0.05) if lean else ("power", None)
        return [
            row(name, n, kind, total["rejected"], runs, bar, **more),
            row(name, n, "size", total["worse"], runs, 0.05, of="made it worse", **more),
        ]
    more = {"about": WORLDS[name][0], "truth": chunks[0]["truth"]}
    judged = runs - total["refused"]
    figures = [
        row(name, n, "coverage", total["covered"], judged, 0.93, of="change", **more),
        row(name, n, "refusal", total["refused"], runs, None, **more),
    ]
    if WORLDS[name][2]:
        known = oracle(name, n)
        figures.append(
            row(name, n, "power", total["right"], runs, 0.9 * known, oracle=known, **more)
        )
    else:
        figures.append(row(name, n, "rejection", total["rejected"], total["tested"], 0.05, **more))
    if name == "identical encoders":
        figures.append(
            row(name, n, "coverage", total["exactly_0"], judged, 1.0, of="exactly 0", **more)
        )
    return figures


if __name__ == "__main__":
    cells = [(name, n) for name in WORLDS for n in SIZES]
    study(counts, [*cells, *((name, n) for name in POOLED for n in POOLED_SIZES)], rows, RESULT)
