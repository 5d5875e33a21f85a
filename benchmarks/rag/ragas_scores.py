"""Score answers with ragas, with and without what their style adds; runs offline.

    python benchmarks/rag/ragas_scores.py --fit TQ.json.gz --answers NQ.json.gz [--questions 60]

Both files hold answers of several systems that people judged (EVOUNA here; any file of
``read_answer_texts``). What style adds is learned from one, and taken off in the other, by a ragas
metric over all-MiniLM-L6-v2. Then the scores judge the share of correct answers, with people
having looked at some of them only.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

import numpy as np
from ragas import EvaluationDataset, evaluate
from ragas.dataset_schema import EvaluationResult

from rag_sourcebias.answers.measure import fit_similarity_adjustment
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.intake.answers import read_answer_texts
from rag_sourcebias.measure.texts import word_counts
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias_integrations.ragas.intervals import intervals
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding, StyleAdjustedSimilarity

METRICS = ("semantic_similarity", "style_adjusted_similarity")


def sample(path: Path, questions: int, seed: int) -> AnswerTexts:
    """All answers to some questions, against the first wording of the reference, as in ragas."""
    answers = read_answer_texts(path)
    names = list(dict.fromkeys(answers.question_ids))
    chosen = set(np.random.default_rng(seed).permutation(names)[:questions])
    rows = [i for i, name in enumerate(answers.question_ids) if name in chosen]
    return replace(
        answers,
        question_ids=tuple(answers.question_ids[i] for i in rows),
        systems=tuple(answers.systems[i] for i in rows),
        answers=tuple(answers.answers[i] for i in rows),
        references=tuple((answers.references[i][0],) for i in rows),
        correct=answers.correct[rows],
    )


def print_systems(answers: AnswerTexts, result: EvaluationResult) -> None:
    words, systems = word_counts(answers.answers), np.array(answers.systems)
    right = answers.correct == 1
    shown = ("similarity", "adjusted")
    print(f"\n{'system':<10} {'words':>6} {'correct':>8} {shown[0]:>11} {shown[1]:>9}")
    for name in dict.fromkeys(answers.systems):
        own = systems == name
        means = [np.array(result[metric])[own & right].mean() for metric in METRICS]
        print(
            f"{name:<10} {words[own].mean():>6.1f} {answers.correct[own].mean():>8.1%} "
            f"{means[0]:>11.3f} {means[1]:>9.3f}"
        )
    print("(similarity and adjusted: mean over correct answers)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--fit", type=Path, required=True, help="answers to learn style from")
    parser.add_argument("--answers", type=Path, required=True, help="answers to score")
    parser.add_argument("--questions", type=int, default=60, help="questions taken of each")
    parser.add_argument("--labels", type=int, default=60, help="answers that people looked at")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # ragas: use @experiment
    from ragas.metrics import SemanticSimilarity

    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    adjustment = fit_similarity_adjustment(sample(options.fit, options.questions, 0), encoder)
    answers = sample(options.answers, options.questions, 0)
    embeddings = EncoderEmbedding(encoder)
    started = time.perf_counter()
    result = evaluate(
        EvaluationDataset.from_list(
            [
                {"user_input": question, "response": answer, "reference": reference[0]}
                for question, answer, reference in zip(
                    answers.question_ids, answers.answers, answers.references, strict=True
                )
            ]
        ),
        metrics=[SemanticSimilarity(), StyleAdjustedSimilarity(embeddings, adjustment)],
        embeddings=embeddings,
        show_progress=False,
    )
    print(f"{len(answers)} answers scored in {time.perf_counter() - started:.1f} s")
    print_systems(answers, result)

    looked_at = np.random.default_rng(1).permutation(len(answers))[: options.labels]
    human = {int(i): float(answers.correct[i]) for i in looked_at}
    for metric in METRICS:
        result = intervals(result, human, metric=metric, target="pool")
    print(f"\n{result}")
    for metric in METRICS:
        print(f"{metric}: {result.intervals[metric]}")
    print(f"all answers: {np.nanmean(answers.correct):.4f} correct")


if __name__ == "__main__":
    main()
