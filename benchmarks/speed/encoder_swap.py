"""A whole encoder swap against a bare copy of the collection, alternating.

    python benchmarks/speed/encoder_swap.py

The encoder costs nothing here (a lookup), so that only reading, comparing and writing count: with a
real one, both sides take longer by the same time. Seconds are those of the processor, which other
work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.migration import migrate_encoder

RESULT = Path(__file__).parents[1] / "results" / "encoder_swap_speed.json"
DIMENSION = 384
PAGE = 256  # as migrate_encoder takes


class Lookup:
    """An encoder whose vectors are ready."""

    name = fingerprint = "lookup"
    dimension = DIMENSION
    settings = {"model": "lookup"}  # noqa: RUF012

    def __init__(self) -> None:
        self._table = np.random.default_rng(0).normal(size=(4_096, DIMENSION)).astype(np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Take a row for each text."""
        return self._table[[zlib.crc32(text.encode()) % len(self._table) for text in texts]]

    encode_queries = encode_documents


def fill(client: Any, n: int) -> Any:
    """Make a collection of n documents."""
    rng = np.random.default_rng(1)
    collection = client.create_collection("shop", embedding_function=None)
    for start in range(0, n, 1_000):
        ids = range(start, min(start + 1_000, n))
        collection.add(
            ids=[f"d{i}" for i in ids],
            embeddings=rng.normal(size=(len(ids), DIMENSION)).astype(np.float32),
            documents=[f"document {i} says that " + "word " * 60 for i in ids],
            metadatas=[{"n": i, "rsb_source": "human" if i % 2 else "llm:x"} for i in ids],
        )
    return collection


def bare(client: Any, collection: Any) -> None:
    """Read, encode and write, without looking back."""
    function = EncoderEmbeddingFunction(Lookup())
    index = {"hnsw": collection.configuration_json["hnsw"]}
    copy = client.create_collection("copy", embedding_function=function, configuration=index)
    for start in range(0, collection.count(), PAGE):
        page = collection.get(limit=PAGE, offset=start, include=["documents", "metadatas"])
        copy.add(
            ids=page["ids"],
            embeddings=function(page["documents"]),
            documents=page["documents"],
            metadatas=page["metadatas"],
        )


def swap(client: Any, collection: Any) -> None:
    """Copy, verify, switch and finish."""
    encoder = EncoderEmbeddingFunction(Lookup())
    migration = migrate_encoder(collection, encoder, client=client)
    migration.switch()
    migration.finish(quiet=0)


def timed(work: Any, n: int) -> float:
    """Seconds, in a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        client = open_client(Path(folder) / "db")
        collection = fill(client, n)
        began = time.process_time()
        work(client, collection)
        return time.process_time() - began


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    rounds = [
        (timed(bare, asked.documents), timed(swap, asked.documents)) for _ in range(asked.repeats)
    ]
    ratios = sorted(swapped / copied for copied, swapped in rounds)
    figures = {
        "documents": asked.documents,
        "bare copy, seconds": [round(copied, 2) for copied, _ in rounds],
        "swap, seconds": [round(swapped, 2) for _, swapped in rounds],
        "ratio, median": round(ratios[len(ratios) // 2], 3),
        "bar": 1.5,
    }
    print(json.dumps(figures, indent=1))
    asked.out.write_text(json.dumps(figures, indent=1) + "\n")
    return figures["ratio, median"] > figures["bar"]


if __name__ == "__main__":
    raise SystemExit(main())
