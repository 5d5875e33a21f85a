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

from rag_sourcebias.audit import audit_style
from rag_sourcebias.measures import score_run
from rag_sourcebias.types import Qrels, Run

__all__ = ["example", "recall", "unfairness"]

Columns = dict[str, Any]
ANSWER = "Fifty Pills"


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
    """Cosine of the reference answer and the short answer of FlanT5-xxl."""
    vectors = np.asarray(encoder(model).encode_documents([ANSWER, ANSWER]), dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1)
    return {"x": ["FlanT5-xxl"], "y": [float(vectors[0] @ vectors[1] / norms.prod())]}


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
