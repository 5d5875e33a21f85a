"""What tokens cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_sourcebias.errors import DataError

__all__ = ["Prices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of one model. They change: the library ships none.

    Parameters
    ----------
    prompt, completion : float
        Price of a million tokens, read and written.
    currency : str

    Examples
    --------
    >>> Prices(prompt=0.15, completion=0.60).cost(prompt_tokens=2_000_000, completion_tokens=10_000)
    0.306
    """

    prompt: float
    completion: float
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("completion", self.completion)):
            if not (value >= 0 and math.isfinite(value)):
                raise DataError(
                    f"{name} price {value!r} is not a price; give the price of a million tokens"
                )

    def cost(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what that many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6
