"""What takes the skew out of an encoder, what it costs, and does it hold on other data?

    python benchmarks/debias/run.py [--methods projection,calibration,training] [--work FOLDER]

Everything is fitted on the training pairs of nfcorpus (people and Llama-2) with the packaged
encoder, and judged on nfcorpus dev, nq-utd (other topics, same LLM), outfox (three other LLMs) and
crowdrag25 (another one): projections of vectors, scores calibrated by source, and encoders trained
with 4 weights of the debiasing hinge × 3 seeds, the last judged on the first two sets. Reports and
trained models are kept in the work folder as they are finished, and the same command goes on from
there; ``--finished`` trains nothing and writes what there is. Vectors of the untrained encoder are
kept in ``--cache``. Two quiet cores take about 20 minutes to encode everything once and about 90
minutes for the training runs; one after the other can be interrupted at any time.

Writes benchmarks/results/debias.json, and debias.md with the table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import assemble
import curves
import figures
import methods
import sets
import training
from study import Measured, measured

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.core.values import environment
from rag_sourcebias.io.samples import cache_dir
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import DenseSpec

RESULTS = Path(__file__).resolve().parent.parent / "results"
DATA = "RAG_SOURCEBIAS_DATA"
METHODS = ("projection", "calibration", "training")
FITTED_ON = "nfcorpus train"
TRAINED_JUDGED_ON = ("nfcorpus dev", "nq-utd")
HOME = "nfcorpus dev"


def stage(message: str) -> None:
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def study(
    options: argparse.Namespace, root: Path
) -> tuple[list[Measured], list[Measured], list[training.Run]]:
    """Every report there is or can be made: of systems, of the dial, and the finished runs."""
    train = replace(sets.training_set(root), name=FITTED_ON)
    store = VectorCache(options.cache or options.work / "vectors.sqlite")
    encoder = CachedEncoder(SentenceEncoder(training.MODEL), store)
    twins = twin_texts(train.corpus, qrels=train.qrels)
    judged = {
        name: replace(sets.JUDGED[name](root), name=name) for name in options.sets or sets.JUDGED
    }
    shared = {
        "before": DenseSpec(encoder),
        "fitted_texts": set(twins.baseline_texts),
        "work": options.work,
        "on_stage": stage,
    }
    systems = []
    if "projection" in options.methods:
        systems += methods.projections(twins, encoder, fitted_on=FITTED_ON)
    if "calibration" in options.methods:
        systems += methods.calibrations(train, encoder, fitted_on=FITTED_ON)
    found = measured(systems, judged.values(), **shared)
    if HOME in judged:
        found += unseen(options, train, judged[HOME], encoder, shared)
    curve_sets = [data for name, data in judged.items() if name in TRAINED_JUDGED_ON]
    dialled = []
    if "calibration" in options.methods:
        dial = methods.dial(train, encoder, fitted_on=FITTED_ON)
        dialled = measured(dial.values(), curve_sets, **shared)
    done = []
    if "training" in options.methods:
        for run in training.runs(
            train,
            encoder,
            options.work,
            weights=options.weights,
            seeds=options.seeds,
            steps=options.steps,
            precision=options.precision,
            only_finished=options.finished,
            stage=stage,
        ):
            system = run.system(options.work / "trained.sqlite", FITTED_ON, stage)
            found += measured([system], curve_sets, only_finished=options.finished, **shared)
            done.append(run)
    return found, dialled, done


def unseen(
    options: argparse.Namespace, train: Dataset, home: Dataset, encoder: CachedEncoder, shared: dict
) -> list[Measured]:
    """The same methods fitted on pairs that are not judged at home, where nearly all are."""
    exclude = set(training_pairs(home).twins.pair_ids)
    twins = twin_texts(train.corpus, qrels=train.qrels, exclude=exclude)
    settings = {"fitted_on": f"{FITTED_ON}, pairs not judged in {HOME}", "suffix": methods.UNSEEN}
    systems = []
    if "projection" in options.methods:
        systems += methods.projections(twins, encoder, **settings)
    if "calibration" in options.methods:
        systems += methods.calibrations(train, encoder, exclude=exclude, **settings)
    return measured(systems, [home], **shared | {"fitted_texts": set(twins.baseline_texts)})


def write(record: dict, rows: dict[str, list[dict]], drawn: dict, output: Path) -> None:
    """One line per row and per curve, so that a change of one figure shows as one line."""

    def lines(items: list[str]) -> str:
        return ",\n   ".join(items)

    parts = [f'"{key}": {compact(value)}' for key, value in record.items()]
    for key, blocks in (("systems", rows), ("curves", drawn)):
        inner = []
        for data, found in blocks.items():
            if isinstance(found, dict):
                body = lines([f"{compact(k)}: {compact(v)}" for k, v in found.items()])
                inner.append(f"{compact(data)}: {{\n   {body}\n  }}")
            else:
                inner.append(f"{compact(data)}: [\n   {lines([compact(r) for r in found])}\n  ]")
        parts.append(f'"{key}": {{\n  ' + ",\n  ".join(inner) + "\n }")
    output.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def numbers(kind: type) -> object:
    return lambda text: [kind(part) for part in text.split(",")]


def parsed() -> tuple[argparse.Namespace, Path]:
    parser = argparse.ArgumentParser(description="Debiasing on real data, before and after.")
    parser.add_argument("--methods", type=numbers(str), default=list(METHODS))
    parser.add_argument("--data", type=Path, help=f"default: the folder named by {DATA}")
    parser.add_argument("--work", type=Path, help="default: benchmark-debias in the user's cache")
    parser.add_argument("--cache", type=Path, help="vectors of the untrained encoder")
    parser.add_argument("--sets", type=numbers(str), help="data sets to judge on; all by default")
    parser.add_argument("--weights", type=numbers(float), default=list(training.WEIGHTS))
    parser.add_argument("--seeds", type=numbers(int), default=list(training.SEEDS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument(
        "--finished", action="store_true", help="train and judge no model, use what there is"
    )
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/debias.json")
    options = parser.parse_args()
    unknown = [m for m in options.methods if m not in METHODS]
    unknown += [s for s in options.sets or () if s not in sets.JUDGED]
    if unknown:
        parser.error(f"{', '.join(unknown)}: methods are {METHODS}, sets are {list(sets.JUDGED)}")
    root = options.data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if root is None:
        parser.error(f"give --data, or set {DATA} to the folder of real data sets")
    options.work = options.work or cache_dir() / "benchmark-debias"
    options.work.mkdir(parents=True, exist_ok=True)
    return options, root


def main() -> None:
    options, root = parsed()
    found, dialled, done = study(options, root)
    rows = assemble.tables(found)
    search, drawn = assemble.searches(assemble.trained_scores(found, done))
    dials = assemble.dial_curves(dialled)
    weights = {
        data: curves.by_weight(drawn[data], assemble.unchanged(rows[data])) for data in drawn
    }
    record = {
        "environment": environment(),
        "fitted_on": FITTED_ON,
        "methods": assemble.described(found),
        "search": search,
        "trained_by_weight": weights,
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
    }
    output = options.output or RESULTS / "debias.json"
    write(record, rows, drawn | dials, output)
    table = figures.table(rows)
    output.with_suffix(".md").write_text(f"{table}\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
