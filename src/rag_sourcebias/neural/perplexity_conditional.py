"""Log-perplexities of texts after other texts: windows, and many of them in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.causal import CausalScorer
from rag_sourcebias.neural.perplexity_values import collect, sliding_windows
from rag_sourcebias.types.perplexity import LogPerplexities

__all__ = ["conditional_values"]

_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """Tokens that are read, of which the last ``count`` are predicted, of text ``owner``."""

    owner: int
    ids: list[int]
    count: int


def conditional_values(
    scorer: CausalScorer,
    prefixes: Sequence[str],
    texts: Sequence[str],
    *,
    width: int,
    tokens_per_pass: int,
    progress: Callable[[int, int], None] | None = None,
) -> LogPerplexities:
    """Mean −log P per token of each text after its prefix.

    Parameters
    ----------
    width : int
        Tokens of a window, prefix included.
    tokens_per_pass : int
        Tokens of a forward pass, padding included; a longer window goes alone.
    """
    between = scorer.tokens(_BETWEEN)
    windows: list[_Window] = []
    cut = np.zeros(len(texts), np.int64)
    for owner, (prefix, text) in enumerate(zip(prefixes, texts, strict=True)):
        tokens = scorer.tokens(text)
        before = scorer.tokens(prefix)
        fixed = len(scorer.start) + len(between)
        room = max(width // 2, width - len(tokens)) - fixed
        cut[owner] = max(0, len(before) - max(0, room))
        stem = [*scorer.start, *before[: max(0, room)], *between]
        windows.extend(_windows(owner, stem, tokens, width=width, started=bool(scorer.start)))
    sums, done = np.zeros(len(texts)), 0
    counts, parts = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    for batch in _batches(windows, tokens_per_pass):
        found = scorer.sum_of_last([w.ids for w in batch], [w.count for w in batch])
        owners = [window.owner for window in batch]
        np.add.at(sums, owners, -found)
        np.add.at(counts, owners, [window.count for window in batch])
        np.add.at(parts, owners, 1)
        done += len(batch)
        if progress is not None:
            progress(done, len(windows))
    totals = list(zip(sums.tolist(), counts.tolist(), parts.tolist(), strict=True))
    return replace(collect(totals), prefix_cut=cut)


def _windows(
    owner: int, stem: list[int], tokens: list[int], *, width: int, started: bool
) -> Iterator[_Window]:
    """Cut a text so that each piece fits behind its prefix.

    Without a start token, the first token of a text is only read, as it is without a prefix.
    """
    rest = tokens
    if started and tokens:
        stem, rest = stem[:-1], [stem[-1], *tokens]
    left = width - len(stem)
    if left < 2:
        raise DataError(
            f"a window of {width} tokens has no room for a text after another one; "
            f"at least {len(stem) + 2} are needed"
        )
    for first, middle, end in sliding_windows(len(rest), left):
        yield _Window(owner=owner, ids=[*stem, *rest[first:end]], count=end - middle)


def _batches(windows: Sequence[_Window], tokens_per_pass: int) -> Iterator[list[_Window]]:
    """Put windows of about the same length together, so that little is padded."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda window: len(window.ids)):
        if batch and (len(batch) + 1) * len(window.ids) > tokens_per_pass:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
