"""Log-perplexity of documents: causal, and pseudo-perplexity by masking ([K] §4.2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.neural.causal import CausalModel, target_logprobs
from rag_sourcebias.neural.loading import (
    Dtype,
    checked_dtype,
    computed_with,
    find_model,
    load_language_model,
    pick_device,
)

# From losses to log-perplexities, how long texts are cut, and what is read in one pass.


class _Losses:
    """Summed loss, tokens predicted and parts of each of n texts."""

    def __init__(self, n: int) -> None:
        self.loss = np.zeros(n)
        self.tokens = np.zeros(n, np.int64)
        self.parts = np.zeros(n, np.int64)

    def per_token(self, prefix_cut: IntArray | None = None) -> LogPerplexities:
        """Return means per token; NaN for a text without any."""
        values = np.where(self.tokens > 0, self.loss / np.maximum(self.tokens, 1), np.nan)
        return LogPerplexities(
            values=values, tokens=self.tokens, parts=self.parts, prefix_cut=prefix_cut
        )


def batches(lengths: Sequence[int], tokens_per_pass: int) -> Iterator[list[int]]:
    """Put rows of about the same length together, so that little is padded.

    A row that is longer than a pass goes alone.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > tokens_per_pass:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


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


# Log-perplexities of texts after other texts: windows, and many of them in one forward pass.


_BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True)
class _Window:
    """Tokens that are read, of which the last ``count`` are predicted, of text ``owner``."""

    owner: int
    ids: list[int]
    count: int


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


# Losses of masked tokens, many copies of many texts in one forward pass.


_TOLERANCE = 0.05  # of a logit; another position's logits are off by whole units


