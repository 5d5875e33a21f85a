"""What one line costs: from plain dictionaries to measures, to inference and to a first screen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytrec_eval

import rag_sourcebias as rsb
from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.measure.relevance import source_scores

CUTOFFS = (1, 3, 5)
PAGE = 5.0  # MB


def dictionaries(n_queries: int, *, depth: int = 100) -> tuple[dict, dict, dict]:
    """Return results, judgments and sources as people hold them: six relevant, of two sources."""
    rng = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(20 * depth)]
    results = {
        f"q{q}": dict(
            zip(
                rng.choice(docs, depth, replace=False).tolist(),
                rng.random(depth).tolist(),
                strict=True,
            )
        )
        for q in range(n_queries)
    }
    judged = {q: dict.fromkeys(list(row)[:6], 1) for q, row in results.items()}
    return results, judged, {doc: ("human", "llm:x")[i % 2] for i, doc in enumerate(docs)}


def paired(n_queries: int) -> tuple[dict, dict]:
    """Return results over pairs of texts, each with its query, and the data to them."""
    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(5_000)])
    kinds = ("human", "llm:x")
    corpus = {
        f"{kind}{i}": {"text": " ".join(rng.choice(words, 60)), "source": kind, "pair_id": str(i)}
        for i in range(n_queries)
        for kind in kinds
    }
    results = {
        f"q{i}": {
            f"{kind}{j}": float(rng.random()) for j in (i, *rng.integers(n_queries, size=9))
            for kind in kinds
        }
        for i in range(n_queries)
    }  # fmt: skip
    judged = {f"q{i}": [f"{kind}{i}" for kind in kinds] for i in range(n_queries)}
    queries = {f"q{i}": f"what of {i}" for i in range(n_queries)}
    return results, {"corpus": corpus, "queries": queries, "qrels": judged}


def cpu_seconds(*works: Callable[[], object], rounds: int) -> list[float]:
    """Return the best processor time of each, in turns: other work on the machine counts less."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = time.process_time()
            work()
            best[i] = min(best[i], time.process_time() - start)
    return best


def verb_rows(row: Callable[..., dict], *, quick: bool) -> list[dict]:
    """100 queries × 100 documents of two sources, and the page of many queries."""
    results, judged, sources = dictionaries(100)
    data = {"qrels": judged, "tags": sources}
    wanted = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("ndcg_cut", "map_cut")}

    def theirs() -> object:
        return pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate(results)

    def measures() -> object:
        return source_scores(
            Run.from_dict(results), Qrels.from_dict(judged),
            TagTable.from_tags((d, DocTags(source=s)) for d, s in sources.items()),
            measures=("NDCG", "MAP"), cutoffs=CUTOFFS,
        )  # fmt: skip

    report = rsb.audit(results, data)
    reference, scored, audited, screen = cpu_seconds(
        theirs,
        measures,
        lambda: rsb.audit(results, data),
        report._repr_html_,
        rounds=5 if quick else 30,
    )
    n = 1_000 if quick else 10_000
    large = rsb.audit(*paired(n))
    with tempfile.TemporaryDirectory() as folder:
        rsb.write_report(large, folder, formats=("html",))
        page = Path(folder, "report.html").stat().st_size / 1e6

    def ms(seconds: float) -> str:
        return f"{1000 * seconds:.1f} ms"

    what = "100 queries × 100 documents, two sources, from dictionaries"
    once = f"one pytrec_eval pass over both sources: {ms(reference)}"
    return [
        row(f"{what}: NDCG and MAP of each source", ms(scored), once, scored / reference,
            "≤ 2×", scored <= 2 * reference),
        row(f"{what}: rsb.audit with all inference", ms(audited), once, audited / reference,
            "≤ 15×", audited <= 15 * reference),
        row("first screen of that report in a notebook", ms(screen), f"the audit: {ms(audited)}",
            screen / audited, "≤ 0.1×", screen <= audited / 10),
        row(f"page of {n:,} queries over pairs, with texts", f"{page:.1f} MB", "–", page,
            f"≤ {PAGE:g} MB", page <= PAGE),
    ]  # fmt: skip
