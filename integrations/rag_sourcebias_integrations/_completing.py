"""What the completers of all frameworks share: one request to a model, observed by nobody."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import suppress
from rag_sourcebias.llm.openai_answers import chat_labels
from rag_sourcebias.types.completions import Completion, LabelScores
from rag_sourcebias_integrations._model_errors import no_logprobs, request_error
from rag_sourcebias_integrations._model_identity import identity_of, name_of, settings_text
from rag_sourcebias_integrations._model_settings import once_copy, routes_of, with_values

__all__ = ["ModelCompleter", "counts_of", "finish_of"]

_MOST_COPIES = 64
_TOP = 20  # the most alternatives that OpenAI reports
_STOPPED = ("end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token", "finish")
_CUT = ("max_tokens", "max_length", "max_output_tokens", "model_length")
_FILTERED = ("safety", "blocklist", "prohibited_content", "spii", "recitation", "content_filtered")
_FINISH = (
    dict.fromkeys(_STOPPED, "stop")
    | dict.fromkeys(_CUT, "length")
    | dict.fromkeys((*_FILTERED, "guardrail_intervened"), "content_filter")
)
_COUNTS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "prompt_eval_count", "prompt_token_count"),
    "completion_tokens": (
        *("completion_tokens", "output_tokens", "eval_count", "candidates_token_count"),
    ),
}


class ModelCompleter(ABC):
    """A completer over a framework's model; a subclass says how it is called and read.

    Parameters
    ----------
    model : pydantic model
    call : callable
        The model's method that answers.
    name : str, optional
    max_concurrency : int
    parameters : mapping, optional
        Routes of settings, as :func:`~._model_settings.routes_of` takes them.
    more : mapping, optional
        Further settings that change answers.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        call: Callable[..., Any],
        *,
        name: str | None,
        max_concurrency: int,
        parameters: Mapping[str, str | None] | None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        if max_concurrency < 1:
            raise DataError(f"max_concurrency must be at least 1, got {max_concurrency}")
        self.max_concurrency = max_concurrency
        self.name = name or name_of(model)
        self._routes = routes_of(model, call, chosen=parameters)
        self._model, self._once = once_copy(model)
        fields = [route for route in self._routes.values() if route and "." not in route]
        self._identity = identity_of(model, leave_out=fields, more=more)
        self._copies: dict[tuple[tuple[str, Any], ...], tuple[Any, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Identity of the model and of every setting that changes its answers; no keys."""
        routes = {key: route for key, route in self._routes.items() if route is None}
        return f"{type(self).__name__}-1:{json.dumps([self._identity, routes], sort_keys=True)}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        left = [setting for setting, route in self._routes.items() if route is None]
        told = {"model": self.name, **settings_text(self._identity)}
        told["retries of the framework"] = "off" if self._once else "its own, if it has any"
        return told | ({"not told to the model": ", ".join(left)} if left else {})

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer to one prompt.

        Raises
        ------
        CompletionError
            If the model fails, refuses the request or answers with something else.
        """
        values = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        return self._text(self._asked(prompt, values, {}))

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the beginning of the answer.

        Read from the likeliest tokens that OpenAI-like models report; a label that is not among
        them gets the smallest log-probability reported, and is counted.

        Raises
        ------
        CompletionError
            If the model fails or gives no log-probabilities.
        """
        fields = type(self._model).model_fields
        if not {"logprobs", "top_logprobs"} <= set(fields):
            raise no_logprobs(self._model)
        values = {"max_tokens": max(len(label.strip()) for label in labels), "temperature": 0.0}
        answer = self._asked(prompt, values, {"logprobs": True, "top_logprobs": _TOP})
        choice = self._choice(answer)
        if not isinstance(choice.get("logprobs"), dict):
            raise no_logprobs(self._model)
        return chat_labels({"choices": [choice], "usage": self._counts(answer)}, labels)

    def _asked(self, prompt: str, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:  # noqa: ANN401
        model, arguments = self._told(values, extra)
        try:
            with suppress():
                return self._answer(model, prompt, arguments)
        except Exception as error:
            told = request_error(error, model)
            if told is None:
                raise
            raise told from error

    def _told(
        self, values: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the model that was told; the same one for the same settings."""
        key = (*values.items(), *extra.items())
        with self._lock:
            found = self._copies.get(key)
            if found is None:
                routes = {**self._routes, **{field: field for field in extra}}
                found = with_values(self._model, routes, {**values, **extra})
                if len(self._copies) >= _MOST_COPIES:
                    self._copies.clear()
                self._copies[key] = found
        return found

    @abstractmethod
    def _answer(self, model: Any, prompt: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        """Ask once and return the framework's answer."""

    @abstractmethod
    def _text(self, answer: Any) -> Completion:  # noqa: ANN401
        """Read the text."""

    @abstractmethod
    def _choice(self, answer: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the choice of the answer as OpenAI's chat interface has it."""

    @abstractmethod
    def _counts(self, answer: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the counts of tokens."""


def finish_of(*reports: Any) -> str:  # noqa: ANN401
    """Return why an answer ended, in OpenAI's words, from whatever the provider reports."""
    names = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")
    for report in reports:
        for name in names:
            value = report.get(name) if isinstance(report, Mapping) else None
            value = getattr(value, "name", value)  # an enumeration of Google's
            if isinstance(value, str) and value:
                return _FINISH.get(value.lower(), value.lower())
    return "stop"


def counts_of(*reports: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the tokens read and written, from the first report that tells; 0 where none does."""
    found = dict.fromkeys(_COUNTS, 0)
    for report in reports:
        if not isinstance(report, Mapping):
            continue
        for name, others in _COUNTS.items():
            values = [report[other] for other in others if type(report.get(other)) is int]
            found[name] = found[name] or (values[0] if values else 0)
    return found
