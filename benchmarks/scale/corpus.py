"""A corpus of any size with vectors: both invented, the vectors scattered around topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

DIMENSION = 384
TOPICS = 2_000
N_QUERIES = 1_000
_BLOCK = 20_000
WORDS = [f"word{i:04d}" for i in range(4_000)]


def write(folder: Path, n_documents: int, *, words: Sequence[str] = WORDS, rng: int = 9) -> None:
    """Write a paired BEIR folder of ``n_documents`` and ``documents.npy`` and ``queries.npy``.

    Documents scatter around topics; a rewrite lies close to its original, a little nearer to its
    topic, and so to queries, which is a skew that an audit must find.
    """
    random = np.random.default_rng(rng)
    pairs = n_documents // 2
    (folder / "corpus").mkdir(parents=True)
    (folder / "qrels").mkdir()
    topics = _unit(random.standard_normal((TOPICS, DIMENSION), dtype=np.float32))
    about = random.integers(0, TOPICS, pairs)
    stored = np.lib.format.open_memmap(
        folder / "documents.npy", mode="w+", dtype=np.float32, shape=(2 * pairs, DIMENSION)
    )
    for start in range(0, pairs, _BLOCK):
        rows = slice(start, min(start + _BLOCK, pairs))
        noise = random.standard_normal((rows.stop - start, DIMENSION), dtype=np.float32)
        other = random.standard_normal(noise.shape, dtype=np.float32)
        topic = topics[about[rows]]
        stored[rows] = _unit(topic + 0.04 * noise)
        stored[pairs + start : pairs + rows.stop] = _unit(topic + 0.035 * noise + 0.012 * other)
    stored.flush()
    for source in ("human", "llm-x"):
        _write_texts(folder / "corpus" / f"{source}.jsonl", pairs, words, random)
    judged = random.choice(pairs, N_QUERIES, replace=False)
    noise = random.standard_normal((N_QUERIES, DIMENSION), dtype=np.float32)
    np.save(folder / "queries.npy", _unit(stored[judged] + 0.03 * noise))
    queries = (json.dumps({"_id": f"q{i}", "text": f"query {i}"}) for i in range(N_QUERIES))
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
    rows_of = "".join(f"q{i}\t{document}\t1\n" for i, document in enumerate(judged.tolist()))
    (folder / "qrels" / "test.tsv").write_text(
        f"query-id\tcorpus-id\tscore\n{rows_of}", encoding="utf-8"
    )


def _write_texts(
    path: Path, n: int, vocabulary: Sequence[str], random: np.random.Generator
) -> None:
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, n, _BLOCK):
            size = min(_BLOCK, n - start)
            words = random.integers(0, len(vocabulary), (size, 40))
            file.writelines(
                f'{{"_id": "{start + i}", "text": "{" ".join(vocabulary[w] for w in row)}"}}\n'
                for i, row in enumerate(words.tolist())
            )


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
