"""Style bias of models that load where they can be had ([W] Fig. 2, 3 and the example of §5)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from needs import NotMadeError
from ours_source import encoder
from ours_texts import styled

from rag_sourcebias.answers.audit import audit_answers
from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.measure.relevance import score_run
from rag_sourcebias.style.audit import audit_style

Columns = dict[str, Any]
REFERENCE = "Fifty Pills"
ANSWERS = {
    "FlanT5": "Fifty Pills",
    "GPT-3.5": 'John Hensley appeared in Theo Avgerinos\' movie "Fifty Pills".',
    "Alpaca": 'The actor known for the role as Matt McNamara appeared in the movie "Fifty Pills".',
    "Llama2": (
        'The actor known for his role as Matt McNamara in "Nip/Tuck" appeared in "Fifty Pills" '
        "directed by Theo Avgerinos."
    ),
}
"""To "What Theo Avgerinos movie did the actor known for the role as Matt McNamara appear in?",
[W] §5: all four are correct."""


def unfairness(texts: str, models: Sequence[str]) -> Columns:
    """Unfairness with original queries, by model; those that cannot be had are left out."""
    encoders, notes = [], []
    for name in models:
        try:
            encoders.append(encoder(name))
        except NotMadeError as error:
            notes.append(str(error))
    if not encoders:
        raise NotMadeError("; ".join(notes))
    report = audit_style(styled(texts), encoders=encoders, index=False, text_statistics=False)
    return {
        "x": [system.name for system in report.systems],
        "y": [system.rows[0].unfairness.score for system in report.systems],
        "note": "; ".join(notes),
    }


def example(model: str) -> Columns:
    """Cosine of the reference and each answer of the example."""
    vectors = np.asarray(
        encoder(model).encode_documents([REFERENCE, *ANSWERS.values()]), dtype=np.float64
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {"x": list(ANSWERS), "y": (vectors[1:] @ vectors[0]).tolist()}


def level_answers(questions: int = 40, systems: int = 5) -> Columns:
    """Standard deviation of the system means where every answer scores alike ([W] Fig. 7).

    Of a constant encoder, for which any texts do.
    """
    rows = [(q, s) for q in range(questions) for s in range(systems)]
    report = audit_answers(
        AnswerTexts(
            question_ids=tuple(f"question {q}" for q, _ in rows),
            systems=tuple(f"system {s}" for _, s in rows),
            answers=tuple("word " * (s + 1) + str(q) for q, s in rows),
            references=tuple((f"answer {q}",) for q, _ in rows),
            correct=np.array([float(q > 0) for q, _ in rows]),
        ),
        [encoder("constant")],
        config=AnswerConfig(adjust=False, resamples=100),
        text_statistics=False,
    )
    found = report.scorers[0].raw.unfairness
    if found is None:
        raise NotMadeError("no unfairness of a constant encoder")
    values = {"y": found.estimate, "lower": found.lower, "upper": found.upper}
    return {"x": ["constant"], **{key: [float(value)] for key, value in values.items()}}


def recall(
    form: str, settings: Sequence[str] = ("popqa__formality", "popqa__readability")
) -> Columns:
    """Recall@5 of rankings that were published, by the library's measure."""
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"]) / "out_of_style"
    y = []
    for setting in settings:
        (path,) = root.glob(f"retrieval_outputs__{setting}__{form}_*")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        ranked, relevant = {}, {}
        for row in rows:
            name = str(row["id"])
            found = [p["hasanswer"] for p in row["ctxs"]]
            ids = [p["id"] for p in row["ctxs"]]
            if True in found:  # one answer counts, as in the published figure
                ids[found.index(True)] = f"answer to {name}"
            ranked[name] = {d: float(p["score"]) for d, p in zip(ids, row["ctxs"], strict=True)}
            relevant[name] = {f"answer to {name}": 1}
        scores = score_run(
            Run.from_dict(ranked), Qrels.from_dict(relevant), measures=("Recall",), cutoffs=(5,)
        )
        y.append(float(scores.values.mean()))
    return {"x": [setting.replace("__", " ") for setting in settings], "y": y}
