"""Language models behind a server with OpenAI's HTTP interface, asked by the openai client."""

import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import numpy as np

from rag_sourcebias.core.addresses import Address, address_of
from rag_sourcebias.core.completions import Completion, CompletionError, FailureReason, LabelScores
from rag_sourcebias.core.errors import DataError, import_extra

# What the status of an HTTP answer means for one request.


_WRONG_FOR_ALL = {
    401: "check the key (OPENAI_API_KEY)",
    402: "check the account's balance",
    403: "check that the key may use this model",
    404: "check base_url (it usually ends in /v1) and the model's name",
    405: "check base_url (it usually ends in /v1)",
}


def status_error(
    status: int, said: str, *, code: str | None = None, retry_after: float | None = None
) -> CompletionError:
    """Return the error to report for a status from 300 on.

    Parameters
    ----------
    status : int
    said : str
        Who answered what, for the message.
    code : str, optional
        OpenAI's code of the error.
    retry_after : float, optional
        Seconds the server asked to wait.
    """
    if status in _WRONG_FOR_ALL:
        return CompletionError(f"{said}; {_WRONG_FOR_ALL[status]}", reason="rejected", fatal=True)
    if status == 429 and code == "insufficient_quota":
        return CompletionError(
            f"{said}; the account has no quota left", reason="rejected", fatal=True
        )
    if status in (408, 409, 425, 429) or status >= 500:
        reasons: dict[int, FailureReason] = {408: "timeout", 429: "rate_limited"}
        return CompletionError(said, reason=reasons.get(status, "server"), retry_after=retry_after)
    if "logprobs" in said:
        return CompletionError(
            f"{said}; this server gives no log-probabilities: use mode votes or verbalised",
            reason="rejected",
            fatal=True,
        )
    return CompletionError(said, reason="rejected")


def retry_after_seconds(header: str | None) -> float | None:
    """Return the seconds a Retry-After header asks to wait (RFC 9110 §10.2.3), None if none.

    Examples
    --------
    >>> retry_after_seconds("2.5"), retry_after_seconds("soon")
    (2.5, None)
    """
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


# From the token alternatives that a server reports to log-probabilities of labels.


#: Tokens the model could have written at one position, with their log-probabilities.
Alternatives = Sequence[tuple[str, float]]


def label_scores_from_tokens(
    labels: Sequence[str], written: Sequence[str], alternatives: Sequence[Alternatives]
) -> tuple[tuple[float, ...], int]:
    """Read the log-probability of each label from the first tokens of an answer.

    The written tokens are followed for as long as they spell the beginning of several labels
    (``[`` of ``[0]`` and ``[1]``). At each position an alternative belongs to a label when it
    completes it or can only be the beginning of it; leading space and case do not matter, and
    several alternatives of one label (``1`` and `` 1``) are added up. A label that no alternative
    belongs to gets the smallest log-probability reported where it would have stood: it cannot be
    larger than that, because servers report the largest.

    Parameters
    ----------
    labels : sequence of str
    written : sequence of str
        Tokens of the answer.
    alternatives : sequence of Alternatives
        For each of them.

    Returns
    -------
    tuple of (tuple of float, int)
        Log-probabilities and how many of them are such bounds; all −inf if no alternative belongs
        to any label. NaN if the server reported NaN for an alternative of the label.
    """
    names = [label.strip().casefold() for label in labels]
    found: dict[int, list[float]] = {i: [] for i in range(len(names))}
    floor = math.inf
    path = ""
    before = 0.0
    for token, options in zip(written, alternatives, strict=False):
        for option, logprob in options:
            owners = _owners(names, path + option)
            if len(owners) == 1:
                found[owners[0]].append(before + logprob)
            if not math.isnan(logprob):
                floor = min(floor, before + logprob)
        path += token
        chosen = [value for option, value in options if option == token]
        if len(_owners(names, path)) < 2 or not chosen:
            break
        before += chosen[0]
    if not any(found.values()):
        # each is at most as likely as the least likely alternative: nothing is known of how they
        # compare, and the judge reads this as no answer
        floor = -math.inf
    with np.errstate(invalid="ignore"):  # NaN where one of them is
        sums = [float(np.logaddexp.reduce(given)) if given else floor for given in found.values()]
    return tuple(sums), sum(not values for values in found.values())


