"""Per-source NDCG and MAP: ours beside pytrec_eval and ir_measures, on the same lists."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytrec_eval

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speed"))
from rounds import in_turns
from workload import Workload

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.measure.relevance import score_run, source_scores

CUTOFF = 10
OURS = {"measures": ("NDCG", "MAP"), "cutoffs": (CUTOFF,)}
TREC = {f"ndcg_cut.{CUTOFF}", f"map_cut.{CUTOFF}"}
IR = [ir_measures.nDCG @ CUTOFF, ir_measures.AP @ CUTOFF]
KEYS = ((f"NDCG@{CUTOFF}", f"ndcg_cut_{CUTOFF}"), (f"MAP@{CUTOFF}", f"map_cut_{CUTOFF}"))


def best(works: dict[str, Any], rounds: int) -> dict[str, float]:
    """Milliseconds of CPU of each piece of work: its best of some rounds, taken in turns."""
    seconds = in_turns(works, rounds=rounds, clock=time.process_time)
    return {name: round(1000 * min(found), 2) for name, found in seconds.items()}


def largest_difference(load: Workload) -> float:
    """Between our values per query and source and pytrec_eval's."""
    scores = source_scores(load.run(), load.qrels(), load.tags(), ties="trec", **OURS)
    found = 0.0
    for source in load.sources:
        theirs = pytrec_eval.RelevanceEvaluator(load.qrels_of(source), TREC).evaluate(
            load.run_dict()
        )
        for name, key in KEYS:
            values = np.array([theirs[q][key] for q in scores.query_ids])
            found = max(found, float(np.abs(values - scores.of(name, source)).max()))
    return found


def by_source(n_queries: int, n_sources: int, rounds: int) -> dict[str, Any]:
    """Everything prepared on all sides: evaluators and dictionaries there, columns here."""
    load = Workload(n_queries=n_queries, depth=100, n_sources=n_sources)
    run, qrels, tags, lists = load.run(), load.qrels(), load.tags(), load.run_dict()
    masked = {s: load.qrels_of(s) for s in load.sources}
    trec = [pytrec_eval.RelevanceEvaluator(masked[s], TREC) for s in load.sources]
    measures = [ir_measures.evaluator(IR, masked[s]) for s in load.sources]
    works = {
        "ours": lambda: source_scores(run, qrels, tags, ties="trec", **OURS),
        "ours, ties averaged": lambda: source_scores(run, qrels, tags, **OURS),
        "pytrec_eval": lambda: [one.evaluate(lists) for one in trec],
        "ir_measures": lambda: [list(one.iter_calc(lists)) for one in measures],
    }
    return {
        "queries": n_queries,
        "sources": n_sources,
        "difference": largest_difference(load),
        "ms": best(works, rounds),
    }


def from_dictionaries(n_queries: int, rounds: int) -> dict[str, Any]:
    """The same from plain dictionaries, with nothing prepared, once per source and overall."""
    load = Workload(n_queries=n_queries, depth=100, n_sources=2)
    lists, everything = load.run_dict(), load.qrels_of(*load.sources)
    masked = {s: load.qrels_of(s) for s in load.sources}
    sources = {d: DocTags(source=d.rsplit("-", 1)[0]) for d in load.doc_ids}

    def ours() -> object:
        tags = TagTable.from_tags(sources.items())
        return source_scores(Run.from_dict(lists), Qrels.from_dict(everything), tags, **OURS)

    def theirs() -> object:
        return [pytrec_eval.RelevanceEvaluator(q, TREC).evaluate(lists) for q in masked.values()]

    def ours_overall() -> object:
        return score_run(Run.from_dict(lists), Qrels.from_dict(everything), **OURS)

    def theirs_overall() -> object:
        return pytrec_eval.RelevanceEvaluator(everything, TREC).evaluate(lists)

    two = best({"ours": ours, "pytrec_eval": theirs}, rounds)
    one = best({"ours": ours_overall, "pytrec_eval": theirs_overall}, rounds)
    return {"queries": n_queries, "two sources": two, "overall": one}


def ranking_rows(*, quick: bool) -> dict[str, Any]:
    """All measurements of this part."""
    n, rounds = (200, 2) if quick else (10_000, 3)
    return {
        "prepared": [
            by_source(n // 100, 2, 2 * rounds),
            by_source(n, 2, rounds),
            by_source(n, 10, rounds),
        ],
        "from dictionaries": [from_dictionaries(m, rounds) for m in (n // 100, n)],
    }
