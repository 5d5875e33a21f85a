"""ragas' semantic similarity alone, and what it takes to read it: EVOUNA's NQ answers."""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

import numpy as np
from ragas import EvaluationDataset, evaluate

sys.path.append(str(Path(__file__).resolve().parents[1] / "rag"))
from ragas_scores import sample

from rag_sourcebias.answers.measure import reference_similarity
from rag_sourcebias.measure.texts import word_counts
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias_integrations.ragas.intervals import intervals
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding

LABELS = 60


def ragas_rows(data: Path, *, quick: bool) -> dict[str, Any]:
    """Scores of ragas and ours, their time, and what people say of the same answers."""
    from ragas.metrics import SemanticSimilarity

    encoder = SentenceEncoder("all-MiniLM-L6-v2", device="cpu")
    answers = sample(data / "evouna" / "NQ.json.gz", 6 if quick else 60, 0)
    encoder.encode_documents(list(answers.answers[:8]))  # the first call loads and warms up
    rows = [
        {"user_input": q, "response": a, "reference": r[0]}
        for q, a, r in zip(answers.question_ids, answers.answers, answers.references, strict=True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        result = evaluate(
            EvaluationDataset.from_list(rows),
            metrics=[SemanticSimilarity()],
            embeddings=EncoderEmbedding(encoder),
            show_progress=False,
        )
        theirs = time.process_time() - start
    start = time.process_time()
    ours = reference_similarity(answers.references, answers.answers, encoder)
    seconds = time.process_time() - start
    scores = np.array(result["semantic_similarity"], dtype=float)

    systems = np.array(answers.systems)
    right = answers.correct == 1
    words = word_counts(answers.answers)
    looked_at = np.random.default_rng(1).permutation(len(answers))[:LABELS]
    human = {int(i): float(answers.correct[i]) for i in looked_at}
    found = intervals(result, human, target="pool").intervals["semantic_similarity"]
    return {
        "answers": len(answers),
        "labels": LABELS,
        "difference": float(np.abs(scores - ours).max()),
        "seconds": {"ragas": round(theirs, 2), "ours": round(seconds, 2)},
        "mean": round(float(scores.mean()), 4),
        "correct": round(float(np.nanmean(answers.correct)), 4),
        "interval": [round(v, 4) for v in (found.estimate, found.lower, found.upper)],
        "systems": [
            {
                "system": name,
                "words": round(float(words[systems == name].mean()), 1),
                "correct": round(float(np.nanmean(answers.correct[systems == name])), 4),
                "similarity of correct answers": round(
                    float(scores[(systems == name) & right].mean()), 4
                ),
            }
            for name in dict.fromkeys(answers.systems)
        ],
    }