class MaskedScorer:
    """−log P of each token given all others, under a masked language model.

    The vocabulary is scored at the masked position only: what the body of the model returns is cut
    to that position before its head sees it. Where a head is not applied position by position (the
    constructor tries an example), all positions are scored.

    Parameters
    ----------
    model, tokenizer
        A masked language model of transformers, in evaluation mode, and its tokenizer.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:  # noqa: ANN401
        self._model = model
        self._tokenizer = tokenizer
        if tokenizer.mask_token_id is None:
            raise DataError(
                f"the tokenizer of {model.name_or_path!r} has no mask token; a masked language "
                "model is needed, such as BERT"
            )
        self._before, self._after = _special_tokens(tokenizer)
        self._mask = int(tokenizer.mask_token_id)
        self._pad = int(tokenizer.pad_token_id or 0)
        self.n_special = len(self._before) + len(self._after)
        self.cuts = False
        self.cuts = self._cutting_works()

    @property
    def max_length(self) -> int:
        """Tokens that the model can read at once."""
        longest = int(self._tokenizer.model_max_length)
        positions: int | None = getattr(self._model.config, "max_position_embeddings", None)
        if not positions:
            return longest
        if self._model.config.model_type in _OFFSET_POSITIONS:
            # RoBERTa starts to count behind its padding index, so that two positions are lost.
            positions -= self._pad + 1
        return min(longest, positions)

    def tokens(self, text: str) -> list[int]:
        """Tokenize without adding special tokens."""
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False).input_ids)

    def losses(
        self,
        chunks: Sequence[Sequence[int]],
        *,
        tokens_per_pass: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> FloatArray:
        """Sum of −log P over the tokens of each chunk; shape ``(len(chunks),)``.

        Copies of chunks of about the same length go together, so that little is padded.
        """
        copies = [(at, place) for at, chunk in enumerate(chunks) for place in range(len(chunk))]
        lengths = [len(chunks[at]) + self.n_special for at, _ in copies]
        sums, done = np.zeros(len(chunks)), 0
        for batch in batches(lengths, tokens_per_pass):
            owners, places = np.array([copies[row] for row in batch]).T
            np.add.at(sums, owners, self._pass([chunks[at] for at in owners], places))
            done += len(batch)
            if progress is not None:
                progress(done, len(copies))
        return sums

    def _pass(self, texts: Sequence[Sequence[int]], places: npt.NDArray[np.int64]) -> FloatArray:
        """Loss of the token at one place of each text; shape ``(len(texts),)``."""
        import torch

        lengths = np.array([len(text) + self.n_special for text in texts])
        ids = np.full((len(texts), int(lengths.max())), self._pad)
        for row, text in enumerate(texts):
            ids[row, : lengths[row]] = [*self._before, *text, *self._after]
        rows = np.arange(len(texts))
        at = places + len(self._before)
        targets = ids[rows, at]
        ids[rows, at] = self._mask
        device = self._model.device
        attention = None  # without padding: attention is then faster
        if lengths.min() < lengths.max():
            attention = torch.tensor(
                np.arange(ids.shape[1]) < lengths[:, None], device=device
            ).long()
        with torch.inference_mode():
            logits = self._logits(
                torch.tensor(ids, device=device), attention, torch.tensor(at, device=device)
            )
            chosen = target_logprobs(logits, torch.tensor(targets, device=device))
        return np.asarray(-chosen.double().cpu().numpy())

    def _logits(self, ids: Any, attention: Any, at: Any) -> Any:  # noqa: ANN401 - tensors
        """Logits at one position of each row; shape (rows, vocabulary)."""
        import torch

        rows = torch.arange(len(ids), device=ids.device)
        if not self.cuts:
            return self._model(input_ids=ids, attention_mask=attention).logits[rows, at]

        def keep_one(_module: Any, _inputs: Any, output: Any) -> Any:  # noqa: ANN401
            output.last_hidden_state = output.last_hidden_state[rows, at][:, None]
            return output

        hook = self._model.base_model.register_forward_hook(keep_one)
        try:
            return self._model(input_ids=ids, attention_mask=attention).logits[:, 0]
        finally:
            hook.remove()

    def _cutting_works(self) -> bool:
        import torch

        text = self.tokens("Lemons are yellow and sour.")[: self.max_length - self.n_special]
        ids = torch.tensor([[*self._before, *text, *self._after]] * 2, device=self._model.device)
        at = torch.tensor([0, ids.shape[1] - 1], device=ids.device)
        with torch.inference_mode():
            whole = self._logits(ids, None, at)
            self.cuts = True
            try:
                cut = self._logits(ids, None, at)
            except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
                return False  # a body that returns something else, or a head that wants it whole
        return bool(
            cut.shape == whole.shape and torch.allclose(cut, whole, rtol=0.01, atol=_TOLERANCE)
        )


_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "xlm-roberta-xl")


def _special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:  # noqa: ANN401
    """Special tokens that the tokenizer puts before and after a text."""
    inner = tokenizer("a", add_special_tokens=False).input_ids
    whole = tokenizer("a").input_ids
    for start in range(len(whole) - len(inner) + 1):
        if inner and whole[start : start + len(inner)] == inner:
            return whole[:start], whole[start + len(inner) :]
    raise DataError(
        "the tokenizer writes 'a' differently with special tokens than without, so that the tokens "
        "of a text cannot be told from them"
    )


# Log-perplexity of documents: causal, and pseudo-perplexity by masking ([K] §4.2).


class CausalPerplexity(CausalModel):
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
    dtype : {"bfloat16", "float32"}, optional
        By default bfloat16 where the processor or GPU computes in it, else float32. It moves values
        by about 0.01.
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
        dtype: Dtype | None = None,
        device: str | None = None,
        cache: str | Path | None = None,
    ) -> None:
        require_at_least(2, window=window)  # tokens, to predict one
        require_at_least(1, tokens_per_pass=tokens_per_pass)
        super().__init__(model, dtype=dtype, device=device, cache=cache)
        self.name = f"causal:{self.name}"
        self.window = window
        self.tokens_per_pass = tokens_per_pass

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its values."""
        return (
            f"causal-perplexity-1:{self.identity}:{self.window}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.described,
            "value": "mean −log P(token | tokens before it), nats",
            "first token": "predicted after a start token"
            if self.scorer.start
            else "read, not predicted",
            "longer texts": f"windows of {self._width} tokens that overlap by half",
            "after another text": "the other text, a blank line, then the text",
            **computed_with(self.dtype, self.device),
        }

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> LogPerplexities:
        """Return the log-perplexity of each text; NaN where no token can be predicted."""
        scorer, sums = self.scorer, _Losses(len(texts))
        for row, text in enumerate(texts):
            ids = [*scorer.start, *scorer.tokens(text)]
            for first, middle, end in sliding_windows(len(ids), self._width):
                mean = float(scorer.score_singly(ids[first:middle], [ids[middle:end]])[0])
                sums.loss[row] -= mean * (end - middle)
                sums.tokens[row] += end - middle
                sums.parts[row] += 1
            if progress is not None:
                progress(row + 1, len(texts))
        return sums.per_token()

    def conditional(
        self,
        prefixes: Sequence[str],
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None] | None = None,
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
        scorer, width = self.scorer, self._width
        between = scorer.tokens(_BETWEEN)
        windows: list[_Window] = []
        cut = np.zeros(len(texts), np.int64)
        for owner, (prefix, text) in enumerate(zip(prefixes, texts, strict=True)):
            tokens = scorer.tokens(text)
            before = scorer.tokens(prefix)
            fixed = len(scorer.start) + len(between)
            room = max(0, max(width // 2, width - len(tokens)) - fixed)
            cut[owner] = max(0, len(before) - room)
            stem = [*scorer.start, *before[:room], *between]
            windows.extend(_windows(owner, stem, tokens, width=width, started=bool(scorer.start)))
        usual = 2048 if pick_device(self.device) == "cpu" else 16_384
        sums, done = _Losses(len(texts)), 0
        for rows in batches([len(window.ids) for window in windows], self.tokens_per_pass or usual):
            batch = [windows[row] for row in rows]
            counts = [window.count for window in batch]
            owners = [window.owner for window in batch]
            np.add.at(sums.loss, owners, -scorer.sum_of_last([w.ids for w in batch], counts))
            np.add.at(sums.tokens, owners, counts)
            np.add.at(sums.parts, owners, 1)
            done += len(batch)
            if progress is not None:
                progress(done, len(windows))
        return sums.per_token(prefix_cut=cut)

    @property
    def _width(self) -> int:
        return min(self.window, self.scorer.longest or self.window)


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
        require_at_least(1, tokens_per_pass=tokens_per_pass)
        self._found = find_model(model, packaged="none")
        self.name = f"masked:{self._found.name}"
        self.window = window
        self.tokens_per_pass = tokens_per_pass
        self.dtype = checked_dtype(dtype)
        self.device = device

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its values."""
        return (
            f"masked-perplexity-1:{self._found.identity}:{self.window}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._found.name,
            "value": "mean −log P(token | all other tokens), nats",
            "longer texts": f"chunks of equal length, at most {self._width} tokens",
            **computed_with(self.dtype, self.device),
        }

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> LogPerplexities:
        """Return the pseudo-log-perplexity of each text; NaN for a text without tokens.

        ``progress`` is told how many tokens of how many were masked.
        """
        scorer = self._scorer
        cut = [
            (row, chunk)
            for row, text in enumerate(texts)
            for chunk in even_chunks(scorer.tokens(text), self._width)
        ]
        losses = scorer.losses(
            [chunk for _, chunk in cut],
            tokens_per_pass=self.tokens_per_pass
            or (4096 if pick_device(self.device) == "cpu" else 65_536),
            progress=progress,
        )
        sums = _Losses(len(texts))
        for (row, chunk), loss in zip(cut, losses, strict=True):
            sums.loss[row] += loss
            sums.tokens[row] += len(chunk)
            sums.parts[row] += 1
        return sums.per_token()

    @property
    def _width(self) -> int:
        width = min(self.window, self._scorer.max_length) - self._scorer.n_special
        if width < 1:
            raise DataError(
                f"window is {self.window}, but {self._scorer.n_special} of its tokens are special; "
                f"it must be at least {self._scorer.n_special + 1}"
            )
        return width

    @cached_property
    def _scorer(self) -> MaskedScorer:
        model, tokenizer, missing = load_language_model(
            self._found, "masked", dtype=self.dtype, device=self.device
        )
        if missing:  # as of a sentence encoder: transformers fills in a random head
            raise DataError(
                f"{self._found.path} has no trained head for masked tokens ({len(missing)} weights "
                f"are missing, such as {missing[0]!r}); a masked language model is needed, such as "
                "bert-base-uncased"
            )
        return MaskedScorer(model, tokenizer)
