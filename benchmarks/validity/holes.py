"""What ``measure_source_bias`` says where documents were retrieved that nobody judged.

Judgments are pooled from the first ranks of rankers that lean to human text (or, in a mixture, of
which some do), or miss relevant LLM documents at random. The ranker that is audited sees no
source; its twin has a preference planted, and the same draw is audited with all judgments beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from counting import study
from rates import row

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SkewVerdict

SIZES = (30, 100, 300)
RESULT = Path(__file__).parents[1] / "results" / "validity_holes.json"
N_DOCS, N_RELEVANT = 60, 3  # of a query; relevant ones of each source
SOURCES = ("human", "llm:a")
SIDE = np.repeat([0, 1], N_DOCS // 2)
CONFIG = AuditConfig(measures=("NDCG",), cutoffs=(10,), resamples=2_000, browsing=())


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Where judgments come from: rankers' leanings in standard deviations, and the depth read.

    ``favour`` is the preference planted at 100 queries, in standard deviations of a ranker's noise.
    ``missing`` is the share of relevant LLM documents that nobody judged, without any pool.
    ``near`` is how much power may be lost beside the same verdict without a look at holes, and
    ``whole`` the share of the power with all judgments that must be left, by number of queries.
    """

    name: str
    about: str
    leanings: tuple[float, ...] = ()
    depth: int = 10
    favour: float = 0.5
    missing: float = 0.0
    near: float | None = None
    whole: tuple[tuple[int, float], ...] = ()


POOLS = (
    *(
        Pool(
            name=f"leaning pool of depth {depth}",
            about=f"judged is what three rankers that lean to human text had on {depth} ranks",
            leanings=(1.0, 1.0, 1.0),
            depth=depth,
        )
        for depth in (5, 10, 20)
    ),
    Pool(
        name="mixed pool",
        about="judged is what two leaning rankers and a fair one had on ten ranks",
        leanings=(1.0, 1.0, 0.0),
    ),
    Pool(
        name="fair pool",
        about="judged is what three fair rankers had on ten ranks; .03 of the power may be lost",
        leanings=(0.0, 0.0, 0.0),
        near=0.03,
    ),
    Pool(
        name="random holes",
        about="half of the relevant LLM documents are unjudged; .8 (n = 30), .9 (n = 100) of the "
        "power with all judgments must be left",
        missing=0.5,
        favour=0.7,  # at .5 what is lost is the relevant documents, with or without a look at holes
        whole=((30, 0.8), (100, 0.9)),
    ),
)
_BY_NAME = {pool.name: pool for pool in POOLS}


@lru_cache(maxsize=4)
def _names(n: int) -> tuple[tuple[str, ...], tuple[str, ...], TagTable]:
    queries = tuple(f"q{q}" for q in range(n))
    docs = tuple(f"{q}d{i}" for q in queries for i in range(N_DOCS))
    sides = np.tile(SIDE, n)
    tags = ((doc, DocTags(source=SOURCES[side])) for doc, side in zip(docs, sides, strict=True))
    return queries, docs, TagTable.from_tags(tags)


def draw(pool: Pool, n: int, strength: float, rng: np.random.Generator) -> tuple[Run, Qrels, Qrels]:
    """Return rankings, the judgments that were made, and those of everything.

    What makes a document easy to find is shared by all rankers.
    """
    queries, docs, _ = _names(n)
    shape = (n, N_DOCS)
    relevant = np.zeros(shape, dtype=np.int32)
    for side in (0, 1):
        order = np.argsort(np.where(side == SIDE, rng.random(shape), 2.0), axis=1)
        np.put_along_axis(relevant, order[:, :N_RELEVANT], 1, axis=1)
    easy = 1.5 * relevant + rng.normal(size=shape)
    human = SIDE == 0
    judged = np.zeros(shape, dtype=bool)
    for lean in pool.leanings:
        scores = easy + lean * human + rng.normal(size=shape)
        first = np.argpartition(-scores, pool.depth, axis=1)[:, : pool.depth]
        np.put_along_axis(judged, first, True, axis=1)
    if not pool.leanings:
        judged = ~((relevant == 1) & ~human & (rng.random(shape) < pool.missing))
    order = np.argsort(-(easy + strength * human + rng.normal(size=shape)), axis=1)
    codes = order + N_DOCS * np.arange(n)[:, None]
    run = Run(
        query_ids=queries,
        offsets=N_DOCS * np.arange(n + 1),
        doc_codes=codes.ravel().astype(np.int32),
        doc_ids=docs,
        name="ranker",
    )
    return run, _qrels(n, relevant, judged), _qrels(n, relevant, np.ones(shape, dtype=bool))


