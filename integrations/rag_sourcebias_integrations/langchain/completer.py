"""A LangChain chat model or LLM as a completer of this library."""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.base import RunnableBindingBase

from rag_sourcebias.core.completions import Completion
from rag_sourcebias_integrations._require import require_kind
from rag_sourcebias_integrations.models import ModelCompleter, counts_of, finish_of


class LangChainCompleter(ModelCompleter):
    """Let a LangChain model write rewrites, or judge.

    The prompt is one human message for a chat model, and the bare text for an LLM. The model that
    is given is not changed, its callbacks are called as for any other call, and LangChain's cache
    is not used. A request that fails is made again by the model itself, as often as it is set to
    (``max_retries``), and then by this library.

    Parameters
    ----------
    model : BaseChatModel or BaseLLM
        Or what ``bind``, ``with_config`` or ``with_retry`` made of one.
    name : str, optional
        Name in reports and source tags; the model's by default.
    max_concurrency : int
        Calls that may run at once, from as many threads.
    parameters : mapping, optional
        Where ``max_tokens``, ``temperature`` and ``seed`` go, if not to fields of these names: a
        field, ``"field.key"`` (``"model_kwargs.seed"``), an argument of the call
        (``"call.temperature"``), or None to leave it to the model. A model without a seed is not
        told any.

    Raises
    ------
    DataError
        If it is no such model, or takes no limit on tokens or no temperature.

    Examples
    --------
    ::

        from langchain_openai import ChatOpenAI
        completer = LangChainCompleter(ChatOpenAI(model="gpt-4o-mini"), max_concurrency=16)
        build_paired_corpus("my-corpus", completer, "paired")
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        *,
        name: str | None = None,
        max_concurrency: int = 8,
        parameters: Mapping[str, str | None] | None = None,
    ) -> None:
        inner = model
        bound: dict[str, Any] = {}
        config: dict[str, Any] = {}
        while isinstance(inner, RunnableBindingBase):
            bound = {**inner.kwargs, **bound}
            config = {**inner.config, **config}
            inner = inner.bound
        require_kind(
            inner,
            BaseChatModel | BaseLLM,
            "LangChain model; expected a chat model or an LLM, as it is or bound (a chain writes "
            "other things than text)",
        )
        self._bound = bound
        self._config = config
        super().__init__(
            inner,
            getattr(inner, "_call", inner._generate)
            if isinstance(inner, BaseLLM)
            else inner._generate,
            name=name,
            max_concurrency=max_concurrency,
            parameters=parameters,
            more={"bound": bound} if bound else None,
        )
        # The application's cache knows no samples where a model takes no seed: it would give the
        # same answer to each.
        self._model = self._model.model_copy(update={"cache": False})

    def _answer(self, model: Any, prompt: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        arguments = {**self._bound, **arguments}
        if isinstance(model, BaseChatModel):
            return model.invoke([HumanMessage(prompt)], self._config or None, **arguments)
        # invoke returns the text alone: neither why it ended nor what it cost.
        watch = {key: self._config.get(key) for key in ("callbacks", "tags", "metadata")}
        result = model.generate([prompt], **watch, **arguments)
        generation = result.generations[0][0]
        told = {**(result.llm_output or {}), **(generation.generation_info or {})}
        return AIMessage(generation.text, response_metadata=told)

    def _text(self, answer: AIMessage) -> Completion:
        finish = finish_of(answer.response_metadata)
        text = str(answer.text)  # without thoughts and calls of tools
        refusal = answer.additional_kwargs.get("refusal")
        if isinstance(refusal, str) and refusal:
            text = refusal
            finish = "refusal"
        return Completion(text=text, finish_reason=finish, **self._counts(answer))

    def _choice(self, answer: AIMessage) -> dict[str, Any]:
        return dict(answer.response_metadata)

    def _counts(self, answer: AIMessage) -> dict[str, Any]:
        told = answer.response_metadata
        return counts_of(answer.usage_metadata, told.get("token_usage"), told.get("usage"), told)
