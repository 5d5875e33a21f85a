"""Curves over the weight of the debiasing hinge, and over multiples of an offset ([K] Fig. 8, 9).

    python benchmarks/debias/run.py [--work FOLDER] [--finished]

Everything is fitted on the training pairs of nfcorpus (people and Llama-2) with the packaged
encoder, and judged on nfcorpus dev and nq-utd: encoders trained with 4 weights of the hinge × 3
seeds, and the fitted offset times 0 to 8. The encoder as it is is judged on outfox, too. Trained
models and vectors are kept in the work folder, and the same command goes on from there;
``--finished`` trains nothing and writes what there is. Two quiet cores take about 20 minutes to
encode everything once and about 90 minutes for the training runs.

Writes benchmarks/results/debias.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import curves
import sets
import training

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.codec import environment
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.debias.audit import other_sources, score_debias
from rag_sourcebias.debias.data import DebiasConfig, DebiasScores
from rag_sourcebias.debias.fit import fit_parity_calibration
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.infer.means import relative_delta_interval
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import DenseSpec

RESULT = Path(__file__).resolve().parent.parent / "results" / "debias.json"
FITTED_ON = "nfcorpus train"
CURVES_ON = ("nfcorpus dev", "nq-utd")
CONFIG = DebiasConfig(cutoffs=curves.CUTOFFS)
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)


def stage(message: str) -> None:
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def unchanged(data: Dataset, spec: DenseSpec) -> list[dict]:
    """Relative Δ of the encoder as it is, by LLM source and cutoff."""
    found = []
    for source in other_sources(data, "human"):
        scores = score_debias(spec, data, CONFIG, other=source)
        deltas = {
            str(k): ends(relative_delta_interval(scores.of("baseline", k), scores.of("other", k)))
            for k in CONFIG.cutoffs
        }
        found.append(
            {
                "source": source,
                "kind": "unchanged",
                "system": spec.name,
                "queries": len(scores.query_ids),
                "relative_delta": deltas,
            }
        )
    return found


def ends(interval: Interval) -> list[float]:
    return [round(float(x), 2) for x in (interval.estimate, interval.lower, interval.upper)]


def times(fitted: ParityCalibration, multiple: float, source: str) -> ParityCalibration:
    """Multiply the offset, and apply it to the LLM source of another data set."""
    gap = fitted.gaps[0]
    moved = replace(
        gap,
        estimate=gap.estimate * multiple,
        lower=gap.lower * multiple,
        upper=gap.upper * multiple,
    )
    return replace(fitted, sources=(source,), gaps=(moved,))


def drawn(runs: curves.Runs, *, deterministic: bool = False) -> dict[str, dict]:
    return {
        name: column
        for cutoff in curves.CUTOFFS
        for name, column in curves.series(runs, cutoff, deterministic=deterministic).items()
    }


def dials(
    data: Dataset, spec: DenseSpec, fitted: ParityCalibration
) -> dict[float, dict[int, DebiasScores]]:
    (source,) = other_sources(data, "human")
    found = {}
    for multiple in MULTIPLES:
        stage(f"{data.name}: offset × {multiple:g}")
        changed = RescoredSpec(spec, times(fitted, multiple, source))
        found[multiple] = {0: score_debias(changed, data, CONFIG, other=source)}
    return found


def trained(
    judged: Sequence[Dataset], done: Sequence[training.Run], vectors: Path
) -> dict[str, dict[float, dict[int, DebiasScores]]]:
    found: dict[str, dict[float, dict[int, DebiasScores]]] = {}
    for data in judged:
        (source,) = other_sources(data, "human")
        for run in done:
            stage(f"{data.name}: weight {run.weight:g}, seed {run.seed}")
            scores = score_debias(run.spec(vectors), data, CONFIG, other=source)
            found.setdefault(data.name, {}).setdefault(run.weight, {})[run.seed] = scores
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=cache_dir() / "benchmark-debias")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--finished", action="store_true", help="train no model")
    options = parser.parse_args()
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    options.work.mkdir(parents=True, exist_ok=True)
    train = replace(sets.training_set(root), name=FITTED_ON)
    cache = VectorCache(options.work / "vectors.sqlite")
    encoder = CachedEncoder(SentenceEncoder(training.MODEL), cache)
    spec = DenseSpec(encoder)
    judged = {name: replace(read(root), name=name) for name, read in sets.JUDGED.items()}
    home = [judged[name] for name in CURVES_ON]
    fitted = fit_parity_calibration(train, encoder)
    gap = fitted.gaps[0]
    said = f"{gap.estimate:+.5f} [{gap.lower:+.5f}, {gap.upper:+.5f}]"
    done = list(
        training.runs(
            train,
            encoder,
            options.work,
            weights=training.WEIGHTS,
            seeds=training.SEEDS,
            steps=options.steps,
            precision="bf16",
            only_finished=options.finished,
            stage=stage,
        )
    )
    scores = trained(home, done, options.work / "trained.sqlite")
    found = {data: drawn(runs) for data, runs in scores.items()}
    for data in home:
        found[f"{data.name}, offset"] = drawn(dials(data, spec, fitted), deterministic=True)
    record = {
        "environment": environment(),
        "fitted_on": FITTED_ON,
        "methods": [
            {
                "name": "calibration, offset",
                "pairs": fitted.n_pairs[0],
                "settings": {"mean gap": said},
            }
        ],
        "training": [
            {
                "weight": run.weight,
                "seed": run.seed,
                "steps": run.history.n_steps,
                "seconds": round(run.history.seconds),
                "pairs": run.history.n_pairs,
            }
            for run in done
        ],
        "training_settings": dict(done[0].history.settings) if done else {},
        "systems": {name: unchanged(data, spec) for name, data in judged.items()},
        "curves": found,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    RESULT.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