def _qrels(n: int, relevant: np.ndarray[Any, Any], judged: np.ndarray[Any, Any]) -> Qrels:
    queries, docs, _ = _names(n)
    rows, _ = np.nonzero(judged)
    return Qrels(
        query_ids=queries,
        doc_ids=docs,
        query_codes=rows.astype(np.int32),
        doc_codes=np.flatnonzero(judged).astype(np.int32),
        grades=relevant[judged],
    )


def _said(run: Run, qrels: Qrels, tags: TagTable) -> SkewVerdict:
    return measure_source_bias(run, qrels, tags, config=CONFIG).systems[0].verdicts[0]


def counts(name: str, n: int, planted: bool, runs: int, seed: int) -> dict[str, Any]:
    """Audit draws of one world and count what is said of them."""
    rng = np.random.default_rng((seed, n, planted, *name.encode()))
    found = dict.fromkeys(("favours", "human", "open", "unlooked", "covered", "stated", "whole"), 0)
    tags = _names(n)[2]
    pool = _BY_NAME[name]
    strength = pool.favour * (100 / n) ** 0.5 * planted
    for _ in range(runs):
        run, judged, everything = draw(pool, n, strength, rng)
        said = _said(run, judged, tags)
        human = said.code is SkewCode.FAVOURS_BASELINE
        found["human"] += human
        found["favours"] += human or said.code is SkewCode.FAVOURS_OTHER
        found["open"] += said.holes
        if said.interval is not None:
            found["stated"] += 1
            found["covered"] += not said.interval.excludes(0.0)
            found["unlooked"] += said.interval.lower > 0.0
        if planted and pool.whole:
            whole = _said(run, everything, tags)
            found["whole"] += whole.code is SkewCode.FAVOURS_BASELINE
    return {"counts": found, "runs": runs}


def rows(found: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Turn counts into figures with their bars."""
    figures = []
    for (name, n, planted), chunks in found.items():
        if not chunks:
            continue
        pool = _BY_NAME[name]
        total = {key: sum(chunk["counts"][key] for chunk in chunks) for key in chunks[0]["counts"]}
        runs = sum(chunk["runs"] for chunk in chunks)
        about = {"about": pool.about}
        if not planted:
            figures.append(row(name, n, "favours", total["favours"], runs, 0.05, **about))
            leaning = any(pool.leanings)
            held = (total["covered"], total["stated"], None if leaning else 0.93)
            figures.append(row(name, n, "coverage", *held, of="no look at holes"))
            continue
        bar = None
        if pool.near is not None:
            bar = total["unlooked"] / runs - pool.near
        for queries, share in pool.whole:
            if n == queries:
                bar = share * total["whole"] / runs
        figures.append(row(name, n, "power", total["human"], runs, bar, **about))
        unlooked = (total["unlooked"], runs, None)
        figures.append(row(name, n, "power", *unlooked, of="no look at holes"))
    return figures


def cells() -> list[tuple[str, int, bool]]:
    """Return (pool, queries, planted) of every cell."""
    return [(pool.name, n, planted) for pool in POOLS for n in SIZES for planted in (False, True)]


if __name__ == "__main__":
    study(counts, cells(), rows, RESULT)
