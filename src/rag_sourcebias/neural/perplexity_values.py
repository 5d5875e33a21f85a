"""Log-perplexities of texts as data, and how long texts are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["LogPerplexities", "collect", "even_chunks", "sliding_windows"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LogPerplexities:
    """Log-perplexity of each text, in nats per token.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN for a text of which no token is predicted, such as an empty one.
    tokens : int64 array of shape (n,)
        Tokens predicted.
    parts : int64 array of shape (n,)
        Windows or chunks in which the text was read; more than 1 where it is longer than one.
    """

    values: npt.NDArray[np.float64] = field(repr=False)
    tokens: npt.NDArray[np.int64] = field(repr=False)
    parts: npt.NDArray[np.int64] = field(repr=False)

    @property
    def n_undefined(self) -> int:
        """Texts without a value."""
        return int(np.count_nonzero(self.tokens == 0))

    @property
    def n_cut(self) -> int:
        """Texts longer than one window."""
        return int(np.count_nonzero(self.parts > 1))


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
