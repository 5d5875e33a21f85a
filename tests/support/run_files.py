"""Runs as files in TREC format, and the ids that can stand in them."""

import gzip
from pathlib import Path

from hypothesis import strategies as st

from rag_sourcebias.core.data import Run

# Any character but ASCII space, control characters, surrogates and the byte-order mark.
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=" \ufeff"),
    min_size=1,
    max_size=8,
)


def write_run(run: Run, path: Path) -> None:
    """Write a run, compressed if the name ends in ``.gz``; one without scores numbers its ranks."""
    lines = []
    for ranked in run:
        scores = range(len(ranked), 0, -1) if ranked.scores is None else ranked.scores.tolist()
        for rank, (doc_id, score) in enumerate(zip(ranked.doc_ids, scores, strict=True), start=1):
            lines.append(f"{ranked.query_id} Q0 {doc_id} {rank} {score!r} {run.name}\n")
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
