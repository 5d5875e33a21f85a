"""Reranking by the likelihood of the query given the passage, under a causal language model."""

import inspect
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.completions import Completion, CompletionError, LabelScores
from rag_sourcebias.core.data import Float32Array
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.neural.loading import (
    SMOLLM2,
    Dtype,
    ModelFolder,
    checked_dtype,
    computed_with,
    fast_dtype,
    find_model,
    load_language_model,
    require_torch,
    smollm2_folder,
)

# Log-probabilities of continuations under a causal language model, many in one pass.


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
        self.model = model
        self.tokenizer = tokenizer
        bos = tokenizer.bos_token_id
        adds_bos = bos is not None and (tokenizer("a").input_ids or [None])[0] == bos
        self.start: tuple[int, ...] = (bos,) if adds_bos else ()
        self.packs = self._packing_works(_TOLERANCE[dtype])

    @property
    def longest(self) -> int | None:
        """Tokens that the model was trained to read at once, if it says so."""
        longest: int | None = getattr(self.model.config, "max_position_embeddings", None)
        return longest

    def tokens(self, text: str) -> list[int]:
        """Tokenize without adding special tokens."""
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def score(self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> Float32Array:
        """Return the mean log-probability of each continuation; shape ``(len(continuations),)``.

        NaN for a continuation without tokens.
        """
        together = self.packs and len(continuations) > 1
        return (self.score_packed if together else self.score_singly)(prompt, continuations)

    def score_singly(
        self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> Float32Array:
        """Score with one ordinary forward pass per continuation."""
        import torch

        scores = np.full(len(continuations), np.nan, np.float32)
        for row, tokens in enumerate(continuations):
            if not tokens:
                continue
            ids = torch.tensor([[*prompt, *tokens]], device=self.model.device)
            with torch.inference_mode():
                logits = self.model(input_ids=ids, use_cache=False).logits[0, -len(tokens) - 1 : -1]
            scores[row] = float(target_logprobs(logits, ids[0, -len(tokens) :]).mean())
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
        ids = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(sequence) for sequence in sequences], batch_first=True
        ).to(self.model.device)
        first = min(end - count for end, count in zip(ends, counts, strict=True)) - 1
        kept = {}
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            kept["logits_to_keep"] = torch.arange(first, ids.shape[1], device=ids.device)
        sums = np.zeros(len(ends))
        with torch.inference_mode():
            logits = self.model(input_ids=ids, use_cache=False, **kept).logits
            offset = first if kept else 0
            for row, (end, count) in enumerate(zip(ends, counts, strict=True)):
                before = slice(end - count - 1 - offset, end - 1 - offset)
                sums[row] = float(
                    target_logprobs(logits[row, before], ids[row, end - count : end]).double().sum()
                )
        return sums

    def score_packed(
        self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> Float32Array:
        """Score all continuations in one forward pass."""
        import torch

        device, dtype = self.model.device, self.model.dtype
        # A prompt and its continuations in one sequence.
        ids, positions, branches = [*prompt], [*range(len(prompt))], [0] * len(prompt)
        predictors, targets, owners = [], [], []
        for place, tokens in enumerate(continuations):
            previous = len(prompt) - 1
            for step, token in enumerate(tokens):
                predictors.append(previous)
                targets.append(token)
                owners.append(place)
                if step < len(tokens) - 1:  # the last token predicts nothing that is asked for
                    previous = len(ids)
                    ids.append(token)
                    positions.append(len(prompt) + step)
                    branches.append(place + 1)
        branch = torch.tensor(branches, device=device)
        visible = (branch[:, None] == branch[None, :]) | (branch[None, :] == 0)
        mask = torch.zeros(visible.shape, dtype=dtype, device=device)
        mask.masked_fill_(~visible.tril(), torch.finfo(dtype).min)
        with torch.inference_mode():
            logits = self.model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                attention_mask=mask[None, None],
                use_cache=False,
                logits_to_keep=torch.tensor(predictors, device=device),
            ).logits[0]
        chosen = target_logprobs(logits, torch.tensor(targets, device=device))
        owner = np.array(owners, dtype=np.int64)
        total = np.bincount(owner, chosen.double().cpu().numpy(), minlength=len(continuations))
        count = np.bincount(owner, minlength=len(continuations))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)

    def _packing_works(self, tolerance: float) -> bool:
        accepted = inspect.signature(self.model.forward).parameters
        if not {"position_ids", "logits_to_keep", "attention_mask"} <= set(accepted):
            return False
        prompt = [*self.start, *self.tokens("Lemons are yellow and sour. Question:")]
        texts = (" Which colour does a lemon have?", " What", " How sour is the yellow fruit?")
        continuations = [self.tokens(text) for text in texts]
        packed = self.score_packed(prompt, continuations)
        singly = self.score_singly(prompt, continuations)
        return bool(np.allclose(packed, singly, rtol=0, atol=tolerance))