def _owners(names: Sequence[str], text: str) -> list[int]:
    """Return the labels that ``text`` completes, else those that it is the beginning of."""
    text = text.lstrip().casefold()
    # perhaps with something behind a label that is not part of it
    complete = [
        i
        for i, name in enumerate(names)
        if text.startswith(name) and not (text[len(name) :][:1].isalnum() and name[-1].isalnum())
    ]
    if complete:
        return [max(complete, key=lambda i: len(names[i]))]
    stripped = text.strip()
    return [i for i, name in enumerate(names) if stripped and name.startswith(stripped)] or (
        # nothing but space so far: every label is still possible
        [] if stripped else list(range(len(names)))
    )


# Reading the bodies that OpenAI-compatible servers answer with, distrustfully.


Json = Any


def parsed(text: str) -> Json:
    """Return the object that a body holds.

    Raises
    ------
    CompletionError
        If it is not JSON (a proxy's page, a body cut short), or an error that came as a success.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise _malformed(f"not JSON: {text!r:.80}") from None
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        raise _malformed(f"no choices in {text!r:.120}")
    if not body["choices"] or not isinstance(body["choices"][0], dict):
        raise _malformed("an empty list of choices")
    return body


def chat_text(body: Json) -> Completion:
    """Read the text of a chat completion; a missing content is an empty text."""
    choice = body["choices"][0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _malformed("a choice without a message")
    finish = str(choice.get("finish_reason") or "stop")
    text = message.get("content")
    refusal = message.get("refusal")
    if refusal:
        text = refusal
        finish = "refusal"
    if text is not None and not isinstance(text, str):
        raise _malformed(f"content {text!r:.60}")
    return Completion(
        text=text or "",
        finish_reason=finish,
        logprobs=tuple(value for _, value, _ in _chat_tokens(choice)) or None,
        **_usage(body),
    )


def chat_labels(body: Json, labels: Sequence[str]) -> LabelScores:
    """Read label scores from the top alternatives of a chat completion."""
    choice = body["choices"][0]
    if choice.get("finish_reason") == "content_filter":
        raise CompletionError("the server filtered the answer", reason="rejected")
    if not isinstance(choice.get("logprobs"), dict):
        raise _no_logprobs()
    tokens = _chat_tokens(choice)
    logprobs, n_bounded = label_scores_from_tokens(
        labels, [token for token, _, _ in tokens], [options for _, _, options in tokens]
    )
    return LabelScores(logprobs=logprobs, n_bounded=n_bounded, **_usage(body))


def _chat_tokens(choice: Json) -> list[tuple[str, float, Alternatives]]:
    found = choice.get("logprobs")
    content = found.get("content") if isinstance(found, dict) else None
    rows: list[tuple[str, float, Alternatives]] = []
    for row in content or []:
        try:
            options = [(str(o["token"]), _number(o["logprob"])) for o in row["top_logprobs"] or []]
            token = str(row["token"])
            value = _number(row["logprob"])
            rows.append((token, value, options or [(token, value)]))
        except (KeyError, TypeError):
            raise _malformed(f"logprobs {row!r:.80}") from None
    return rows


def _number(value: Json) -> float:
    """Return a log-probability; NaN for what is not one (null, text, a positive number)."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return min(float(value), 0.0) if number and value < 1e-3 else math.nan


def _usage(body: Json) -> dict[str, Any]:
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return {
        name: counts[name] if isinstance(counts.get(name), int) else 0
        for name in ("prompt_tokens", "completion_tokens")
    }


def _malformed(what: str) -> CompletionError:
    return CompletionError(f"the server's answer is malformed: {what}", reason="malformed")


def _no_logprobs() -> CompletionError:
    return CompletionError(
        "the server answered without log-probabilities: use mode votes or verbalised",
        reason="rejected",
        fatal=True,
    )


# What an error of the openai client means for one request.


def completion_error(
    error: Exception,
    openai: Any,  # noqa: ANN401
    server: Address,
    *,
    key: str,
) -> CompletionError:
    """Return the error to report for an error of the openai client.

    Parameters
    ----------
    error : openai.OpenAIError
    openai : module
    server : Address
    key : str
        Never to be repeated in a message, nor are the server's secrets; some servers echo them.
    """
    if isinstance(error, openai.APITimeoutError):
        return CompletionError(f"{server.url} did not answer in time", reason="timeout")
    if isinstance(error, openai.APIConnectionError):
        cause = shortened(server.redacted(str(error.__cause__ or error), key))
        return CompletionError(
            f"{server.url} cannot be reached or broke off ({cause})", reason="unreachable"
        )
    said = shortened(server.redacted(str(error), key))
    if not isinstance(error, openai.APIStatusError):
        return CompletionError(f"{server.url}: {said or type(error).__name__}", reason="malformed")
    status = int(error.status_code)
    return status_error(
        status,
        f"{server.url} answered {status} ({said})",
        code=getattr(error, "code", None),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
    )


