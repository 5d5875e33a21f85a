"""Losses of masked tokens, many copies of many texts in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.loading import Dtype, ModelFolder, pick_device, quiet, require_torch
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["MaskedScorer", "load_masked"]

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
    def max_length(self) -> int | None:
        """Tokens that the model can read at once, if it has a limit."""
        positions = getattr(self._model.config, "max_position_embeddings", None)
        limits = [int(self._tokenizer.model_max_length)]
        if isinstance(positions, int) and positions > 0:
            # RoBERTa starts to count behind its padding index, so that two positions are lost.
            offset = self._pad + 1 if self._model.config.model_type in _OFFSET_POSITIONS else 0
            limits.append(positions - offset)
        return min(limits)

    def tokens(self, text: str) -> list[int]:
        """Tokenize without adding special tokens."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        return ids

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
            end = self._end_of_pass(chunks, copies, done, tokens_per_pass)
            part = copies[done:end]
            found = self._pass(
                [chunks[at] for at, _ in part], np.array([place for _, place in part])
            )
            np.add.at(sums, [at for at, _ in part], found)
            done = end
            if progress is not None:
                progress(done, len(copies))
        return sums

    def _end_of_pass(
        self,
        chunks: Sequence[Sequence[int]],
        copies: Sequence[tuple[int, int]],
        start: int,
        tokens_per_pass: int,
    ) -> int:
        end = start + 1
        while end < len(copies):
            width = len(chunks[copies[end][0]]) + self.n_special  # the longest so far
            if (end + 1 - start) * width > tokens_per_pass:
                break
            end += 1
        return end

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
            real = np.arange(ids.shape[1]) < lengths[:, None]
            attention = torch.tensor(real, device=device).long()
        with torch.inference_mode():
            logits = self._logits(
                torch.tensor(ids, device=device), attention, torch.tensor(at, device=device)
            ).float()
            chosen = logits.gather(1, torch.tensor(targets, device=device)[:, None])[:, 0]
            found: FloatArray = (logits.logsumexp(-1) - chosen).double().cpu().numpy()
        return found

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

        text = self.tokens("Lemons are yellow and sour.")[: (self.max_length or 8) - self.n_special]
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

    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder.path, local_files_only=True)
            model, found = AutoModelForMaskedLM.from_pretrained(
                folder.path,
                dtype=getattr(torch, dtype),
                local_files_only=True,
                output_loading_info=True,
            )
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder.path} cannot be loaded as a masked language model "
            f"({str(error).strip().partition(chr(10))[0]})"
        ) from error
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
