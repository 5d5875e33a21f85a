"""Log-perplexity of documents: causal, and pseudo-perplexity by masking ([K] §4.2, METHODS §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.causal import CausalScorer
from rag_sourcebias.neural.causal_model import CausalModel
from rag_sourcebias.neural.loading import (
    Dtype,
    checked_dtype,
    find_model,
    library_versions,
    pick_device,
)
from rag_sourcebias.neural.perplexity_conditional import conditional_values
from rag_sourcebias.neural.perplexity_masked import MaskedScorer, load_masked
from rag_sourcebias.neural.perplexity_values import collect, even_chunks, sliding_windows
from rag_sourcebias.types.perplexity import LogPerplexities

__all__ = ["CausalPerplexity", "MaskedPerplexity"]

Progress = Callable[[int, int], None]


class CausalPerplexity:
    """−1/S · Σ_s log P(d_s | d_<s) of each text, in nats per token; no exponential, as in [K].

    A text longer than the window is read in windows that overlap by half, each token counted once
    and with at least half a window before it. Where the tokenizer adds no start token, the first
    token of a text is only read, not predicted.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` (packaged), the folder of a causal language model, or a hub name.
    window : int
        Tokens read at once, at least 2; no more than the model was trained to read.
    tokens_per_pass : int, optional
        Tokens, padding included, in one forward pass of :meth:`conditional`. Memory grows with it
        and with the vocabulary. By default 2,048 on the CPU and 16,384 elsewhere.
    dtype : {"bfloat16", "float32"}
        bfloat16 is faster where the processor supports it; it moves values by about 0.01.
    device : str, optional
        CUDA if there is any, else the CPU, by default.
    cache : Path, optional
        Folder in which the packaged model is converted once; ``models`` in the library's cache
        folder by default.

    Raises
    ------
    DataError
        If the model cannot be found.
    MissingExtraError
        If sentence-transformers (which brings transformers and torch) is not installed.
    """

    kind: Literal["causal", "masked"] = "causal"

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        window: int = 1024,
        tokens_per_pass: int | None = None,
        dtype: Dtype = "bfloat16",
        device: str | None = None,
        cache: str | Path | None = None,
    ) -> None:
        if window < 2:
            raise DataError(f"window is {window}; at least 2 tokens are needed to predict one")
        if tokens_per_pass is not None and tokens_per_pass < 1:
            raise DataError(f"tokens_per_pass is {tokens_per_pass}; it must be at least 1")
        self._model = CausalModel(model, dtype=dtype, device=device, cache=cache)
        self.name = f"causal:{self._model.name}"
        self.window = window
        self.tokens_per_pass = tokens_per_pass
        self.dtype = self._model.dtype
        self.device = device

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its values."""
        identity = self._model.identity
        return f"causal-perplexity-1:{identity}:{self.window}:{self.dtype}:{self.device or 'auto'}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        started = bool(self._scorer.start)
        return {
            "model": self._model.described,
            "value": "mean −log P(token | tokens before it), nats",
            "first token": "predicted after a start token" if started else "read, not predicted",
            "longer texts": f"windows of {self._width} tokens that overlap by half",
            "after another text": "the other text, a blank line, then the text",
            "dtype": self.dtype,
            "device": pick_device(self.device),
            **library_versions(),
        }

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> LogPerplexities:
        """Return the log-perplexity of each text; NaN where no token can be predicted."""
        scorer, totals = self._scorer, []
        for row, text in enumerate(texts):
            total, count, windows = 0.0, 0, 0
            ids = [*scorer.start, *scorer.tokens(text)]
            for first, middle, end in sliding_windows(len(ids), self._width):
                mean = float(scorer.score_singly(ids[first:middle], [ids[middle:end]])[0])
                total -= mean * (end - middle)
                count += end - middle
                windows += 1
            totals.append((total, count, windows))
            if progress is not None:
                progress(row + 1, len(texts))
        return collect(totals)

    def conditional(
        self,
        prefixes: Sequence[str],
        texts: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> LogPerplexities:
        """Return −1/S · Σ_s log P(d_s | prefix, d_<s) of each text ([K] App. B).

        The text follows its prefix after a blank line. The mean is over the tokens that
        :meth:`log_perplexities` predicts, so that the two can be subtracted. A prefix that leaves
        the text less than half the window is cut at its end, and the result says by how much; a
        text still longer than the rest is read in windows that overlap by half, each after the
        prefix.

        Raises
        ------
        DataError
            If there are not as many prefixes as texts, or the window has no room for both.
        """
        if len(prefixes) != len(texts):
            raise DataError(f"{len(prefixes)} prefixes for {len(texts)} texts; need as many")
        default = 2048 if pick_device(self.device) == "cpu" else 16_384
        return conditional_values(
            self._scorer,
            prefixes,
            texts,
            width=self._width,
            tokens_per_pass=self.tokens_per_pass or default,
            progress=progress,
        )

    @property
    def _width(self) -> int:
        return min(self.window, _longest(self._scorer) or self.window)

    @property
    def _scorer(self) -> CausalScorer:
        return self._model.scorer


class MaskedPerplexity:
    """−1/S · Σ_s log P(d_s | all other tokens) of each text under a masked language model ([K]).

    Every token is masked once; copies of many texts share a forward pass, and the vocabulary is
    scored at the masked position only. A text longer than the window is cut into as few chunks of
    equal length as will do, each read on its own.

    Parameters
    ----------
    model : str or Path
        Folder of a masked language model, or a hub name such as ``"bert-base-uncased"``.
    window : int
        Tokens read at once, special tokens included; no more than the model has positions.
    tokens_per_pass : int, optional
        Tokens, padding included, of the copies in one forward pass. Memory grows with it. By
        default 4,096 on the CPU, where more is not faster, and 65,536 elsewhere.
    dtype : {"float32", "bfloat16"}
    device : str, optional
        CUDA if there is any, else the CPU, by default.

    Raises
    ------
    DataError
        If the model cannot be found or has no head for masked tokens.
    MissingExtraError
        If sentence-transformers (which brings transformers and torch) is not installed.
    """

    kind: Literal["causal", "masked"] = "masked"

    def __init__(
        self,
        model: str | Path,
        *,
        window: int = 512,
        tokens_per_pass: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
    ) -> None:
        if tokens_per_pass is not None and tokens_per_pass < 1:
            raise DataError(f"tokens_per_pass is {tokens_per_pass}; it must be at least 1")
        self._found = find_model(model, packaged="none")
        self.name = f"masked:{self._found.name}"
        self.window = window
        self.tokens_per_pass = tokens_per_pass
        self.dtype = checked_dtype(dtype)
        self.device = device

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its values."""
        identity = self._found.identity
        return f"masked-perplexity-1:{identity}:{self.window}:{self.dtype}:{self.device or 'auto'}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._found.name,
            "value": "mean −log P(token | all other tokens), nats",
            "longer texts": f"chunks of equal length, at most {self._width} tokens",
            "dtype": self.dtype,
            "device": pick_device(self.device),
            **library_versions(),
        }

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> LogPerplexities:
        """Return the pseudo-log-perplexity of each text; NaN for a text without tokens.

        ``progress`` is told how many tokens of how many were masked.
        """
        scorer = self._scorer
        cut = [even_chunks(scorer.tokens(text), self._width) for text in texts]
        losses = scorer.losses(
            [chunk for chunks in cut for chunk in chunks],
            tokens_per_pass=self.tokens_per_pass or _tokens_per_pass(pick_device(self.device)),
            progress=progress,
        )
        parts = [len(chunks) for chunks in cut]
        owners = np.repeat(np.arange(len(texts)), parts)
        totals = np.bincount(owners, weights=losses, minlength=len(texts)).tolist()
        counts = [sum(map(len, chunks)) for chunks in cut]
        return collect(list(zip(totals, counts, parts, strict=True)))

    @property
    def _width(self) -> int:
        width = min(self.window, self._scorer.max_length or self.window) - self._scorer.n_special
        if width < 1:
            raise DataError(
                f"window is {self.window}, but {self._scorer.n_special} of its tokens are special; "
                f"it must be at least {self._scorer.n_special + 1}"
            )
        return width

    @cached_property
    def _scorer(self) -> MaskedScorer:
        return load_masked(self._found, dtype=self.dtype, device=self.device)


def _longest(scorer: CausalScorer) -> int | None:
    """Tokens that the model was trained to read at once, if it says so."""
    found = getattr(scorer._model.config, "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None


def _tokens_per_pass(device: str) -> int:
    return 4096 if device == "cpu" else 65_536
