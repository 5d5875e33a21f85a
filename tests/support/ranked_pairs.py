"""Finished rankings as files: for each query a human text and the rewrite of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from command_line import write_lines

FILES = ("--run", "demo.run", "--qrels", "qrels.txt", "--tags", "tags.tsv")


def write_ranked_pairs(folder: Path, orders: Iterable[str], *, source: str = "llm:x") -> None:
    """Write ``FILES``; an order is "hl" where the human text of a query stands first, or "lh"."""
    run, qrels, tags = [], [], ["doc_id\tsource\tpair_id"]
    for i, order in enumerate(orders):
        for rank, kind in enumerate(order, start=1):
            run.append(f"q{i} Q0 {kind}{i} {rank} {10 - rank} demo")
            qrels.append(f"q{i} 0 {kind}{i} 1")
        tags += [f"h{i}\thuman\tp{i}", f"l{i}\t{source}\tp{i}"]
    for name, lines in zip(FILES[1::2], (run, qrels, tags), strict=True):
        write_lines(folder / name, lines)
