"""Language models behind a server with OpenAI's HTTP interface."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.io.addresses import Address, address_of
from rag_sourcebias.llm import openai_answers as answers
from rag_sourcebias.llm.openai_errors import completion_error
from rag_sourcebias.llm.openai_http import OpenAIHttp
from rag_sourcebias.types.completions import Completion, CompletionError, LabelScores

__all__ = ["Api", "OpenAICompleter"]

Api = Literal["chat", "completions"]

_logger = logging.getLogger("rag_sourcebias.llm")
_OFFICIAL = "https://api.openai.com/v1"


class OpenAICompleter:
    """A model served by OpenAI or by any server with the same interface.

    Text comes from ``/v1/chat/completions`` (the prompt as one user message) or from
    ``/v1/completions`` (the prompt as it is). Label log-probabilities come

    - with ``api="completions"`` and ``scoring="echo"`` from the log-probabilities of the echoed
      prompt and label, exact for every label, one request per label; this is the scoring of [R].
      Servers whose echoed numbers are shifted by a token (llama-cpp-python 0.3) are recognised
      and refused;
    - with ``scoring="top"`` from the most likely first tokens of the answer, as many as
      ``top_logprobs``; a label that is not among them gets the smallest log-probability that
      was reported, and is counted.

    Parameters
    ----------
    model : str
    base_url : str, optional
        Such as ``http://localhost:8000/v1``; OpenAI's own by default. A user and password in it
        (``https://user:password@…``) are sent in place of the key, and are shown and stored
        nowhere.
    api_key : str, optional
        The environment variable ``OPENAI_API_KEY`` by default; a server of one's own needs none.
    api : {"chat", "completions"}
    scoring : {"top", "echo"}, optional
        ``"top"`` for chat, ``"echo"`` for completions by default.
    top_logprobs : int
        Alternatives to ask for; 20 by default, 5 for OpenAI's own completions (its limits).
    timeout : float
        Seconds without a byte from the server after which a request has failed.
    max_concurrency : int
        Requests that may be in flight at once.
    extra : mapping, optional
        More fields of the request body, as they are (``top_p``, ``chat_template_kwargs``, …).
    name : str, optional
        Name in reports; the model's by default.

    Raises
    ------
    DataError
        If an option is out of range, base_url is no address or has a query, or there is neither a
        key nor a server of one's own.
    MissingExtraError
        If openai is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api: Api = "chat",
        scoring: Literal["top", "echo"] | None = None,
        top_logprobs: int | None = None,
        timeout: float = 60.0,
        max_concurrency: int = 8,
        extra: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        if api not in ("chat", "completions"):
            raise DataError(f"api {api!r} is not one of chat, completions")
        scoring = scoring or ("top" if api == "chat" else "echo")
        if scoring not in ("top", "echo") or (api, scoring) == ("chat", "echo"):
            raise DataError(
                f"scoring {scoring!r} with api {api!r}: there are top (both) and echo (completions)"
            )
        if top_logprobs is None:
            top_logprobs = 5 if api == "completions" and base_url is None else 20
        if top_logprobs < 1 or max_concurrency < 1 or not timeout > 0:
            raise DataError(
                f"top_logprobs {top_logprobs}, max_concurrency {max_concurrency} and timeout "
                f"{timeout} must be positive"
            )
        self.model = model
        self.name = name or model
        self._address = _address(base_url or _OFFICIAL)
        self.base_url = self._address.url
        self.max_concurrency = max_concurrency
        self._official = base_url is None
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or ""
        if self._official and not self._key:
            raise DataError(
                f"model {model!r} at OpenAI needs a key: set OPENAI_API_KEY or pass api_key, or "
                "pass base_url for a server of your own"
            )
        self._api: Api = api
        self._scoring = scoring
        self._top = top_logprobs
        self._timeout = timeout
        self._extra = dict(extra or {})
        self._openai = _import_openai(f"model {model!r} behind an OpenAI-compatible server")

    def __repr__(self) -> str:
        return f"OpenAICompleter({self.model!r}, base_url={self.base_url!r}, api={self._api!r})"

    @property
    def fingerprint(self) -> str:
        """Identity of server, model and of every setting that changes the answers."""
        extra = json.dumps(self._extra, sort_keys=True, default=str)
        return (
            f"openai-1:{self.base_url}:{self.model}:{self._api}:{self._scoring}:{self._top}:{extra}"
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.model,
            "server": self.base_url,
            "interface": self._api,
            "label scores": (
                "echoed prompt and label"
                if self._scoring == "echo"
                else f"{self._top} most likely tokens of the answer"
            ),
            **{key: str(value) for key, value in self._extra.items()},
        }

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer to one prompt.

        Raises
        ------
        CompletionError
            If the server fails, refuses the request or answers with something else.
        """
        fields = {"temperature": temperature, "seed": seed}
        if self._api == "chat":
            return answers.chat_text(self._chat(prompt, max_tokens, fields))
        return answers.plain_text(self._plain(prompt, {**fields, "max_tokens": max_tokens}))

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the continuation of one prompt.

        Raises
        ------
        CompletionError
            If the server fails, reports no log-probabilities, or none of a label.
        """
        if self._scoring == "echo":
            return answers.joined([self._echo(prompt, label) for label in labels])
        length = max(len(label.strip()) for label in labels)
        fields: dict[str, Any] = {"temperature": 0.0}
        if self._api == "chat":
            fields |= {"logprobs": True, "top_logprobs": self._top}
            return answers.chat_labels(self._chat(prompt, length, fields), labels)
        fields |= {"logprobs": self._top, "max_tokens": length}
        return answers.plain_labels(self._plain(prompt, fields), labels)

    def _echo(self, prompt: str, label: str) -> LabelScores:
        # One token is written behind the label: it shows whether the numbers are in their places.
        fields = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0.0}
        return answers.echoed(self._plain(prompt + label, fields), prompt, label)

    def _chat(self, prompt: str, max_tokens: int, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401
        # OpenAI's newer models know only the new name of the limit, other servers only the old.
        limit = "max_completion_tokens" if self._official else "max_tokens"
        message = {"role": "user", "content": prompt}
        body = {**fields, limit: max_tokens}
        return self._send("/chat/completions", {"messages": [message], **body})

    def _plain(self, prompt: str, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401
        return self._send("/completions", {"prompt": prompt, **fields})

    def _send(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401
        try:
            text = self._http.post(path, {"model": self.model, **body, **self._extra})
        except self._openai.OpenAIError as error:
            raise completion_error(error, self._openai, self._address, key=self._key) from error
        except UnicodeEncodeError as error:  # half a surrogate pair, as scraped text may hold
            raise CompletionError(
                f"the text cannot be sent ({error})", reason="rejected"
            ) from error
        return answers.parsed(text)

    @cached_property
    def _http(self) -> OpenAIHttp:
        if self._address.exposed and (self._key or self._address.authorization):
            _logger.warning(
                "the key for %s is sent unencrypted and can be read on its way: use https, reach "
                "the server through localhost (ssh -L), or unset OPENAI_API_KEY if it needs none",
                self.base_url,
            )
        return OpenAIHttp(
            self._openai,
            key=self._key or "none",
            address=self._address,
            timeout=self._timeout,
            connections=self.max_concurrency,
        )


def _address(base_url: str) -> Address:
    address = address_of(base_url, "base_url")
    if address.query:
        raise DataError(
            f"base_url {address.url} has a query (?…), which this interface cannot send; give the "
            "key as OPENAI_API_KEY or api_key"
        )
    return address._replace(url=address.url.rstrip("/"))


def _import_openai(feature: str) -> Any:  # noqa: ANN401 - an untyped module
    try:
        import openai
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise MissingExtraError(package="openai", extra="openai", feature=feature) from error
    return openai
