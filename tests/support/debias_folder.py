"""A BEIR folder and a tiny model whose source bias is known: one word that rewrites add."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from static_model import static

LLM = "llm:rewriter"
WORDS = tuple(f"word{i}" for i in range(120))
MARK, ASKING = "indeed", "what"
N_QUERIES, N_TRAIN, PER_QUERY = 220, 160, 2


def write_folder(
    folder: Path,
    *,
    splits: Sequence[str] = ("train", "dev"),
    sources: Sequence[str] = ("rewriter",),
) -> Path:
    """Two documents per query; the rewrites keep their words and add one that queries like."""
    rng = np.random.default_rng(0)
    corpora: dict[str, list[dict[str, str]]] = {name: [] for name in ("human", *sources)}
    queries = []
    for q in range(N_QUERIES):
        topic = rng.choice(WORDS, 5, replace=False).tolist()
        queries.append({"_id": f"q{q}", "text": " ".join([ASKING, *topic[:4]])})
        for d in range(PER_QUERY):
            doc_id = f"d{PER_QUERY * q + d}"
            words = [*rng.choice(topic, 4, replace=False), *rng.choice(WORDS, 4)]
            for name, rows in corpora.items():
                other = rng.permutation([*words[:-1], rng.choice(WORDS)])
                text = " ".join(words if name == "human" else [*other, MARK])
                rows.append({"_id": doc_id, "title": "", "text": text})
    for name, rows in corpora.items():
        _write(folder / "corpus" / f"{name}.jsonl", rows)
    _write(folder / "queries.jsonl", queries)
    parts = (range(N_TRAIN), range(N_TRAIN, N_QUERIES))
    (folder / "qrels").mkdir()
    for split, part in zip(splits, parts, strict=False):
        lines = [f"q{q}\td{PER_QUERY * q + d}\t1\n" for q in part for d in range(PER_QUERY)]
        text = "query-id\tcorpus-id\tscore\n" + "".join(lines)
        (folder / "qrels" / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def write_model(folder: Path, *, gain: float = 0.35, dimension: int = 48) -> Path:
    """Write a model of word vectors in which questions and the word of rewrites are alike."""
    names = [MARK, ASKING, *WORDS]
    vectors = np.random.default_rng(1).normal(size=(len(names) + 1, dimension))
    vectors /= np.sqrt(dimension)
    vectors[:, 0] = 0
    vectors[:3] = 0
    vectors[1, 0], vectors[2, 0] = 1.0, gain
    static(names, vectors=vectors.astype(np.float32)).save_pretrained(str(folder))
    return folder


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
