"""What a projection inside a model folder adds to encoding.

    python benchmarks/speed/debias_encode.py [--quick] [--output FILE]

The packaged all-MiniLM-L6-v2 and the folder that ``write_projected_model`` makes of it encode the
texts of the bundled sample in turns; what counts is the median over the rounds of the ratio of CPU
times within a round. Before timing, the folder's vectors must equal the projected vectors of the
original. Exit status 1 when the target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rounds import finish, in_turns, ratio, row

from rag_sourcebias.debias.projection import SourceProjection
from rag_sourcebias.io.samples import load_sample
from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model

MODEL = "all-MiniLM-L6-v2"
DIMENSION = 384
TARGET = 1.02
SAME = 1e-5


def some_projection() -> SourceProjection:
    """Four directions drawn at random: the cost does not depend on where they point."""
    drawn = np.random.default_rng(0).normal(size=(DIMENSION, 4))
    directions = np.linalg.qr(drawn)[0].astype(np.float32)
    return SourceProjection(
        readout=directions,
        directions=directions,
        strength=1.0,
        sides="both",
        method="pca",
        n_pairs=0,
        reliability=1.0,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Encode cost of a projected model folder.")
    parser.add_argument("--quick", action="store_true", help="few texts, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/…")
    options = parser.parse_args()
    n, rounds = (32, 2) if options.quick else (128, 9)
    texts = list(load_sample().corpus.texts)[:n]
    original = SentenceEncoder(MODEL)
    projection = some_projection()
    with tempfile.TemporaryDirectory() as folder:
        place = write_projected_model(MODEL, projection, Path(folder) / "projected")
        projected = SentenceEncoder(place)
        expected = projection.apply(original.encode_documents(texts))
        difference = float(np.abs(projected.encode_documents(texts) - expected).max())
        if not difference <= SAME:
            raise SystemExit(f"vectors of the folder differ by {difference:.2g}")
        seconds = in_turns(
            {
                "projected": lambda: projected.encode_documents(texts),
                "original": lambda: original.encode_documents(texts),
                "original again": lambda: original.encode_documents(texts),
            },
            rounds=rounds,
            clock=time.process_time,
        )
    cost = ratio(seconds["projected"], seconds["original"])
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    what = f"{n} texts with a projected {MODEL} folder"
    rows = [
        row(
            what,
            f"{medians['projected']:.2f} s CPU",
            f"original: {medians['original']:.2f} s",
            cost,
            f"≤ {TARGET}×",
            cost <= TARGET,
        ),
        row(
            "… the original against itself (noise)",
            f"{medians['original again']:.2f} s CPU",
            f"original: {medians['original']:.2f} s",
            ratio(seconds["original again"], seconds["original"]),
            "stated",
            None,
        ),
    ]
    return finish("debias_encode", rows, quick=options.quick, output=options.output, rounds=rounds)


if __name__ == "__main__":
    sys.exit(main())
