"""What asking a model will cost, and stopping before it costs more."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from rag_sourcebias.core.completions import Completion, CompletionError, LabelScores, Request
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.llm.ask import CompletionCache, Prices, request_key

_CHARS_PER_TOKEN = 4.0  # of English; other languages have fewer


class Estimate(NamedTuple):
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
    fingerprint: str,
    requests: Iterable[Request],
    *,
    cache: CompletionCache,
    prices: Prices | None,
) -> Estimate:
    """Count the requests of a run and estimate their cost; nothing is asked.

    Parameters
    ----------
    fingerprint : str
        Of the model.
    """
    found = {request_key(fingerprint, request): request for request in requests}
    known = cache.get(list(found))
    new = [request for key, request in found.items() if key not in known]
    prompt_tokens = round(sum(len(request.prompt) for request in new) / _CHARS_PER_TOKEN)
    written = sum(1 if request.labels else request.max_tokens for request in new)
    return Estimate(
        requests=len(found),
        cached=len(known),
        prompt_tokens=prompt_tokens,
        completion_tokens=written,
        cost=None
        if prices is None
        else prices.cost(prompt_tokens=prompt_tokens, completion_tokens=written),
    )


AnswerT = TypeVar("AnswerT", Completion, LabelScores)


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
        ask = self._inner.complete
        return self._paid(
            partial(ask, prompt, max_tokens=max_tokens, temperature=temperature, seed=seed)
        )

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Score labels, unless the money is spent."""
        return self._paid(partial(self._inner.label_logprobs, prompt, labels))

    def _paid(self, ask: Callable[[], AnswerT]) -> AnswerT:
        if self._spent >= self._most:
            raise CompletionError(
                f"--max-cost {self._most:g} {self._prices.currency} is spent "
                f"({self._spent:.4g}); raise it and run the same command to go on",
                reason="not_asked",
                fatal=True,
            )
        answer = ask()
        with self._lock:
            self._spent += self._prices.cost(
                prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens
            )
        return answer
