"""Real models of LangChain and LlamaIndex that speak to a chat server; they retry by themselves."""

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

from pydantic import SecretStr

__all__ = ["posted", "served_chat_model", "served_llm"]


def posted(model: Any, prompt: str) -> dict:
    """Ask as the fields of a model say, as often as its ``max_retries`` says."""
    body = {
        "model": model.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": model.max_tokens,
        "temperature": model.temperature,
        "seed": model.seed,
    }
    if getattr(model, "logprobs", None):
        body |= {"logprobs": True, "top_logprobs": model.top_logprobs}
    request = urllib.request.Request(
        f"{model.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "content-type": "application/json",
            "authorization": f"Bearer {model.api_key.get_secret_value()}",
        },
    )
    for attempt in range(model.max_retries + 1):
        try:
            with urllib.request.urlopen(request, timeout=model.timeout) as response:
                return json.loads(response.read())
        except OSError as error:
            if isinstance(error, HTTPError):
                error.close()
            if attempt == model.max_retries:
                raise
    raise AssertionError


def served_chat_model(url: str, **fields: Any) -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class ServedChat(BaseChatModel):
        model: str = "faulty"
        base_url: str
        api_key: SecretStr = SecretStr("sk-secret")
        temperature: float | None = None
        max_tokens: int | None = None
        seed: int | None = None
        timeout: float = 0.3
        max_retries: int = 2
        logprobs: bool | None = None
        top_logprobs: int | None = None

        @property
        def _llm_type(self) -> str:
            return "served"

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            body = posted(self, messages[-1].content)
            choice = body["choices"][0]
            usage = body["usage"]
            message = AIMessage(
                choice["message"]["content"] or "",
                response_metadata={
                    "finish_reason": choice["finish_reason"],
                    "logprobs": choice.get("logprobs"),
                },
                usage_metadata={
                    "input_tokens": usage["prompt_tokens"],
                    "output_tokens": usage["completion_tokens"],
                    "total_tokens": usage["total_tokens"],
                },
            )
            return ChatResult(generations=[ChatGeneration(message=message)])

    return ServedChat(base_url=url, **fields)


def served_llm(url: str, **fields: Any) -> Any:
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback

    class ServedLLM(CustomLLM):
        model: str = "faulty"
        base_url: str
        api_key: SecretStr = SecretStr("sk-secret")
        temperature: float = 0.1
        max_tokens: int | None = None
        seed: int | None = None
        timeout: float = 0.3
        max_retries: int = 2
        logprobs: bool | None = None
        top_logprobs: int = 0

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name=self.model)

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any):
            body = posted(self, prompt)
            text = body["choices"][0]["message"]["content"] or ""
            return CompletionResponse(text=text, raw=body)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any):
            yield self.complete(prompt, formatted=formatted)

    return ServedLLM(base_url=url, **fields)
