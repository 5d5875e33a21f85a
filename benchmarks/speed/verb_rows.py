"""What one line costs: from plain dictionaries to measures, to inference and to a first screen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytrec_eval
from joined import Lists
from rounds import in_turns

import rag_sourcebias as rsb

CUTOFFS = (1, 3, 5)
PAGE = 5.0  # MB


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


def verb_rows(row: Callable[..., dict], *, quick: bool) -> list[dict]:
    """100 queries × 100 documents of two sources, and the page of many queries."""
    lists = Lists(100, 2)
    data = {"qrels": lists.qrels, "tags": lists.tags}
    wanted = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("ndcg_cut", "map_cut")}

    def theirs() -> object:
        return pytrec_eval.RelevanceEvaluator(lists.qrels, wanted).evaluate(lists.run)

    report = rsb.audit(lists.run, data)
    works = {
        "theirs": theirs,
        "audit": lambda: rsb.audit(lists.run, data),
        "screen": report._repr_html_,
    }
    seconds = in_turns(works, rounds=5 if quick else 30, clock=time.process_time)
    reference, audited, screen = map(min, seconds.values())
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
        row(f"{what}: rsb.audit with all inference", ms(audited), once, audited / reference,
            "≤ 15×", audited <= 15 * reference),
        row("first screen of that report in a notebook", ms(screen), f"the audit: {ms(audited)}",
            screen / audited, "≤ 0.1×", screen <= audited / 10),
        row(f"page of {n:,} queries over pairs, with texts", f"{page:.1f} MB", "–", page,
            f"≤ {PAGE:g} MB", page <= PAGE),
    ]  # fmt: skip
