"""Query-likelihood reranking with a causal language model (Sachan et al., EMNLP 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.neural.loading import (
    Dtype,
    device_for,
    load_model,
    require_neural,
    revision_of,
    torch_dtype,
)
from rag_sourcebias.neural.packaged import packaged_causal_lm

__all__ = ["QueryLikelihoodReranker"]

_BEFORE = "Passage: "
_AFTER = "\nPlease write a question based on this passage.\nQuestion:"


class QueryLikelihoodReranker:
    """Score of a pair: mean log-probability of the query's tokens given the passage.

    The passage is read once and its keys and values are shared by all queries that ask for it.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` comes from a package; else a path or hub name.
    cache : Path
        Folder in which a packaged model is unpacked once.
    max_length : int
        Tokens of a passage; longer ones are cut.
    dtype : {"float32", "bfloat16"}
    device : str, optional
    """

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        cache: Path,
        max_length: int = 400,
        dtype: Dtype = "bfloat16",
        device: str | None = None,
    ) -> None:
        require_neural(f"query likelihood with {str(model)!r}")
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder = packaged_causal_lm(str(model), cache)
        place = str(folder or model)
        self._device = device_for(device)
        self._tokenizer: Any = load_model(
            place, lambda: AutoTokenizer.from_pretrained(place), what="tokenizer"
        )
        self._model: Any = load_model(
            place,
            lambda: AutoModelForCausalLM.from_pretrained(place, dtype=torch_dtype(dtype)),
            what="language model",
        )
        self._model.to(self._device).eval()
        self.name = f"ql:{Path(model).name if Path(model).is_dir() else model}"
        self._max_length = max_length
        self._dtype = dtype
        self._identity = folder.name if folder else revision_of(place, self._model.config)

    @property
    def fingerprint(self) -> str:
        """Identity of weights, prompt and settings, as a short digest."""
        parts = (self._identity, _BEFORE, _AFTER, str(self._max_length), self._dtype)
        return blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "reranker": f"{self.name} (query likelihood)",
            "dtype": self._dtype,
            "maximum length": f"{self._max_length} tokens of the passage",
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score pairs, in the given order; shape (len(pairs),)."""
        import torch

        result = np.empty(len(pairs), dtype=np.float32)
        order = sorted(range(len(pairs)), key=lambda i: pairs[i][1])
        with torch.inference_mode():
            for passage, group in groupby(order, key=lambda i: pairs[i][1]):
                members = list(group)
                result[members] = self._likelihoods(passage, [pairs[i][0] for i in members])
        return result

    def _likelihoods(self, passage: str, queries: list[str]) -> npt.NDArray[np.float32]:
        """Mean log-probability per query token, shape (len(queries),)."""
        import torch

        encode = self._tokenizer
        text = encode(passage, add_special_tokens=False)["input_ids"][: self._max_length]
        prompt = [
            *encode(_BEFORE)["input_ids"],
            *text,
            *encode(_AFTER, add_special_tokens=False)["input_ids"],
        ]
        prefix = torch.tensor([prompt], device=self._device)
        read = self._model(input_ids=prefix, use_cache=True, logits_to_keep=1)
        tokens = [encode(f" {q.strip()}", add_special_tokens=False)["input_ids"] for q in queries]
        widths = torch.tensor([max(len(t), 1) for t in tokens], device=self._device)
        width = int(widths.max())
        padded = torch.tensor([t + [0] * (width - len(t)) for t in tokens], device=self._device)
        cache = read.past_key_values
        cache.batch_repeat_interleave(len(queries))
        # Padding stands on the right, so a causal model never looks at it.
        after = self._model(input_ids=padded, past_key_values=cache, use_cache=True).logits
        first = read.logits[:, -1:].expand(len(queries), -1, -1)
        logits = torch.cat((first, after[:, :-1]), dim=1).float()
        chosen = torch.log_softmax(logits, dim=-1).gather(2, padded[:, :, None])[:, :, 0]
        real = torch.arange(width, device=self._device)[None, :] < widths[:, None]
        mean = (chosen * real).sum(dim=1) / widths
        return np.asarray(mean.cpu().numpy(), dtype=np.float32)
