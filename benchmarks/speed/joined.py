"""How much faster a run is scored by source than by pytrec_eval: prepared, joined anew, from dicts.

Run it with ``python benchmarks/speed/joined.py [QUERIES]``. Every query has its own 100 documents,
so that looking ids up is most of the work. Processor time, the best of some rounds taken in turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytrec_eval
from rounds import in_turns

from rag_sourcebias.core.data import Qrels
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.intake.rankings import runs_of
from rag_sourcebias.measure.relevance import SourceScores, source_scores

DEPTH, RELEVANT, ROUNDS = 100, 4, 3
SAME = 1e-12
OURS = {"measures": ("NDCG", "MAP"), "cutoffs": (10,)}
TREC = {"ndcg_cut.10", "map_cut.10"}


class Lists:
    """Dictionaries as programs hold them: a run, judgments and the source of each document."""

    def __init__(self, n_queries: int, n_sources: int) -> None:
        rng = np.random.default_rng(0)
        self.sources = ["human", *(f"llm:{i}" for i in range(1, n_sources))]
        self.run: dict[str, dict[str, float]] = {}
        self.qrels: dict[str, dict[str, int]] = {}
        self.tags: dict[str, str] = {}
        for q in range(n_queries):
            scores = rng.random(DEPTH).tolist()
            docs = [f"q{q}-d{i}" for i in range(DEPTH)]
            self.run[f"q{q}"] = dict(zip(docs, scores, strict=True))
            self.tags.update({doc: self.sources[i % n_sources] for i, doc in enumerate(docs)})
            self.qrels[f"q{q}"] = {
                docs[i]: int(rng.integers(1, 4)) for i in range(RELEVANT * n_sources)
            }

    def masked(self) -> list[dict[str, dict[str, int]]]:
        """Return the judgments of each source."""
        return [
            {
                q: {d: g for d, g in row.items() if self.tags[d] == source}
                for q, row in self.qrels.items()
            }
            for source in self.sources
        ]


def ratios(n_queries: int, n_sources: int) -> dict[str, float]:
    """Return how many times as long pytrec_eval takes."""
    lists = Lists(n_queries, n_sources)
    (run,), qrels = runs_of(lists.run), Qrels.from_dict(lists.qrels)
    tags = read_tags(lists.tags)
    evaluators = [pytrec_eval.RelevanceEvaluator(one, TREC) for one in lists.masked()]
    masked = lists.masked()

    def prepared() -> SourceScores:
        return source_scores(run, qrels, tags, **OURS)

    def joined_anew() -> object:
        fresh = replace(run), replace(qrels), replace(tags)
        return source_scores(*fresh, **OURS)

    def from_dicts() -> object:
        return source_scores(
            *runs_of(lists.run),
            Qrels.from_dict(lists.qrels),
            read_tags(lists.tags),
            **OURS,
        )

    scores = prepared()
    for source, evaluator in zip(lists.sources, evaluators, strict=True):
        theirs = evaluator.evaluate(lists.run)
        values = np.array([theirs[q]["ndcg_cut_10"] for q in scores.query_ids])
        if np.abs(values - scores.of("NDCG@10", source)).max() > SAME:
            raise SystemExit(f"NDCG@10 of {source} differs from pytrec_eval's")
    works: dict[str, Callable[[], object]] = {
        "prepared": prepared,
        "with its join": joined_anew,
        "from dictionaries": from_dicts,
        "pytrec_eval, prepared": lambda: [one.evaluate(lists.run) for one in evaluators],
        "pytrec_eval, from dictionaries": lambda: [
            pytrec_eval.RelevanceEvaluator(one, TREC).evaluate(lists.run) for one in masked
        ],
    }
    seconds = {
        name: min(found)
        for name, found in in_turns(works, rounds=ROUNDS, clock=time.process_time).items()
    }
    print({name: round(value, 3) for name, value in seconds.items()})
    theirs, anew = seconds["pytrec_eval, prepared"], seconds["pytrec_eval, from dictionaries"]
    return {
        "prepared": theirs / seconds["prepared"],
        "with its join": theirs / seconds["with its join"],
        "from dictionaries": anew / seconds["from dictionaries"],
    }


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for sources in (2, 10):
        found = {name: round(value, 2) for name, value in ratios(n, sources).items()}
        print(f"{n:,} queries, {sources} sources: {found}")
