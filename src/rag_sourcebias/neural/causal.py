"""Log-probabilities of continuations under a causal language model, many in one pass."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.loading import Dtype, ModelFolder, pick_device, quiet, require_torch
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["CausalScorer", "load_causal"]


_TOLERANCE = {"float32": 1e-2, "bfloat16": 0.25}


class CausalScorer:
    """Mean token log-probability of several continuations of one prompt.

    The continuations are laid out after the prompt in a single sequence; a mask lets each see the
    prompt and itself, and positions restart behind the prompt. This costs one forward pass over
    ``len(prompt) + Σ len(continuation)`` tokens. An architecture that does not honour such a mask
    (the constructor tries a known example) is run one pair at a time.

    Parameters
    ----------
    model, tokenizer
        A causal language model of transformers and its tokenizer.
    dtype : {"float32", "bfloat16"}
        What the model computes in.
    """

    def __init__(self, model: Any, tokenizer: Any, *, dtype: Dtype) -> None:  # noqa: ANN401
        self._model = model
        self._tokenizer = tokenizer
        bos = tokenizer.bos_token_id
        adds_bos = bos is not None and (tokenizer("a").input_ids or [None])[0] == bos
        self.start: tuple[int, ...] = (bos,) if adds_bos else ()
        self.packs = self._packing_works(_TOLERANCE[dtype])

    def tokens(self, text: str) -> list[int]:
        """Tokenize without adding special tokens."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids

    def score(self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> Float32Array:
        """Return the mean log-probability of each continuation; shape ``(len(continuations),)``.

        NaN for a continuation without tokens.
        """
        if self.packs and len(continuations) > 1:
            return self.score_packed(prompt, continuations)
        return self.score_singly(prompt, continuations)

    def score_singly(
        self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> Float32Array:
        """Score with one ordinary forward pass per continuation."""
        import torch

        scores = np.full(len(continuations), np.nan, np.float32)
        for row, tokens in enumerate(continuations):
            if not tokens:
                continue
            ids = torch.tensor([[*prompt, *tokens]], device=self._model.device)
            with torch.inference_mode():
                logits = self._model(input_ids=ids, use_cache=False).logits[
                    0, -len(tokens) - 1 : -1
                ]
            chosen = _chosen(logits, ids[0, -len(tokens) :])
            scores[row] = float(chosen.mean())
        return scores

    def sum_of_last(
        self, sequences: Sequence[Sequence[int]], counts: Sequence[int]
    ) -> npt.NDArray[np.float64]:
        """Summed log-probability of the last tokens of each sequence, in one forward pass.

        Parameters
        ----------
        sequences : sequence of sequence of int, length n
            Padded on the right, where no token that counts can see it.
        counts : sequence of int, length n
            Tokens that count; each less than its sequence is long.

        Returns
        -------
        float64 array of shape (n,)
        """
        import torch

        ends = [len(sequence) for sequence in sequences]
        ids = torch.zeros((len(ends), max(ends)), dtype=torch.long)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
        first = min(end - count for end, count in zip(ends, counts, strict=True)) - 1
        ids = ids.to(self._model.device)
        kept = {}
        if "logits_to_keep" in inspect.signature(self._model.forward).parameters:
            kept["logits_to_keep"] = torch.arange(first, ids.shape[1], device=ids.device)
        sums = np.zeros(len(ends))
        with torch.inference_mode():
            logits = self._model(input_ids=ids, use_cache=False, **kept).logits
            offset = first if kept else 0
            for row, (end, count) in enumerate(zip(ends, counts, strict=True)):
                before = slice(end - count - 1 - offset, end - 1 - offset)
                chosen = _chosen(logits[row, before], ids[row, end - count : end])
                sums[row] = float(chosen.double().sum())
        return sums

    def score_packed(
        self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> Float32Array:
        """Score all continuations in one forward pass."""
        import torch

        device, dtype = self._model.device, self._model.dtype
        packed = _Packed(prompt, continuations)
        branch = torch.tensor(packed.branch, device=device)
        visible = (branch[:, None] == branch[None, :]) | (branch[None, :] == 0)
        mask = torch.zeros(visible.shape, dtype=dtype, device=device)
        mask.masked_fill_(~visible.tril(), torch.finfo(dtype).min)
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.tensor([packed.ids], device=device),
                position_ids=torch.tensor([packed.positions], device=device),
                attention_mask=mask[None, None],
                use_cache=False,
                logits_to_keep=torch.tensor(packed.predictors, device=device),
            ).logits[0]
        chosen = _chosen(logits, torch.tensor(packed.targets, device=device))
        owner = np.array(packed.owners, dtype=np.int64)
        total = np.bincount(owner, chosen.double().cpu().numpy(), minlength=len(continuations))
        count = np.bincount(owner, minlength=len(continuations))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)

    def _packing_works(self, tolerance: float) -> bool:
        accepted = inspect.signature(self._model.forward).parameters
        if not {"position_ids", "logits_to_keep", "attention_mask"} <= set(accepted):
            return False
        prompt = [*self.start, *self.tokens("Lemons are yellow and sour. Question:")]
        texts = (" Which colour does a lemon have?", " What", " How sour is the yellow fruit?")
        continuations = [self.tokens(text) for text in texts]
        singly = self.score_singly(prompt, continuations)
        return bool(
            np.allclose(self.score_packed(prompt, continuations), singly, rtol=0, atol=tolerance)
        )


class _Packed:
    """Layout of a prompt and its continuations in one sequence."""

    def __init__(self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> None:
        self.ids = list(prompt)
        self.positions = list(range(len(prompt)))
        self.branch = [0] * len(prompt)
        self.predictors: list[int] = []
        self.targets: list[int] = []
        self.owners: list[int] = []
        for owner, tokens in enumerate(continuations):
            previous = len(prompt) - 1
            for step, token in enumerate(tokens):
                self.predictors.append(previous)
                self.targets.append(token)
                self.owners.append(owner)
                if step < len(tokens) - 1:  # the last token predicts nothing that is asked for
                    previous = len(self.ids)
                    self.ids.append(token)
                    self.positions.append(len(prompt) + step)
                    self.branch.append(owner + 1)


def load_causal(folder: ModelFolder, *, dtype: Dtype, device: str | None) -> CausalScorer:
    """Load a causal language model and its tokenizer.

    Raises
    ------
    DataError
        If the folder holds no such model.
    """
    require_torch(f"language model {folder.name!r}")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder.path, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(
                folder.path, dtype=getattr(torch, dtype), local_files_only=True
            )
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder.path} cannot be loaded as a causal language model "
            f"({str(error).strip().partition(chr(10))[0]})"
        ) from error
    return CausalScorer(model.to(pick_device(device)).eval(), tokenizer, dtype=dtype)


def _chosen(logits: Any, targets: Any) -> Any:  # noqa: ANN401 - tensors
    """Log-probability of each target; logits (n, vocabulary), targets (n,)."""
    logits = logits.float()
    return logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(-1)
