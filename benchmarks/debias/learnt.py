"""Learnt remedies beside twin smoothing: every data set, rewriter and method in one table.

    python benchmarks/debias/learnt.py [--only PART …]  # judges what is not there
    python benchmarks/debias/learnt.py --again          # judges what is there, too

Offsets and projections are fitted twice: on the set they are judged on ("seen", which flatters
them; NFCorpus: on its training split without the judged pairs), and on the pairs of all other
rewriters, at most 800 of each ("unseen"). So are encoders trained, "seen" on the pairs of all
rewriters at once. Twin smoothing and the calibration of attention by position are fitted on
nothing; the latter and trained encoders are computed in bfloat16, and so is what they are compared
with. Writes benchmarks/results/learnt.json, set by set; vectors and trained models are kept in
``--work``. One core takes half an hour for what is fitted and 90 minutes for the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import pooled
import sets
from positions import PositionCalibrated

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.codec import environment
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.debias.audit import measure_debias, two_sources
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.debias.fit import score_twins
from rag_sourcebias.debias.parity import ScoredTwins, fit_parity
from rag_sourcebias.debias.projection import fit_projection
from rag_sourcebias.debias.rescore import RescoredSpec, TwinSpec
from rag_sourcebias.debias.twins import fit_twins
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.loading import SentenceEncoder, keep_freed_memory
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.projection import ProjectedEncoder
from rag_sourcebias.retrieval.search import DenseSpec

HERE = Path(__file__).resolve()
RESULT = HERE.parents[1] / "results" / "learnt.json"
SAID = {"favours_baseline": "favours human text", "favours_other": "favours LLM text"} | {
    "made_worse": "made it worse"
}
MOST = 800  # pairs of one rewriter in a pool
PROJECTIONS = {"projection, mean": ("mean", 1), "projection, 4 directions": ("pca", 4)}
CONFIG = DebiasConfig(cutoffs=(5, 10), resamples=1_999)
PARTS = {
    "fitted": ("twin smoothing", "offset", *PROJECTIONS),
    "position": ("position calibration",),
    "unseen": tuple(pooled.VARIANTS),
    "seen": tuple(pooled.VARIANTS),
}
"""Methods judged together; of training, once fitted on other rewriters and once on all."""
ALONE = ("fitted", "position")  # parts that no row is named after
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


Tried = dict[tuple[str, str], object]
"""By method and what it is fitted on: the changed system, or why there is none."""


@dataclass(kw_only=True)
class Bench:
    """The data, and what is fitted on them once.

    ``fitting`` holds, by name and LLM source, the pairs to fit on and those to leave out.
    """

    data: dict[str, Dataset]
    fitting: pooled.Fitting
    cache: VectorCache
    models: Path
    pools: dict[tuple[str, str], Pool] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path, work: Path) -> Bench:
        data, fitting = judged(root), {}
        for name, found in data.items():
            fit, exclude = found, set()
            if name == "nfcorpus":
                fit = sets.training_set(root)
                exclude = set(training_pairs(found).twins.pair_ids)
            for source in (s for s in found.corpus.tags.sources if s != "human"):
                fitting[name, source] = (fit, exclude)
        cache = VectorCache(work / "learnt.sqlite")
        return cls(data=data, fitting=fitting, cache=cache, models=work / "models")

    def cached(self, encoder: SentenceEncoder) -> CachedEncoder:
        return CachedEncoder(encoder, self.cache)

    def before(self, part: str) -> DenseSpec:
        dtype = "float32" if part == "fitted" else pooled.DTYPE
        return DenseSpec(self.cached(SentenceEncoder(pooled.MODEL, dtype=dtype)))

    def tried(self, part: str, name: str, source: str) -> Tried:
        """Every method of a part, fitted."""
        if part == "position":
            encoder = PositionCalibrated(pooled.MODEL, dtype=pooled.DTYPE)
            return {(encoder.name, "nothing"): DenseSpec(self.cached(encoder), name=encoder.name)}
        if part == "fitted":
            return self.fitted(name, source)
        encoders = pooled.trained(
            PARTS[part],
            self.models / (f"without-{rewriter(source)}" if part == "unseen" else "all"),
            lambda: self.trained_on(part, source),
            lambda message: print(time.strftime("%H:%M:%S"), message, flush=True),
        )
        return {
            (variant, part): DenseSpec(self.cached(encoder), name=variant)
            for variant, encoder in encoders.items()
        }

    def trained_on(self, part: str, source: str) -> Dataset:
        left_out = rewriter(source) if part == "unseen" else ""
        pairs = {key: fit for key, fit in self.fitting.items() if rewriter(key[1]) != left_out}
        return pooled.pooled(pairs, MOST)

    def fitted(self, name: str, source: str) -> Tried:
        encoder = self.cached(SentenceEncoder(pooled.MODEL))
        for key, (data, exclude) in self.fitting.items():
            if key not in self.pools:
                self.pools[key] = pool_of(data, key[1], encoder, exclude)
        others = [p for (_, other), p in self.pools.items() if rewriter(other) != rewriter(source)]
        tried: Tried = {("twin smoothing", "nothing"): smoothed(self.data[name], source, encoder)}
        for fit, pool in (("seen", self.pools[name, source]), ("unseen", drawn(others, source))):
            tried |= {(method, fit): spec for method, spec in systems(pool, encoder, fit)}
        return tried

    def rows_of(self, part: str, name: str, source: str) -> Iterator[dict]:
        """Judge all methods of a part on one set and rewriter."""
        tried = self.tried(part, name, source)
        data = replace(self.data[name], name=name)
        if part == "unseen":
            data = pooled.without_trained(data, self.trained_on(part, source))
        specs = {key: spec for key, spec in tried.items() if not isinstance(spec, str)}
        report = measure_debias(
            self.before(part),
            list(specs.values()),
            [data],
            other=source,
            config=CONFIG,
        )
        for key, spec in tried.items():
            row = {"data": name, "rewriter": rewriter(source), "method": key[0], "fitted": key[1]}
            if isinstance(spec, str):
                yield row | {"refused": spec}
                continue
            verdict = report.verdicts[spec.name]
            outcome = report.datasets[0].outcome(spec.name)
            skew = outcome.skew_at(5)
            yield row | {
                "verdict": SAID.get(verdict, verdict.replace("_", " ")),
                "n_needed": skew.n_needed,
                "before": ends(skew.before),
                "after": ends(skew.after),
                "change": ends(skew.change),
                "quality": {
                    q: cost(outcome.quality_at(q, CONFIG.quality_cutoff))
                    for q in ("human-only", "mixed")
                },
            }

    def place(self, row: dict) -> tuple[int, ...]:
        """Where a row stands in the table."""
        keys = [(name, rewriter(source)) for name, source in self.fitting]
        methods = list(dict.fromkeys(method for part in PARTS.values() for method in part))
        fits = ("nothing", "seen", "unseen")
        at = keys.index((row["data"], row["rewriter"]))
        return at, fits.index(row["fitted"]), methods.index(row["method"])


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


def part_of(row: dict, part: str) -> bool:
    return row["method"] in PARTS[part] and part in (row["fitted"], *ALONE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=cache_dir() / "benchmark-learnt")
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    rows = json.loads(RESULT.read_text("utf-8"))["rows"] if RESULT.is_file() else []
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    keep_freed_memory()
    bench = Bench.read(root, options.work)
    if options.again:
        rows = [row for row in rows if not any(part_of(row, p) for p in options.only)]
    for part, (name, source) in product(options.only, bench.fitting):
        key = {"data": name, "rewriter": rewriter(source), "method": PARTS[part][-1]}
        if any(row.items() >= key.items() and part_of(row, part) for row in rows):
            continue
        new = list(bench.rows_of(part, name, source))
        print(*new, sep="\n", flush=True)
        rows = sorted(rows + new, key=bench.place)
        record = {"environment": dict(environment()), "rows": rows}
        RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
