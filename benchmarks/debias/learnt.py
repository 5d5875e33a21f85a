"""Learnt remedies beside twin smoothing: every data set, rewriter and method in one table.

    python benchmarks/debias/learnt.py [--cache FILE]   # judges what is not there, then the page
    python benchmarks/debias/learnt.py --again          # judges what is there, too
    python benchmarks/debias/learnt.py --page           # the table of docs/debias.md again

Every method is fitted twice: on the set it is judged on ("seen", which flatters it; NFCorpus: on
its training split without the judged pairs), and on the pairs of all other rewriters, at most 800
of each ("unseen"). Twin smoothing is fitted on nothing. Writes benchmarks/results/learnt.json. With
the vectors in the cache it takes about five minutes on one core, and half an hour without.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import sets

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.core.values import environment
from rag_sourcebias.debias.audit import measure_debias, two_sources
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.debias.fit import score_twins
from rag_sourcebias.debias.parity import ScoredTwins, fit_parity
from rag_sourcebias.debias.projection import ProjectedEncoder, fit_projection
from rag_sourcebias.debias.rescore import RescoredSpec, TwinSpec
from rag_sourcebias.debias.twins import fit_twins
from rag_sourcebias.io.beir import read_beir
from rag_sourcebias.io.samples import load_sample
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import DenseSpec

HERE = Path(__file__).resolve()
RESULT = HERE.parents[1] / "results" / "learnt.json"
PAGE = HERE.parents[2] / "docs" / "debias.md"
SAID = {"favours_baseline": "favours human text", "favours_other": "favours LLM text"} | {
    "made_worse": "made it worse"
}
MOST = 800  # pairs of one rewriter in a pool
PROJECTIONS = {"projection, mean": ("mean", 1), "projection, 4 directions": ("pca", 4)}
CONFIG = DebiasConfig(cutoffs=(5, 10), resamples=1_999)
Pool = tuple[ScoredTwins, tuple[np.ndarray, np.ndarray]]


def judged(root: Path) -> dict[str, Dataset]:
    return {
        "nfcorpus": read_beir(root / "nfcorpus", split="dev"),
        "nq-utd": read_beir(root / "nq-utd"),
        "crowdrag-rewrites": load_sample(),
        "outfox essays": sets.outfox(root),
        "crowdrag25": sets.JUDGED["crowdrag25"](root),
    }


def pool_of(data: Dataset, source: str, encoder: CachedEncoder, exclude: set[str]) -> Pool:
    """Scores and vectors of the pairs of one rewriter."""
    scored = score_twins(data, encoder, sources=[source], exclude=exclude)[0][0]
    texts = twin_texts(data.corpus, source=source, exclude=exclude)
    return scored, (
        encoder.encode_documents(texts.baseline_texts),
        encoder.encode_documents(texts.source_texts),
    )


def drawn(pools: list[Pool], source: str) -> Pool:
    """At most 800 pairs of each rewriter, as if they were of the one to be judged."""
    rng, scores, vectors = np.random.default_rng(0), [], []
    for place, (scored, sides) in enumerate(pools):
        rows = rng.permutation(len(scored.queries))[:MOST]
        queries = scored.queries[rows] + place * 1_000_000
        scores.append((scored.baseline_scores[rows], scored.source_scores[rows], queries))
        some = rng.permutation(len(sides[0]))[:MOST]
        vectors.append((sides[0][some], sides[1][some]))
    base, other, queries = (np.concatenate(part) for part in zip(*scores, strict=True))
    twins = ScoredTwins(source=source, baseline_scores=base, source_scores=other, queries=queries)
    human, rewritten = (np.concatenate(part) for part in zip(*vectors, strict=True))
    return twins, (human, rewritten)


def systems(pool: Pool, encoder: CachedEncoder, fit: str) -> Iterator[tuple[str, object]]:
    """Yield what each method makes of the encoder, or why it refuses."""
    first, (twins, (human, other)) = DenseSpec(encoder), pool
    try:
        parity = fit_parity([twins], encoder=encoder.fingerprint)
        yield "offset", RescoredSpec(first, parity, name=f"offset, {fit}")
    except InsufficientDataError as error:
        yield "offset", str(error)
    for name, (method, directions) in PROJECTIONS.items():
        try:
            found = fit_projection(
                human, other, method=method, n_directions=directions, encoder=encoder.fingerprint
            )
            yield name, DenseSpec(ProjectedEncoder(encoder, found, name=f"{name}, {fit}"))
        except InsufficientDataError as error:
            yield name, str(error)


def smoothed(data: Dataset, source: str, encoder: CachedEncoder) -> object:
    """Return twin smoothing, or why it refuses."""
    try:
        fit_twins(two_sources(data, "human", source).corpus, encoder)
    except DataError as error:
        return str(error)
    return TwinSpec(DenseSpec(encoder), encoder, name="twins")


def rows_of(
    name: str,
    data: Dataset,
    source: str,
    pools: dict[tuple[str, str], Pool],
    encoder: CachedEncoder,
) -> Iterator[dict]:
    """Judge all methods on one set and rewriter."""
    model = rewriter(source)
    others = [pool for (_, other), pool in pools.items() if rewriter(other) != model]
    tried = {("twin smoothing", "nothing"): smoothed(data, source, encoder)}
    for fit, pool in (("seen", pools[name, source]), ("unseen", drawn(others, source))):
        tried |= {(method, fit): spec for method, spec in systems(pool, encoder, fit)}
    specs = {key: spec for key, spec in tried.items() if not isinstance(spec, str)}
    report = measure_debias(
        DenseSpec(encoder), list(specs.values()), [data], other=source, config=CONFIG
    )
    verdict_of = report.verdicts
    for key, spec in tried.items():
        row = {"data": name, "rewriter": model, "method": key[0], "fitted": key[1]}
        if isinstance(spec, str):
            yield row | {"refused": spec}
            continue
        outcome = report.datasets[0].outcome(spec.name)
        skew = outcome.skew_at(5)
        yield row | {
            "verdict": SAID.get(verdict_of[spec.name], verdict_of[spec.name].replace("_", " ")),
            "n_needed": skew.n_needed,
            "before": ends(skew.before),
            "after": ends(skew.after),
            "change": ends(skew.change),
            "quality": {
                q: cost(outcome.quality_at(q, CONFIG.quality_cutoff))
                for q in ("human-only", "mixed")
            },
        }


def ends(interval) -> list[float]:
    return [round(float(x), 2) for x in (interval.estimate, interval.lower, interval.upper)]


def cost(change) -> dict:
    return {
        "shown": f"{change.relative:+.1f}".replace("-", "−") + " ✓" * change.test.passed,
        "percent": round(change.relative, 2),
        "lower": round(change.test.lower, 2),
        "kept": change.test.passed,
    }


def rewriter(source: str) -> str:
    return source.removeprefix("llm:").removesuffix("-7b-chat-tmp0.2")


WHY = ("too few pairs", "no copies here")
CELLS = ("before", "after", "verdict", "human", "mixed")


def page(rows: list[dict]) -> None:
    """Write the table into docs/debias.md, each figure with where it comes from."""
    head = ["data", "rewriter", "method", "fitted on", "Relative Δ@5 before", "after", "verdict"]
    lines = [f"| {' | '.join([*head, 'human-only', 'all'])} |", "|---" * 9 + "|"]
    figures = []
    for place, row in enumerate(rows):
        cells = [row["data"], row["rewriter"], row["method"], row["fitted"]]
        if "refused" in row:
            cells += ["–", "–", f"refused: {WHY[row['method'] == 'twin smoothing']}", "–", "–"]
        else:
            at = f"learnt > rows > {place} >"
            ids = {cell: f"lr{place}{cell[0]}" for cell in CELLS}
            cells += [f"<!--={ids[c]}-->x<!--/-->" for c in CELLS]
            for cell in ("before", "after"):
                figures.append(f"{ids[cell]} | {at} {cell} | {{:+.1f}} [{{:.1f}}, {{:.1f}}]")
            figures.append(f"{ids['verdict']} | {at} verdict | {{}}")
            for cell, name in (("human", "human-only"), ("mixed", "mixed")):
                figures.append(f"{ids[cell]} | {at} quality > {name} > shown | {{}}")
        lines.append(f"| {' | '.join(cells)} |")
    text = PAGE.read_text("utf-8")
    start, end = text.index("<!-- learnt -->"), text.index("<!-- /learnt -->")
    text = text[:start] + "<!-- learnt -->\n" + "\n".join(lines) + "\n" + text[end:]
    kept = [line for line in text.splitlines() if not line.startswith("lr")]
    at = kept.index("<!-- figures")
    PAGE.write_text("\n".join([*kept[: at + 1], *figures, *kept[at + 1 :]]) + "\n", "utf-8")
    print("now: python benchmarks/claims.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path("learnt.sqlite"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if not options.page:
        root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
        encoder = CachedEncoder(SentenceEncoder("all-MiniLM-L6-v2"), VectorCache(options.cache))
        data, pools = judged(root), {}
        for name, found in data.items():
            fitting, exclude = found, set()
            if name == "nfcorpus":
                fitting, exclude = (
                    sets.training_set(root),
                    set(training_pairs(found).twins.pair_ids),
                )
            for source in (s for s in found.corpus.tags.sources if s != "human"):
                pools[name, source] = pool_of(fitting, source, encoder, exclude)
        kept = RESULT.is_file() and not options.again
        rows = json.loads(RESULT.read_text("utf-8"))["rows"] if kept else []
        done = {(row["data"], row["rewriter"]) for row in rows}
        for name, source in (key for key in pools if (key[0], rewriter(key[1])) not in done):
            new = list(rows_of(name, replace(data[name], name=name), source, pools, encoder))
            print(*new, sep="\n", flush=True)
            rows += new
            record = {"environment": dict(environment()), "rows": rows}
            RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page(json.loads(RESULT.read_text("utf-8"))["rows"])


if __name__ == "__main__":
    main()