def target_logprobs(logits: Any, targets: Any) -> Any:  # noqa: ANN401 - tensors
    """Return the log-probability of each target; logits (n, vocabulary), targets (n,)."""
    logits = logits.float()
    return logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(-1)


# The causal language model that a user names: found at once, loaded when first used.


class CausalModel:
    """A causal language model by name.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` (packaged), the folder of a causal language model, or a hub name.
    dtype : {"bfloat16", "float32"}, optional
        What the device computes fast by default (:func:`~.loading.fast_dtype`).
    device : str, optional
    cache : Path, optional
        Folder in which the packaged model is converted once.

    Raises
    ------
    DataError
        If the model cannot be found or the dtype is unknown.
    MissingExtraError
        If a hub name is given and the libraries are not installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        dtype: Dtype | None,
        device: str | None,
        cache: str | Path | None,
    ) -> None:
        self.cache = Path(cache) if cache is not None else cache_dir() / "models"
        self._found = None if model == "smollm2" else find_model(model, packaged="smollm2")
        self._dtype = None if dtype is None else checked_dtype(dtype)
        self.device = device
        self.name, self.described = "smollm2", "SmolLM2-135M-Instruct Q4_1"  # in a report
        if self._found is not None:
            self.name = self.described = self._found.name

    @cached_property
    def dtype(self) -> Dtype:
        """What the model computes in."""
        return self._dtype or fast_dtype(self.device)

    @property
    def identity(self) -> str:
        """A string that changes with the model's files."""
        return SMOLLM2.identity if self._found is None else self._found.identity

    @cached_property
    def scorer(self) -> CausalScorer:
        """The loaded model.

        Raises
        ------
        DataError
            If the folder holds no such model.
        """
        folder = self._found or ModelFolder(name="smollm2", path=smollm2_folder(self.cache))
        model, tokenizer, _ = load_language_model(
            folder, "causal", dtype=self.dtype, device=self.device
        )
        return CausalScorer(model, tokenizer, dtype=self.dtype)


# A causal language model of transformers, in this process, as a completer.


