"""Fitting a source projection, and applying it to stored vectors, against a plain matrix product.

    python benchmarks/speed/debias_projection.py [--quick] [--output FILE]

Vectors are drawn at random; every time is of the whole call, in turns with what it is compared
with: the product of the same vectors with a (d, d) matrix into an array that is there, and
``np.copyto``, which is what memory allows. Applied by NumPy alone, and by the compiled kernel of
the extra ``fast``, which ``apply`` uses by itself once a process has projected two gigabytes; what
importing and compiling it costs is told apart. Before timing, the projected vectors must equal the
formula in double precision. Exit status 1 when a target is missed (never with ``--quick``).

The copy runs on one core, the projection on all: on a machine with other load the projection pays
for it, and the copy does not. Medians over rounds of the ratio within one round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rounds import finish, in_turns, ratio, row

from rag_sourcebias.debias.projection import (
    SourceProjection,
    fit_projection,
    fused_kernel,
    project_rows,
)

DIMENSION = 384
PAIRS = 5_000
FIT_SECONDS = 1.0
SAME = 1e-5
TO_COPY = 1.25


def unit(vectors: np.ndarray) -> np.ndarray:
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def pairs(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of documents and of rewrites, which are shifted along a few directions."""
    human = unit(rng.normal(size=(n, DIMENSION)))
    shift = rng.normal(size=(4, DIMENSION)) / np.sqrt(DIMENSION)
    other = human + (0.1 + 0.2 * rng.normal(size=(n, 4))) @ shift
    return human.astype(np.float32), unit(other).astype(np.float32)


def fitting(n: int, *, rounds: int) -> list[dict]:
    human, other = pairs(n, np.random.default_rng(0))
    works = {
        f"{method} {directions}": lambda method=method, directions=directions: fit_projection(
            human, other, method=method, n_directions=directions
        )
        for method, directions in (("pca", 4), ("mean", 1), ("leace", 1))
    }
    seconds = in_turns(works, rounds=rounds)
    found = []
    for name, times in seconds.items():
        median = statistics.median(times)
        found.append(
            row(
                f"projection ({name}) fitted on {n:,} pairs × {DIMENSION}",
                f"{median:.3f} s",
                "",
                median,
                f"< {FIT_SECONDS:g} s",
                median < FIT_SECONDS,
            )
        )
    return found


def check(projection: SourceProjection, vectors: np.ndarray, found: np.ndarray) -> None:
    """Compare with the formula of the projection, computed in double precision."""
    some = np.linspace(0, len(vectors) - 1, min(1_000, len(vectors))).astype(int)
    exact = vectors[some].astype(np.float64)
    exact -= projection.strength * (exact @ projection.readout) @ projection.directions.T
    difference = float(np.abs(found[some] - unit(exact)).max())
    if not difference <= SAME:
        raise SystemExit(f"projected vectors differ from the formula by {difference:.2g}")


def kernel_ready() -> list[dict]:
    """What the first use of the kernel costs, in processes of their own: compiled, then loaded."""
    with tempfile.TemporaryDirectory() as folder:
        compiled, loaded = (seconds_to_kernel(folder) for _ in range(2))
    return [
        row(
            "compiled projection made ready, first in an environment",
            f"{compiled:.2f} s",
            f"loaded by a later process: {loaded:.2f} s",
            compiled,
            "stated: importing numba and compiling, once",
            None,
        )
    ]


def seconds_to_kernel(folder: str) -> float:
    code = """
import time
import numpy
from rag_sourcebias.debias.projection import fused_kernel
start = time.perf_counter()
if fused_kernel() is None:
    raise SystemExit("numba is missing: install rag-sourcebias[fast]")
print(time.perf_counter() - start)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    return float(done.stdout)


def applying(n: int, *, rounds: int) -> list[dict]:
    """Projecting against the product and the copy, all into the same array, touched before."""
    rng = np.random.default_rng(1)
    vectors = unit(rng.standard_normal((n, DIMENSION), dtype=np.float32))
    out = np.empty_like(vectors)
    fused_kernel()
    found = []
    for method, directions in (("mean", 1), ("pca", 2), ("pca", 4)):
        human, other = pairs(2_000, rng)
        projection = fit_projection(human, other, method=method, n_directions=directions)
        works = {
            "compiled": lambda projection=projection: project(projection, vectors, out, fused=True),
            "numpy": lambda projection=projection: project(projection, vectors, out, fused=False),
        }
        for work in works.values():
            work()
            check(projection, vectors, out)
        matrix = projection.matrix
        seconds = in_turns(
            {
                **works,
                "copy": lambda: np.copyto(out, vectors),
                "product": lambda matrix=matrix: np.matmul(vectors, matrix, out=out),
            },
            rounds=rounds,
        )
        for name in works:
            found += compared(f"{method}, {directions} direction(s), {name}", n, seconds, name)
    return found


def project(
    projection: SourceProjection, vectors: np.ndarray, out: np.ndarray, *, fused: bool
) -> None:
    project_rows(
        vectors,
        out,
        readout=projection.readout,
        directions=projection.directions,
        strength=projection.strength,
        fused=fused,
    )


def compared(name: str, n: int, seconds: dict[str, list[float]], work: str) -> list[dict]:
    medians = {key: statistics.median(times) for key, times in seconds.items()}
    moved = 2 * 4 * DIMENSION * n / 1e9
    ours = f"{medians[work]:.3f} s, {moved / medians[work]:.1f} GB/s"
    to_product = ratio(seconds[work], seconds["product"])
    to_copy = ratio(seconds[work], seconds["copy"])
    fused = work == "compiled"
    return [
        row(
            f"projection ({name}) of {n:,} × {DIMENSION} float32, against vectors @ (d, d)",
            ours,
            f"product: {medians['product']:.3f} s",
            to_product,
            "≤ 1×",
            to_product <= 1,
        ),
        row(
            f"projection ({name}) of {n:,} × {DIMENSION} float32, against np.copyto",
            ours,
            f"copy: {medians['copy']:.3f} s, {moved / medians['copy']:.1f} GB/s",
            to_copy,
            f"≤ {TO_COPY:g}×" if fused else "stated: the copy is the floor that memory sets",
            to_copy <= TO_COPY if fused else None,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of fitting and applying a projection.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/…")
    options = parser.parse_args()
    n_pairs, n, rounds = (1_000, 20_000, 3) if options.quick else (PAIRS, 1_000_000, 9)
    found = fitting(n_pairs, rounds=rounds) + kernel_ready() + applying(n, rounds=rounds)
    return finish("debias_projection", found, quick=options.quick, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
