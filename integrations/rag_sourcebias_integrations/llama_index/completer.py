"""A LlamaIndex LLM as a completer of this library."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.llms import LLM
from pydantic_core import to_jsonable_python

from rag_sourcebias.core.completions import Completion
from rag_sourcebias.intake.results import at
from rag_sourcebias_integrations._require import require_kind
from rag_sourcebias_integrations.models import ModelCompleter, counts_of, finish_of, name_of


class LlamaIndexCompleter(ModelCompleter):
    """Let a LlamaIndex LLM write rewrites, or judge.

    The prompt is one user message where the LLM's metadata call it a chat model, and goes to
    ``complete`` otherwise. The LLM that is given is not changed, and its callbacks are called as
    for any other call. A request that fails is made again by the LLM itself, as often as it is set
    to (``max_retries``), and then by this library.

    Parameters
    ----------
    llm : LLM
    name : str, optional
        Name in reports and source tags; the model's by default.
    max_concurrency : int
        Calls that may run at once, from as many threads.
    parameters : mapping, optional
        Where ``max_tokens``, ``temperature`` and ``seed`` go, if not to fields of these names: a
        field, ``"field.key"`` (``"additional_kwargs.seed"``, ``"generate_kwargs.temperature"``), an
        argument of the call (``"call.temperature"``), or None to leave it to the model. An LLM
        without a seed is not told any.

    Raises
    ------
    DataError
        If it is no LLM, or takes no limit on tokens or no temperature.
    """

    def __init__(
        self,
        llm: Any,  # noqa: ANN401
        *,
        name: str | None = None,
        max_concurrency: int = 8,
        parameters: Mapping[str, str | None] | None = None,
    ) -> None:
        require_kind(llm, LLM, "LlamaIndex LLM; expected one such as Settings.llm")
        told = llm.metadata
        self._chat = bool(told.is_chat_model)
        otherwise = "" if told.model_name == "unknown" else told.model_name
        super().__init__(
            llm,
            llm.chat if self._chat else llm.complete,
            name=name or name_of(llm, otherwise),
            max_concurrency=max_concurrency,
            parameters=parameters,
            more={"metadata_model": otherwise} if otherwise else None,
        )

    def _answer(self, model: Any, prompt: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        if self._chat:
            return model.chat([ChatMessage(role="user", content=prompt)], **arguments)
        return model.complete(prompt, **arguments)

    def _text(self, answer: ChatResponse | CompletionResponse) -> Completion:
        text = answer.message.content if isinstance(answer, ChatResponse) else answer.text
        raw = _raw(answer)
        choice = _first_choice(raw)
        finish = finish_of(choice, raw, answer.additional_kwargs)
        refusal = at(choice, "message.refusal")
        if isinstance(refusal, str) and refusal:
            text = refusal
            finish = "refusal"
        return Completion(text=text or "", finish_reason=finish, **self._counts(answer))

    def _choice(self, answer: ChatResponse | CompletionResponse) -> dict[str, Any]:
        choice = _first_choice(_raw(answer))
        if isinstance(choice.get("logprobs"), dict) or not answer.logprobs:
            return choice
        # LlamaIndex lists the alternatives of each token; which was written is the likeliest.
        told = (
            [{"token": one.token, "logprob": one.logprob} for one in options]
            for options in answer.logprobs
        )
        rows = [
            {**max(options, key=lambda o: o["logprob"]), "top_logprobs": options}
            for options in told
            if options
        ]
        return {**choice, "logprobs": {"content": rows}}

    def _counts(self, answer: ChatResponse | CompletionResponse) -> dict[str, Any]:
        raw = _raw(answer)
        return counts_of(raw.get("usage"), answer.additional_kwargs, raw.get("usage_metadata"), raw)


def _raw(answer: ChatResponse | CompletionResponse) -> dict[str, Any]:
    """Return the body that the provider answered with, as far as the framework kept it."""
    found = to_jsonable_python(answer.raw, serialize_unknown=True)
    return found if isinstance(found, dict) else {}


def _first_choice(raw: Mapping[str, Any]) -> dict[str, Any]:
    found = at(raw, "choices.0")
    return found if isinstance(found, dict) else {}
