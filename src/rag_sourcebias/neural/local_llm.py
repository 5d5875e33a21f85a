"""A causal language model of transformers, in this process, as a completer."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.causal import CausalScorer
from rag_sourcebias.neural.causal_model import CausalModel
from rag_sourcebias.neural.loading import Dtype, library_versions, pick_device, require_torch
from rag_sourcebias.types.completions import Completion, CompletionError, LabelScores

__all__ = ["LocalCompleter"]


class LocalCompleter:
    """Continue prompts with a local causal language model.

    Label log-probabilities are exact: log P(label | prompt) = Σ_t log P(label_t | prompt,
    label_<t), all labels of a prompt in one forward pass where the architecture allows it. Prompt
    and label are tokenized together; when a token spans both, it counts as part of the label.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` (packaged), the folder of a causal language model, or a hub name.
    chat : bool
        Put the prompt into the model's chat template, as one user message; otherwise the model
        continues the bare prompt, as in [R].
    dtype : {"float32", "bfloat16"}
        bfloat16 is faster where the processor supports it and moves log-probabilities by up to
        about 0.05.
    device : str, optional
        CUDA if there is any, else the CPU, by default.
    cache : Path, optional
        Folder in which the packaged model is converted once; ``models`` in the library's cache
        folder by default.
    name : str, optional
        Name in reports; ``"local:<model>"`` by default.

    Raises
    ------
    DataError
        If the model cannot be found.
    MissingExtraError
        If sentence-transformers (which brings transformers and torch) is not installed.
    """

    max_concurrency = 1  # one forward pass uses all cores already

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        chat: bool = False,
        dtype: Dtype = "float32",
        device: str | None = None,
        cache: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        require_torch(f"local language model {str(model)!r}")
        self._causal = CausalModel(model, dtype=dtype, device=device, cache=cache)
        self.name = name or f"local:{self._causal.name}"
        self.chat = chat
        self.dtype = self._causal.dtype
        self.device = device
        self._lock = threading.Lock()

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its answers."""
        identity = self._causal.identity
        return f"local-1:{identity}:{self.chat}:{self.dtype}:{self.device or 'auto'}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._causal.described,
            "prompt as": "chat message" if self.chat else "bare text",
            "label scores": "exact log-probabilities",
            "dtype": self.dtype,
            "device": pick_device(self.device),
            **library_versions(),
        }

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the continuation of one prompt.

        Raises
        ------
        CompletionError
            If the prompt is longer than the model can read.
        """
        with self._lock:
            text = self._text(prompt)
            whole = [self._scorer.tokens(text + label) for label in labels]
            shared = _shared_length([self._scorer.tokens(text), *whole])
            ids = [*self._scorer.start, *whole[0][:shared]]
            if not ids:
                raise CompletionError("the prompt is empty", reason="rejected")
            continuations = [tokens[shared:] for tokens in whole]
            lengths = np.array([len(tokens) for tokens in continuations])
            self._check_length(len(ids) + int(lengths.max()))
            means = self._scorer.score(ids, continuations).astype(np.float64)
        return LabelScores(logprobs=tuple((means * lengths).tolist()), prompt_tokens=len(ids))

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer to one prompt; the same seed gives the same answer.

        Raises
        ------
        CompletionError
            If the prompt is longer than the model can read.
        """
        with self._lock:
            ids = [*self._scorer.start, *self._scorer.tokens(self._text(prompt))]
            if not ids:
                raise CompletionError("the prompt is empty", reason="rejected")
            self._check_length(len(ids) + max_tokens)
            written = self._generate(ids, max_tokens, temperature, seed)
        stops = self._stops
        ended = bool(written) and written[-1] in stops
        text = self._tokenizer.decode(written, skip_special_tokens=True)
        return Completion(
            text=text,
            finish_reason="stop" if ended else "length",
            prompt_tokens=len(ids),
            completion_tokens=len(written),
        )

    def _generate(
        self, ids: list[int], max_tokens: int, temperature: float, seed: int
    ) -> list[int]:
        import torch
        from transformers import GenerationConfig

        stops = sorted(self._stops)
        config = GenerationConfig(
            max_new_tokens=max_tokens,
            do_sample=temperature > 0,
            eos_token_id=stops or None,
            pad_token_id=stops[0] if stops else 0,
            # The whole distribution is sampled, not the 50 likeliest tokens of the default.
            **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
        )
        tokens = torch.tensor([ids], device=self._model.device)
        devices = [self._model.device] if self._model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            output = self._model.generate(
                tokens, attention_mask=torch.ones_like(tokens), generation_config=config
            )
        written: list[int] = output[0, len(ids) :].tolist()
        return written

    def _text(self, prompt: str) -> str:
        if not self.chat:
            return prompt
        if not getattr(self._tokenizer, "chat_template", None):
            raise DataError(f"model {self.name!r} has no chat template; use chat=False")
        text: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        return text

    def _check_length(self, n_tokens: int) -> None:
        longest = getattr(self._model.config, "max_position_embeddings", None)
        if longest is not None and n_tokens > longest:
            raise CompletionError(
                f"prompt and answer have {n_tokens} tokens, {self.name} reads {longest}; cut the "
                "text (max_chars)",
                reason="rejected",
            )

    @cached_property
    def _stops(self) -> frozenset[int]:
        ends = self._model.generation_config.eos_token_id
        found = ends if isinstance(ends, list) else [ends]
        return frozenset(e for e in (*found, self._tokenizer.eos_token_id) if e is not None)

    @property
    def _model(self) -> Any:  # noqa: ANN401 - a model of transformers
        return self._scorer._model

    @property
    def _tokenizer(self) -> Any:  # noqa: ANN401
        return self._scorer._tokenizer

    @property
    def _scorer(self) -> CausalScorer:
        return self._causal.scorer


def _shared_length(rows: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all rows begin with."""
    length = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        length += 1
    return length
