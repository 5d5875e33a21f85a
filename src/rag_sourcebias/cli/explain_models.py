"""Language models of ``explain`` from their names, with what they read kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import ConditionalPerplexity, TextPerplexity
from rag_sourcebias.retrieval import VectorCache
from rag_sourcebias.types.perplexity import LogPerplexities

__all__ = ["CachedConditional", "CachedPerplexity", "perplexity_models"]

Progress = Callable[[int, int], None]
Rows = npt.NDArray[np.float32]
_CONDITIONAL = "conditional"
_BATCH = 16  # texts between two commits: some seconds of work


class CachedPerplexity:
    """A language model whose values are kept in a :class:`VectorCache`.

    Values are those of float32, whether they come from the cache or not.

    Parameters
    ----------
    inner : TextPerplexity
    cache : VectorCache
    """

    def __init__(self, inner: TextPerplexity, cache: VectorCache) -> None:
        self.inner = inner
        self.cache = cache
        self.name = inner.name

    @property
    def kind(self) -> Literal["causal", "masked"]:
        """Kind of the model."""
        return self.inner.kind

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model."""
        return self.inner.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the model."""
        return self.inner.settings

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> LogPerplexities:
        """Return the log-perplexity of each text; ``progress`` is told of texts."""

        def compute(rows: Sequence[int]) -> LogPerplexities:
            return self.inner.log_perplexities([texts[row] for row in rows])

        return self._through("perplexity", texts, compute, progress)

    def _through(
        self,
        side: str,
        keys: Sequence[str],
        compute: Callable[[Sequence[int]], LogPerplexities],
        progress: Progress | None,
    ) -> LogPerplexities:
        kept = self.cache.get(self.fingerprint, side, keys)
        missing = [row for row, found in enumerate(kept) if found is None]
        for start in range(0, len(missing), _BATCH):
            rows = missing[start : start + _BATCH]
            found = compute(rows)
            columns = _columns(found)
            self.cache.put(self.fingerprint, side, [keys[row] for row in rows], columns)
            for row, values in zip(rows, columns, strict=True):
                kept[row] = values
            if progress is not None:
                progress(start + len(rows), len(missing))
        table = np.array(kept, dtype=np.float64).reshape(-1, 4)
        counts = table[:, 1:].astype(np.int64)
        return LogPerplexities(
            values=table[:, 0],
            tokens=counts[:, 0],
            parts=counts[:, 1],
            prefix_cut=counts[:, 2] if side == _CONDITIONAL else None,
        )


class CachedConditional(CachedPerplexity):
    """The same of a causal model, which can also read one text after another.

    Parameters
    ----------
    inner : ConditionalPerplexity
    cache : VectorCache
    """

    def __init__(self, inner: ConditionalPerplexity, cache: VectorCache) -> None:
        super().__init__(inner, cache)
        self._conditional = inner.conditional

    def conditional(
        self,
        prefixes: Sequence[str],
        texts: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> LogPerplexities:
        """Return the log-perplexity of each text after its prefix."""

        def compute(rows: Sequence[int]) -> LogPerplexities:
            return self._conditional([prefixes[r] for r in rows], [texts[r] for r in rows])

        keys = [f"{len(p)} {p}{t}" for p, t in zip(prefixes, texts, strict=True)]
        return self._through(_CONDITIONAL, keys, compute, progress)


def perplexity_models(specs: Sequence[str] | None, *, cache: Path) -> tuple[CachedPerplexity, ...]:
    """Build the models that ``causal:<name>`` and ``masked:<name>`` name.

    Raises
    ------
    DataError
        If a name is not of that form, is there twice, or no such model can be found.
    """
    named = [text.strip() for text in specs or ()]
    if len(set(named)) < len(named):
        raise DataError(f"--perplexity names the same model twice: {', '.join(named)}")
    values = VectorCache(cache / "perplexities.sqlite")
    return tuple(_model(text, cache, values) for text in named)


def _columns(found: LogPerplexities) -> Rows:
    cut = np.zeros_like(found.tokens) if found.prefix_cut is None else found.prefix_cut
    columns: Rows = np.column_stack((found.values, found.tokens, found.parts, cut)).astype(
        np.float32
    )
    return columns


def _model(text: str, cache: Path, values: VectorCache) -> CachedPerplexity:
    kind, _, name = text.partition(":")
    if kind not in ("causal", "masked") or not name:
        raise DataError(
            f"--perplexity {text!r}: write causal:smollm2, causal:<path> or masked:<path>"
        )
    from rag_sourcebias.neural.perplexity import CausalPerplexity, MaskedPerplexity

    if kind == "masked":
        return CachedPerplexity(MaskedPerplexity(name), values)
    found = CausalPerplexity(name, cache=cache / "models")
    if isinstance(found, ConditionalPerplexity):
        return CachedConditional(found, values)
    return CachedPerplexity(found, values)
