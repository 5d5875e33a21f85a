"""What judging will cost, and stopping before it costs more."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_sourcebias.judges import LLMJudge
from rag_sourcebias.llm import CompletionCache, Prices
from rag_sourcebias.llm.cache import request_key
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.completions import Completion, CompletionError, LabelScores, Request
from rag_sourcebias.types.judgments import JudgeItem

__all__ = ["Estimate", "MeteredCompleter", "estimate"]

_CHARS_PER_TOKEN = 4.0  # of English; other languages have fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run would ask.

    Parameters
    ----------
    requests : int
        Different requests.
    cached : int
        Of these, answered already.
    prompt_tokens, completion_tokens : int
        Of the rest: characters / 4, and the most that may be written.
    cost : float or None
    """

    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def estimate(
    judge: LLMJudge,
    items: Sequence[JudgeItem],
    *,
    cache: CompletionCache,
    prices: Prices | None,
    prompts_per_request: int = 1,
) -> Estimate:
    """Count the requests of a run and estimate their cost; nothing is asked.

    Parameters
    ----------
    prompts_per_request : int
        Times a prompt is sent for one scoring request: once per label where a server echoes.
    """
    fingerprint = judge.completer.fingerprint
    found: dict[bytes, Request] = {}
    for item in items:
        for request in judge.requests(item):
            found[request_key(fingerprint, request)] = request
    known = cache.get(list(found))
    new = [request for key, request in found.items() if key not in known]
    sent = [prompts_per_request if request.labels else 1 for request in new]
    chars = sum(len(r.prompt) * n for r, n in zip(new, sent, strict=True))
    prompt_tokens = round(chars / _CHARS_PER_TOKEN)
    written = sum(n if r.labels else r.max_tokens for r, n in zip(new, sent, strict=True))
    return Estimate(
        requests=len(found),
        cached=len(known),
        prompt_tokens=prompt_tokens,
        completion_tokens=written,
        cost=None
        if prices is None
        else prices.cost(prompt_tokens=prompt_tokens, completion_tokens=written),
    )


class MeteredCompleter:
    """A completer that asks nothing more once its answers have cost too much.

    Parameters
    ----------
    inner : Completer
    prices : Prices
    most : float
        Answers that were on their way when it was reached are still paid for.
    """

    def __init__(self, inner: Completer, prices: Prices, most: float) -> None:
        self.name = inner.name
        self.max_concurrency = inner.max_concurrency
        self._inner = inner
        self._prices = prices
        self._most = most
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Identity of the model; the limit changes no answer."""
        return self._inner.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the model."""
        return self._inner.settings

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer, unless the money is spent."""
        self._check()
        answer = self._inner.complete(
            prompt, max_tokens=max_tokens, temperature=temperature, seed=seed
        )
        self._add(answer)
        return answer

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Score labels, unless the money is spent."""
        self._check()
        scores = self._inner.label_logprobs(prompt, labels)
        self._add(scores)
        return scores

    def _check(self) -> None:
        if self._spent >= self._most:
            raise CompletionError(
                f"--max-cost {self._most:g} {self._prices.currency} is spent "
                f"({self._spent:.4g}); raise it and run the same command to go on",
                reason="not_asked",
                fatal=True,
            )

    def _add(self, answer: Completion | LabelScores) -> None:
        cost = self._prices.cost(
            prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens
        )
        with self._lock:
            self._spent += cost
