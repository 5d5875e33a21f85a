"""What finding near-duplicates by words costs, and what it misses.

    python benchmarks/speed/copies.py

Texts are made of the words of the sample, in pieces of six, so that many share some; a tenth are
copies of others: verbatim, with a tenth of the words changed, or cut by a fifth. The pairs of a
part are held against those that comparing all with all finds. Writes
benchmarks/results/copies_speed.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from rag_sourcebias.core.codec import environment
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.measure.texts import COPY_SHARE, compared_words, near_duplicates

RESULT = Path(__file__).resolve().parents[1] / "results" / "copies_speed.json"
PIECE, FEWEST, MOST = 6, 50, 250  # words
N_DOCUMENTS, N_COMPARED = 100_000, 10_000


def written(n: int, rng: np.random.Generator) -> list[str]:
    """Texts in pieces of natural language, the last tenth copies of the first."""
    words = np.array([word for text in load_sample().corpus.texts for word in text.split()])
    texts = []
    for size in rng.integers(FEWEST, MOST, n):
        starts = rng.integers(0, len(words) - PIECE, size // PIECE)
        texts.append(" ".join(" ".join(words[at : at + PIECE]) for at in starts))
    for i in range(n // 10):
        copy = texts[i].split()
        if i % 3 == 1:
            for at in rng.choice(len(copy), len(copy) // 10, replace=False):
                copy[at] = str(rng.choice(words))
        elif i % 3:
            copy = copy[: len(copy) * 4 // 5]
        texts[n - 1 - i] = " ".join(copy)
    return texts


def all_with_all(texts: list[str]) -> np.ndarray:
    """Pairs that share enough runs of three words, from the whole product."""
    from scipy.sparse import csr_array

    code_of: dict[tuple[str, ...], int] = {}
    runs = []
    for text in texts:
        words = compared_words(text)
        every = set(zip(words, words[1:], words[2:], strict=False))
        runs.append([code_of.setdefault(run, len(code_of)) for run in every])
    sizes = np.array([len(each) for each in runs])
    held = csr_array(
        (np.ones(sizes.sum(), np.int32), np.concatenate(runs), np.append(0, np.cumsum(sizes))),
        shape=(len(texts), len(code_of)),
    )
    pairs = []
    for start in range(0, len(texts), 1_000):
        product = (held[start : start + 1_000] @ held.T).tocoo()
        first, second = product.row + start, product.col
        alike = product.data >= COPY_SHARE * (sizes[first] + sizes[second] - product.data)
        pairs.append(np.stack((first, second))[:, alike & (first < second)])
    return np.concatenate(pairs, axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    texts = written(N_DOCUMENTS, rng)
    start, cpu = time.perf_counter(), time.process_time()
    near_duplicates(texts)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    part = written(N_COMPARED, rng)
    first, second = all_with_all(part)
    group = near_duplicates(part)
    record = {
        "environment": dict(environment()),
        "documents": N_DOCUMENTS,
        "seconds": round(wall, 1),
        "processor_seconds": round(cpu, 1),
        "compared": len(part),
        "pairs": len(first),
        "found": round(float(np.mean(group[first] == group[second])), 4),
    }
    print(json.dumps(record, indent=1))
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
