"""The builder's memory does not grow with the corpus."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from rag_sourcebias.core.completions import Completion
from rag_sourcebias.pairs.rewriting import build_paired_corpus

LONG = 4_000
SMALL, LARGE = 150, 1_800


class Instant:
    name = fingerprint = "instant"
    settings = {"model": "instant"}  # noqa: RUF012
    max_concurrency = 4

    def complete(self, prompt: str, *, max_tokens: int, temperature: float, seed: int):
        return Completion(text=(prompt[-20:] + " other words") * (LONG // 32))

    def label_logprobs(self, prompt, labels):
        raise NotImplementedError


def peak(folder: Path, n: int) -> int:
    source = folder / f"human-{n}"
    (source / "corpus").mkdir(parents=True)
    with (source / "corpus" / "human.jsonl").open("w", encoding="utf-8") as stream:
        for i in range(n):
            row = {"_id": f"d{i}", "title": "", "text": f"{i} words" * (LONG // 8)}
            stream.write(json.dumps(row) + "\n")
    tracemalloc.start()
    try:
        build_paired_corpus(source, Instant(), folder / f"out-{n}")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    peak(tmp_path / "warm", 10)
    small = peak(tmp_path, SMALL)
    # Texts and answers of the larger one take 13 MB; a block of each is what is held.
    assert peak(tmp_path, LARGE) < small + 4_000_000
