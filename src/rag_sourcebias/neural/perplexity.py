"""Log-perplexity of documents: causal, and pseudo-perplexity by masking ([K] §4.2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.neural.causal import CausalModel, CausalScorer
from rag_sourcebias.neural.loading import (
    Dtype,
    ModelFolder,
    checked_dtype,
    computed_with,
    find_model,
    loading,
    pick_device,
    require_torch,
)

# From losses to log-perplexities, and how long texts are cut.


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


# Log-perplexities of texts after other texts: windows, and many of them in one forward pass.


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
    totals = zip(sums.tolist(), counts.tolist(), parts.tolist(), strict=True)
    return replace(collect(list(totals)), prefix_cut=cut)


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
        positions = getattr(self._model.config, "max_position_embeddings", None)
        limits = [int(self._tokenizer.model_max_length)]
        if isinstance(positions, int) and positions > 0:
            # RoBERTa starts to count behind its padding index, so that two positions are lost.
            offset = self._pad + 1 if self._model.config.model_type in _OFFSET_POSITIONS else 0
            limits.append(positions - offset)
        return min(limits)

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
        order = sorted(range(len(chunks)), key=lambda at: len(chunks[at]))
        copies = [(at, place) for at in order for place in range(len(chunks[at]))]
        sums = np.zeros(len(chunks))
        done = 0
        while done < len(copies):
            end = done + 1
            while end < len(copies):
                width = len(chunks[copies[end][0]]) + self.n_special  # the longest so far
                if (end + 1 - done) * width > tokens_per_pass:
                    break
                end += 1
            owners, places = np.array(copies[done:end]).T
            np.add.at(sums, owners, self._pass([chunks[at] for at in owners], places))
            done = end
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
            ).float()
            chosen = logits.gather(1, torch.tensor(targets, device=device)[:, None])[:, 0]
        return np.asarray((logits.logsumexp(-1) - chosen).double().cpu().numpy())

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


def load_masked(folder: ModelFolder, *, dtype: Dtype, device: str | None) -> MaskedScorer:
    """Load a masked language model and its tokenizer.

    Raises
    ------
    DataError
        If the folder holds no such model, or one whose head was not trained (a sentence encoder,
        for instance: transformers would fill in a random one).
    """
    require_torch(f"masked language model {folder.name!r}")
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    with loading(folder.path, "a masked language model"):
        tokenizer = AutoTokenizer.from_pretrained(folder.path, local_files_only=True)
        model, found = AutoModelForMaskedLM.from_pretrained(
            folder.path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            output_loading_info=True,
        )
    if missing := sorted(found["missing_keys"]):
        raise DataError(
            f"{folder.path} has no trained head for masked tokens ({len(missing)} weights are "
            f"missing, such as {missing[0]!r}); a masked language model is needed, such as "
            "bert-base-uncased"
        )
    return MaskedScorer(model.to(pick_device(device)).eval(), tokenizer)


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
        self._model = CausalModel(model, dtype=dtype, device=device, cache=cache)
        self.name = f"causal:{self._model.name}"
        self.window = window
        self.tokens_per_pass = tokens_per_pass
        self.device = device

    @property
    def dtype(self) -> Dtype:
        """What the model computes in."""
        return self._model.dtype

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its values."""
        return (
            f"causal-perplexity-1:{self._model.identity}:{self.window}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._model.described,
            "value": "mean −log P(token | tokens before it), nats",
            "first token": "predicted after a start token"
            if self._scorer.start
            else "read, not predicted",
            "longer texts": f"windows of {self._width} tokens that overlap by half",
            "after another text": "the other text, a blank line, then the text",
            **computed_with(self.dtype, self.device),
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
        return conditional_values(
            self._scorer,
            prefixes,
            texts,
            width=self._width,
            tokens_per_pass=self.tokens_per_pass
            or (2048 if pick_device(self.device) == "cpu" else 16_384),
            progress=progress,
        )

    @property
    def _width(self) -> int:
        # Tokens that the model was trained to read at once, if it says so.
        longest = getattr(self._scorer._model.config, "max_position_embeddings", None)
        if isinstance(longest, int) and longest > 0:
            return min(self.window, longest)
        return self.window

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
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> LogPerplexities:
        """Return the pseudo-log-perplexity of each text; NaN for a text without tokens.

        ``progress`` is told how many tokens of how many were masked.
        """
        scorer = self._scorer
        cut = [even_chunks(scorer.tokens(text), self._width) for text in texts]
        losses = scorer.losses(
            [chunk for chunks in cut for chunk in chunks],
            tokens_per_pass=self.tokens_per_pass
            or (4096 if pick_device(self.device) == "cpu" else 65_536),
            progress=progress,
        )
        parts = [len(chunks) for chunks in cut]
        owners = np.repeat(np.arange(len(texts)), parts)
        totals = np.bincount(owners, weights=losses, minlength=len(texts)).tolist()
        counts = [sum(map(len, chunks)) for chunks in cut]
        return collect(list(zip(totals, counts, parts, strict=True)))

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
        return load_masked(self._found, dtype=self.dtype, device=self.device)
