"""From losses to log-perplexities, and how long texts are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from rag_sourcebias.types.perplexity import LogPerplexities

__all__ = ["collect", "even_chunks", "sliding_windows"]


def collect(totals: Sequence[tuple[float, int, int]]) -> LogPerplexities:
    """Turn (summed loss, tokens predicted, parts) of each text into means per token."""
    loss = np.array([total for total, _, _ in totals], dtype=np.float64)
    tokens = np.array([count for _, count, _ in totals], dtype=np.int64)
    parts = np.array([part for _, _, part in totals], dtype=np.int64)
    values = np.where(tokens > 0, loss / np.maximum(tokens, 1), np.nan)
    return LogPerplexities(values=values, tokens=tokens, parts=parts)


def even_chunks(tokens: Sequence[int], width: int) -> list[list[int]]:
    """Cut tokens into the fewest chunks of at most ``width``, of equal length within one token.

    A short rest at the end would be predicted from little context.
    """
    n = -(-len(tokens) // width)
    ends = [len(tokens) * part // n for part in range(n + 1)] if n else []
    return [list(tokens[a:b]) for a, b in pairwise(ends)]


def sliding_windows(length: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Cut ``length`` tokens into windows of which the later half is new.

    Yields
    ------
    first, middle, end : int
        Tokens from ``first`` are read and those from ``middle`` on predicted; token 0 never is.
    """
    middle = 1
    while middle < length:
        # The first window predicts all it reads; a later one predicts what no earlier one has.
        end = min(length, width if middle == 1 else middle + max(1, width // 2))
        yield max(0, end - width), middle, end
        middle = end