class LocalCompleter(CausalModel):
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
        super().__init__(model, dtype=dtype, device=device, cache=cache)
        self.name = name or f"local:{self.name}"
        self.chat = chat
        self._lock = threading.Lock()

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its answers."""
        return f"local-1:{self.identity}:{self.chat}:{self.dtype}:{self.device or 'auto'}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.described,
            "prompt as": "chat message" if self.chat else "bare text",
            "label scores": "exact log-probabilities",
            **computed_with(self.dtype, self.device),
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
            whole = [self.scorer.tokens(text + label) for label in labels]
            columns = zip(self.scorer.tokens(text), *whole, strict=False)
            shared = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
            ids = [*self.scorer.start, *whole[0][:shared]]
            continuations = [tokens[shared:] for tokens in whole]
            lengths = np.array([len(tokens) for tokens in continuations])
            self._check_length(len(ids), int(lengths.max()))
            means = self.scorer.score(ids, continuations).astype(np.float64)
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
            ids = [*self.scorer.start, *self.scorer.tokens(self._text(prompt))]
            self._check_length(len(ids), max_tokens)
            written = self._generate(ids, max_tokens, temperature, seed)
        ended = bool(written) and written[-1] in self._stops
        return Completion(
            text=self.scorer.tokenizer.decode(written, skip_special_tokens=True),
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
        tokens = torch.tensor([ids], device=self.scorer.model.device)
        devices = [self.scorer.model.device] if self.scorer.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            output = self.scorer.model.generate(
                tokens, attention_mask=torch.ones_like(tokens), generation_config=config
            )
        return list(output[0, len(ids) :].tolist())

    def _text(self, prompt: str) -> str:
        if not self.chat:
            return prompt
        if not getattr(self.scorer.tokenizer, "chat_template", None):
            raise DataError(f"model {self.name!r} has no chat template; use chat=False")
        return str(
            self.scorer.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
        )

    def _check_length(self, prompt: int, answer: int) -> None:
        if not prompt:
            raise CompletionError("the prompt is empty", reason="rejected")
        longest = self.scorer.longest
        if longest is not None and prompt + answer > longest:
            raise CompletionError(
                f"prompt and answer have {prompt + answer} tokens, {self.name} reads {longest}; "
                "cut the text (max_chars)",
                reason="rejected",
            )

    @cached_property
    def _stops(self) -> frozenset[int]:
        ends = self.scorer.model.generation_config.eos_token_id
        found = ends if isinstance(ends, list) else [ends]
        return frozenset(e for e in (*found, self.scorer.tokenizer.eos_token_id) if e is not None)


# Reranking by the likelihood of the query given the passage, under a causal language model.


_BEFORE = "Passage:"
_AFTER = "\nPlease write a question based on this passage.\nQuestion:"
_QUERIES_PER_PASS = 32  # their tokens attend to one another's (masked), so cost grows squared


class QueryLikelihoodReranker(CausalModel):
    """Score a pair by the mean log-probability of the query's tokens after the passage.

    score(q, d) = 1/|q| · Σ_t log P(q_t | q_<t, prompt(d)), with the prompt of unsupervised passage
    reranking (Sachan et al., EMNLP 2022, §2.2): the passage followed by "Please write a question
    based on this passage." It needs no relevance-trained model.

    All queries of one passage are scored in one forward pass: they follow the passage side by
    side, each seeing the passage and itself only.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` (packaged), the folder of a causal language model, or a hub name.
    max_length : int
        Tokens after which a passage is cut.
    dtype : {"bfloat16", "float32"}, optional
        By default bfloat16 where the processor or GPU computes in it, else float32. It moves scores
        by less than 0.1 or 3 %.
    device : str, optional
        CUDA if there is any, else the CPU, by default.
    cache : Path, optional
        Folder in which the packaged model is converted once; ``models`` in the library's cache
        folder by default.
    name : str, optional
        Name in reports; ``"ql:<model>"`` by default.

    Raises
    ------
    DataError
        If the model cannot be found.
    MissingExtraError
        If sentence-transformers (which brings transformers and torch) is not installed.
    """

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        max_length: int = 512,
        dtype: Dtype | None = None,
        device: str | None = None,
        cache: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        require_at_least(1, max_length=max_length)
        super().__init__(model, dtype=dtype, device=device, cache=cache)
        self.name = name or f"ql:{self.name}"
        self.max_length = max_length

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its scores."""
        return (
            f"query-likelihood-1:{self.identity}:{self.max_length}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.described,
            "score": "mean log-probability of the query's tokens",
            "prompt": f"{_BEFORE} <passage>{_AFTER}".replace("\n", " "),
            "maximum length": f"{self.max_length} tokens of the passage",
            **computed_with(self.dtype, self.device),
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score (query, text) pairs, in the given order; shape ``(len(pairs),)``, at most 0."""
        entries_of: dict[str, list[int]] = {}
        for entry, (_, text) in enumerate(pairs):
            entries_of.setdefault(text, []).append(entry)
        scores = np.empty(len(pairs), np.float32)
        for text, entries in entries_of.items():
            for start in range(0, len(entries), _QUERIES_PER_PASS):
                part = entries[start : start + _QUERIES_PER_PASS]
                scores[part] = self.scorer.score(
                    self._prompt(text),
                    [self.scorer.tokens(" " + pairs[entry][0]) for entry in part],
                )
        return scores

    def _prompt(self, text: str) -> list[int]:
        tokens = self.scorer.tokens
        passage = tokens(" " + text)[: self.max_length]
        return [*self.scorer.start, *tokens(_BEFORE), *passage, *tokens(_AFTER)]