def shortened(text: str) -> str:
    """Return a message in one line of at most 300 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "…"


# Language models behind a server with OpenAI's HTTP interface.


_logger = logging.getLogger("rag_sourcebias.llm")
_OFFICIAL = "https://api.openai.com/v1"


class OpenAICompleter:
    """A model served by OpenAI or by any server with the same interface.

    Text comes from ``/v1/chat/completions``, the prompt as one user message. Log-probabilities of
    labels come from the most likely first tokens of the answer, as many as ``top_logprobs``; a
    label that is not among them gets the smallest log-probability that was reported, and is
    counted.

    Parameters
    ----------
    model : str
    base_url : str, optional
        Such as ``http://localhost:8000/v1``; OpenAI's own by default. A user and password in it
        (``https://user:password@…``) are sent in place of the key, and are shown and stored
        nowhere.
    api_key : str, optional
        The environment variable ``OPENAI_API_KEY`` by default; a server of one's own needs none.
    top_logprobs : int
        Alternatives to ask for; 20 is the most that OpenAI gives.
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
        top_logprobs: int = 20,
        timeout: float = 60.0,
        max_concurrency: int = 8,
        extra: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        if top_logprobs < 1 or max_concurrency < 1 or not timeout > 0:
            raise DataError(
                f"top_logprobs {top_logprobs}, max_concurrency {max_concurrency} and timeout "
                f"{timeout} must be positive"
            )
        self.model = model
        self.name = name or model
        address = address_of(base_url or _OFFICIAL, "base_url")
        if address.query:
            raise DataError(
                f"base_url {address.url} has a query (?…), which this interface cannot send; give "
                "the key as OPENAI_API_KEY or api_key"
            )
        self._address = address._replace(url=address.url.rstrip("/"))
        self.base_url = self._address.url
        self.max_concurrency = max_concurrency
        self._official = base_url is None
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or ""
        if self._official and not self._key:
            raise DataError(
                f"model {model!r} at OpenAI needs a key: set OPENAI_API_KEY or pass api_key, or "
                "pass base_url for a server of your own"
            )
        self._top = top_logprobs
        self._timeout = timeout
        self._extra = dict(extra or {})
        feature = f"model {model!r} behind an OpenAI-compatible server"
        self._openai: Any = import_extra("openai", "openai", "openai", feature)

    def __repr__(self) -> str:
        return f"OpenAICompleter({self.model!r}, base_url={self.base_url!r})"

    @property
    def fingerprint(self) -> str:
        """Identity of server, model and of every setting that changes the answers."""
        return (
            f"openai-1:{self.base_url}:{self.model}:chat:top:{self._top}:"
            f"{json.dumps(self._extra, sort_keys=True, default=str)}"
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.model,
            "server": self.base_url,
            "label scores": f"{self._top} most likely tokens of the answer",
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
        return chat_text(self._chat(prompt, max_tokens, fields))

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the continuation of one prompt.

        Raises
        ------
        CompletionError
            If the server fails, reports no log-probabilities, or none of a label.
        """
        length = max(len(label.strip()) for label in labels)
        fields = {"temperature": 0.0, "logprobs": True, "top_logprobs": self._top}
        return chat_labels(self._chat(prompt, length, fields), labels)

    def _chat(self, prompt: str, max_tokens: int, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401
        # OpenAI's newer models know only the new name of the limit, other servers only the old.
        limit = "max_completion_tokens" if self._official else "max_tokens"
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            **fields,
            limit: max_tokens,
            **self._extra,
        }
        # The text instead of a model of the answer: servers answer with less, or with more.
        try:
            text = self._client.post("/chat/completions", cast_to=str, body=body)
        except self._openai.OpenAIError as error:
            raise completion_error(error, self._openai, self._address, key=self._key) from error
        except UnicodeEncodeError as error:  # half a surrogate pair, as scraped text may hold
            raise CompletionError(
                f"the text cannot be sent ({error})", reason="rejected"
            ) from error
        return parsed(text)

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - a client of the openai package
        authorization = self._address.authorization
        if self._address.exposed and (self._key or authorization):
            _logger.warning(
                "the key for %s is sent unencrypted and can be read on its way: use https, reach "
                "the server through localhost (ssh -L), or unset OPENAI_API_KEY if it needs none",
                self.base_url,
            )
        return self._openai.OpenAI(
            api_key=self._key or "none",
            base_url=self.base_url,
            max_retries=0,  # the asker retries, and counts it
            timeout=self._timeout,
            default_headers=None if authorization is None else {"Authorization": authorization},
        )
