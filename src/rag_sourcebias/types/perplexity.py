"""Log-perplexities of texts as data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["LogPerplexities"]


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
    prefix_cut : int64 array of shape (n,), optional
        Of conditional ones: tokens at the end of the prefix that were not read for want of room.
    """

    values: npt.NDArray[np.float64] = field(repr=False)
    tokens: npt.NDArray[np.int64] = field(repr=False)
    parts: npt.NDArray[np.int64] = field(repr=False)
    prefix_cut: npt.NDArray[np.int64] | None = field(repr=False, default=None)

    @property
    def n_undefined(self) -> int:
        """Texts without a value."""
        return int(np.count_nonzero(self.tokens == 0))

    @property
    def n_cut(self) -> int:
        """Texts longer than one window."""
        return int(np.count_nonzero(self.parts > 1))

    @property
    def n_prefix_cut(self) -> int:
        """Texts whose prefix was not read to its end."""
        return 0 if self.prefix_cut is None else int(np.count_nonzero(self.prefix_cut))
