"""What the debiasing hinge adds to a training step.

    python benchmarks/speed/debias_training.py [--quick] [--output FILE]

One model, the same batches of (query, human document, LLM document) from the bundled sample; a step
is forward, backward and AdamW. ``MultipleNegativesRankingLoss`` on the three columns and the same
inside ``DebiasedRankingLoss`` take turns on each batch; what counts is the median over the batches
of the ratio of CPU times. At weight 0 both must give the same loss and gradients, to the bit, which
is checked before timing. Exit status 1 when the target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from rounds import finish, in_turns, ratio, row
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from rag_sourcebias.core.tags import training_pairs
from rag_sourcebias.io.samples import load_sample
from rag_sourcebias.neural.loading import ENCODERS
from rag_sourcebias.neural.losses import DebiasedRankingLoss

MODEL = "all-MiniLM-L6-v2"
BATCH = 16
TARGET = 0.95


def batches(model: SentenceTransformer) -> list[list[dict]]:
    """Tokenised columns, so that only the step itself is timed."""
    pairs = training_pairs(load_sample())
    columns = (
        list(pairs.queries),
        [pairs.twins.baseline_texts[i] for i in pairs.rows],
        [pairs.twins.source_texts[i] for i in pairs.rows],
    )
    starts = range(0, len(pairs) - BATCH + 1, BATCH)
    return [[model.preprocess(c[s : s + BATCH]) for c in columns] for s in starts]


def value(found: torch.Tensor | dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(found.values()) if isinstance(found, dict) else found


def check(model: SentenceTransformer, loss: torch.nn.Module, columns: list[dict]) -> None:
    """At weight 0 the wrapped loss is the loss."""
    wrapped = DebiasedRankingLoss(loss, 0.0, reduction="sum", scale=20.0, rank_columns="all")
    found = []
    for one in (loss, wrapped):
        model.zero_grad()
        torch.manual_seed(0)
        result = value(one([dict(c) for c in columns], None))
        result.backward()
        grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        found.append((result.detach(), grads))
    if not all(torch.equal(a, b) for a, b in zip(*found, strict=True)):
        raise SystemExit("the debiasing loss of weight 0 is not the base loss")


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of the debiasing hinge in training.")
    parser.add_argument("--quick", action="store_true", help="few steps, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/…")
    options = parser.parse_args()
    rounds = 2 if options.quick else 10
    model = SentenceTransformer(str(ENCODERS[MODEL].find()), device="cpu")
    model.max_seq_length = 128
    model.train()
    base = MultipleNegativesRankingLoss(model)
    losses = {
        "debiased": DebiasedRankingLoss(base, 0.01, reduction="sum", scale=20, rank_columns="all"),
        "base": base,
    }
    every = batches(model)
    check(model, base, every[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def step(name: str, columns: list[dict]) -> None:
        optimizer.zero_grad()
        value(losses[name]([dict(c) for c in columns], None)).backward()
        optimizer.step()

    seconds: dict[str, list[float]] = {name: [] for name in losses}
    for name in losses:
        step(name, every[0])
    for number in range(rounds):
        columns = every[number % len(every)]
        order = sorted(losses, reverse=bool(number % 2))
        works = {name: lambda name=name, c=columns: step(name, c) for name in order}
        for name, times in in_turns(works, rounds=1, clock=time.process_time).items():
            seconds[name] += times
    throughput = ratio(seconds["base"], seconds["debiased"])
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    rows = [
        row(
            f"training steps of {BATCH} triples, {MODEL}, with the hinge: share of the throughput",
            f"{medians['debiased']:.2f} s CPU a step",
            f"MultipleNegativesRankingLoss: {medians['base']:.2f} s",
            throughput,
            f"≥ {TARGET}×",
            throughput >= TARGET,
        )
    ]
    return finish("debias_training", rows, quick=options.quick, output=options.output, steps=rounds)


if __name__ == "__main__":
    sys.exit(main())
