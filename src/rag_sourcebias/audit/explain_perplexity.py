"""Perplexities of drawn pairs, each text read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import ConditionalPerplexity, TextPerplexity
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.perplexity import LogPerplexities

__all__ = ["KnownPerplexities"]

Progress = Callable[[int, int], None]


class KnownPerplexities:
    """A language model that reads each text once, however many sources it is compared with.

    Parameters
    ----------
    model : TextPerplexity
    progress : callable, optional
        Told ``(done, total)`` of what the model counts.
    """

    def __init__(self, model: TextPerplexity, *, progress: Progress | None = None) -> None:
        self.model = model
        self._progress = progress
        self._known: dict[str, float] = {}
        self._cut: set[str] = set()

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Log-perplexity of each text; shape (n,)."""
        missing = sorted(set(texts) - self._known.keys())
        if missing:
            found = _checked(
                self.model, self.model.log_perplexities(missing, progress=self._progress), missing
            )
            self._known.update(zip(missing, found.values.tolist(), strict=True))
            self._cut.update(
                text for text, parts in zip(missing, found.parts.tolist(), strict=True) if parts > 1
            )
        return np.array([self._known[text] for text in texts], dtype=np.float64)

    def after(self, prefixes: Sequence[str], texts: Sequence[str]) -> LogPerplexities | None:
        """Log-perplexity of each text after its prefix; None if the model cannot tell."""
        if not isinstance(self.model, ConditionalPerplexity):
            return None
        return _checked(
            self.model, self.model.conditional(prefixes, texts, progress=self._progress), texts
        )

    def notes(self, texts: Sequence[str], after: LogPerplexities | None) -> list[str]:
        """Say what was not read in one piece."""
        notes = []
        if n := sum(text in self._cut for text in texts):
            how = self.model.settings.get("longer texts", "pieces")
            notes.append(f"{self.model.name}: {n} of {len(texts)} texts were read in {how}")
        if after is not None and after.n_prefix_cut:
            notes.append(
                f"{self.model.name}: {after.n_prefix_cut} of {len(after.values)} human texts were "
                "too long to be read to their end before the rewrite"
            )
        return notes


def _checked(
    model: TextPerplexity, found: LogPerplexities, texts: Sequence[str]
) -> LogPerplexities:
    if found.values.shape != (len(texts),):
        raise DataError(
            f"{model.name!r} returned values of shape {found.values.shape} for {len(texts)} texts; "
            "expected one each"
        )
    return found
