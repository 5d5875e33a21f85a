"""What the completers of all frameworks share: one request to a model, observed by nobody."""

import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import to_jsonable_python

from rag_sourcebias.core.completions import Completion, CompletionError, FailureReason, LabelScores
from rag_sourcebias.core.errors import DataError, SourceBiasError, require_at_least, require_one_of
from rag_sourcebias.llm.openai import chat_labels, retry_after_seconds, shortened, status_error
from rag_sourcebias.observe.unobserved import suppress

# What the completers of all frameworks share: a model's settings, read and set on a copy.
# Frameworks declare their models with pydantic, so that fields tell what a model can be told. The
# model that was given is never changed.


ROUTES: Mapping[str, tuple[str, ...]] = {
    "max_tokens": (
        "max_tokens", "max_output_tokens", "max_new_tokens", "max_completion_tokens",
        "num_predict", "max_tokens_to_sample",
    ),
    "temperature": ("temperature",),
    "seed": ("seed", "random_seed"),
}  # fmt: skip
"""Settings of a request, and the names that frameworks have for them."""

_CALL = "call."


def routes_of(
    model: Any,  # noqa: ANN401
    call: Callable[..., Any],
    *,
    chosen: Mapping[str, str | None] | None,
) -> dict[str, str | None]:
    """Find where each setting of a request goes.

    A route is a field of the model, ``field.key`` for an entry of a field that holds a dict,
    ``call.argument`` for an argument of the call, or None for nowhere.

    Parameters
    ----------
    model : pydantic model
    call : callable
        The method that answers; its arguments are looked at where there is no field.
    chosen : mapping, optional
        Routes by the user, before all.

    Raises
    ------
    DataError
        If the limit on tokens or the temperature cannot be told, or a chosen route leads nowhere.
    """
    fields = type(model).model_fields
    arguments = inspect.signature(call).parameters
    routes: dict[str, str | None] = {}
    for setting, route in (chosen or {}).items():
        require_one_of("parameters", setting, ROUTES)
        if route is not None and not route.startswith(_CALL):
            field, _, key = route.partition(".")
            if field not in fields or (key and not isinstance(getattr(model, field), dict | None)):
                raise DataError(
                    f"parameters {setting!r}: {type(model).__name__} has no field {field!r}"
                    f"{' that holds a dict' if key else ''}; it has {', '.join(sorted(fields))}"
                )
        routes[setting] = route
    for setting, names in ROUTES.items():
        if setting in routes:
            continue
        there = [name for name in names if name in fields]
        there += [_CALL + name for name in names if name in arguments]
        routes[setting] = there[0] if there else None
        # Without a seed samples differ all the same; without the others the text is another one.
        if not there and setting != "seed":
            raise DataError(
                f"{type(model).__name__} takes no {setting}: none of its fields "
                f"({', '.join(sorted(fields))}) is called {' or '.join(names)}; say where it goes "
                f"with parameters={{{setting!r}: 'field'}}, 'field.key' or 'call.argument', or "
                "None to leave it to the model"
            )
    return routes


def with_values(
    model: Any,  # noqa: ANN401
    routes: Mapping[str, str | None],
    values: Mapping[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """Return a copy of the model with values in its fields, and the arguments of the call."""
    update: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    for setting, value in values.items():
        route = routes[setting]
        if route is not None and route.startswith(_CALL):
            arguments[route.removeprefix(_CALL)] = value
        elif route is not None:
            field, _, key = route.partition(".")
            before = update.get(field, getattr(model, field)) if key else None
            update[field] = {**(before or {}), key: value} if key else value
    return (_copied(model, update) if update else model), arguments


def _copied(model: Any, update: Mapping[str, Any]) -> Any:  # noqa: ANN401
    copy = model.model_copy(update=dict(update))
    # What the model computed from its fields and remembers (cached properties) may be out of date.
    for name in set(copy.__dict__) - set(type(model).model_fields):
        if hasattr(type(model), name):
            del copy.__dict__[name]
    return copy


# Which model it is, without what must stay secret.


# What changes how a model is run or watched, and not what it answers.
_RUNTIME = frozenset(
    (
        "cache", "verbose", "callbacks", "callback_manager", "tags", "metadata", "name",
        "custom_get_token_ids", "rate_limiter", "disable_streaming", "output_version", "profile",
        "max_retries", "request_timeout", "timeout", "streaming", "stream_usage", "batch_size",
        "stream_chunk_timeout", "include_response_headers", "reuse_client", "client", "n_jobs",
        "async_client", "root_client", "root_async_client", "http_client", "async_http_client",
        "http_async_client", "http_socket_options", "openai_proxy", "output_parser",
    )
)  # fmt: skip
_SECRET = re.compile(
    r"(?:^|_|-|api)keys?(?:_id)?$|secret|passw|credential|auth|cookie|headers?$|token$"
)
_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_DEEPEST = 6


def name_of(model: Any, otherwise: str = "") -> str:  # noqa: ANN401
    """Return the name of a model, that of its class where it has none."""
    found = (getattr(model, field, None) for field in _NAMES)
    return next((n for n in found if isinstance(n, str) and n), otherwise or type(model).__name__)


def identity_of(
    model: Any,  # noqa: ANN401
    *,
    leave_out: Collection[str] = (),
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return class and the fields that are not at their defaults, ready for JSON.

    Parameters
    ----------
    model : pydantic model
    leave_out : collection of str
        Fields that are part of each request.
    more : mapping, optional
        Further settings.
    """
    kind = type(model)
    fields = model.model_dump(
        mode="json",
        exclude={*_RUNTIME, *leave_out},
        exclude_defaults=True,
        fallback=_described,
        warnings=False,
    )
    further = to_jsonable_python(dict(more or {}), fallback=_described)
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **_shown({**fields, **further})}


def redacted(text: str, model: Any) -> str:  # noqa: ANN401
    """Return a message of one line in which no secret of the model is repeated."""
    for name in type(model).model_fields:
        value = getattr(model, name, None)
        reveal = getattr(value, "get_secret_value", None)
        secret = reveal() if callable(reveal) else value if _SECRET.search(name.lower()) else None
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "…")
    return shortened(text)


def _described(value: Any) -> str:  # noqa: ANN401
    """Return the name of what JSON cannot hold, equal in every process."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _shown(value: Any) -> Any:  # noqa: ANN401
    """Return a JSON value without secrets and without what is empty."""
    if isinstance(value, dict):
        return {
            key: _shown(one)
            for key, one in value.items()
            if one not in (None, {}, [], "") and not _SECRET.search(key.lower())
        }
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return _url(value) if isinstance(value, str) else value


def _url(text: str) -> str:
    """Return an address without user, password and query; other texts as they are."""
    if "://" not in text.partition("?")[0] or any(c.isspace() for c in text):
        return text
    parts = urlsplit(text)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


# What an exception of a framework, or of the package below it, means for one request.


# Parts of names of exceptions; packages agree on them more than on anything else.
_ERROR_NAMES: tuple[tuple[FailureReason, bool, tuple[str, ...]], ...] = (
    ("timeout", False, ("Timeout", "DeadlineExceeded")),
    ("rate_limited", False, ("RateLimit", "Throttl", "ResourceExhausted", "TooManyRequests")),
    ("rejected", True, ("Authentication", "Unauthenticated", "PermissionDenied", "AccessDenied")),
    ("rejected", False, ("ContentFilter", "ContentPolicy", "BadRequest", "InvalidArgument")),
    ("server", False, ("ServiceUnavailable", "InternalServer", "Overloaded")),
    (
        "unreachable",
        False,
        ("Connect", "RemoteProtocol", "NetworkError", "ReadError", "IncompleteRead", "gaierror"),
    ),
)


def request_error(error: Exception, model: Any) -> CompletionError | None:  # noqa: ANN401
    """Return the error to report; None for one that is not about a request.

    Statuses and names are looked for in the exception and in what caused it.

    Parameters
    ----------
    error : Exception
    model : pydantic model
        Its secrets are not repeated.
    """
    if isinstance(error, SourceBiasError):
        return None
    kind = type(error)
    said = redacted(f"{type(model).__name__}: {kind.__name__}: {error}", model)
    chain = list(_chain(error))
    for one in chain:
        status, headers, code = _status(one)
        if status is not None:
            after = retry_after_seconds(headers.get("retry-after"))
            return status_error(status, said, code=code, retry_after=after)
    for one in chain:
        for reason, fatal, parts in _ERROR_NAMES:
            if any(part in base.__name__ for base in type(one).__mro__ for part in parts):
                return CompletionError(said, reason=reason, fatal=fatal)
    if isinstance(error, UnicodeEncodeError):  # half a surrogate pair, as scraped text may hold
        return CompletionError(said, reason="rejected")
    if isinstance(error, TypeError) and "keyword argument" in str(error):
        told = f"{said}; say where the settings go with parameters=…"
        return CompletionError(told, reason="rejected", fatal=True)
    # Frameworks read answers with little care: an empty list of choices is an IndexError.
    own = isinstance(error, ValueError | LookupError | TypeError | AttributeError)
    if own or kind.__module__ != "builtins":
        return CompletionError(f"{said} (malformed answer?)", reason="malformed")
    return None


def no_logprobs(model: Any) -> CompletionError:  # noqa: ANN401
    """Return the error for a model that gives no log-probabilities."""
    return CompletionError(
        f"{type(model).__name__} gives no log-probabilities of the answer's tokens: use mode votes "
        "or verbalised",
        reason="rejected",
        fatal=True,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(_DEEPEST):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def _status(error: BaseException) -> tuple[int | None, Mapping[str, str], str | None]:
    response: Any = getattr(error, "response", None)
    code = getattr(error, "code", None)
    if isinstance(response, Mapping):  # botocore
        told = response.get("ResponseMetadata") or {}
        numbers = [told.get("HTTPStatusCode")]
        headers = told.get("HTTPHeaders") or {}
    else:
        numbers = [
            *(getattr(error, name, None) for name in ("status_code", "http_status", "status")),
            code,
            getattr(response, "status_code", None),
        ]
        headers = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    status = next((n for n in numbers if type(n) is int and 400 <= n < 600), None)
    return status, headers, code if isinstance(code, str) else None


# What the completers of all frameworks share: one request to a model, observed by nobody.


_MOST_COPIES = 64
_TOP = 20  # the most alternatives that OpenAI reports
_FINISH = {
    reason: meaning
    for meaning, reasons in {
        "stop": (
            "end_turn",
            "stop_sequence",
            "complete",
            "completed",
            "eos",
            "eos_token",
            "finish",
        ),
        "length": ("max_tokens", "max_length", "max_output_tokens", "model_length"),
        "content_filter": (
            "safety", "blocklist", "prohibited_content", "spii", "recitation",
            "content_filtered", "guardrail_intervened",
        ),
    }.items()
    for reason in reasons
}  # fmt: skip
_COUNTS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "prompt_eval_count", "prompt_token_count"),
    "completion_tokens": (
        "completion_tokens",
        "output_tokens",
        "eval_count",
        "candidates_token_count",
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
        require_at_least(1, max_concurrency=max_concurrency)
        self.max_concurrency = max_concurrency
        self.name = name or name_of(model)
        self._routes = routes_of(model, call, chosen=parameters)
        self._model = model
        fields = [route for route in self._routes.values() if route and "." not in route]
        self._identity = identity_of(model, leave_out=fields, more=more)
        # A copy keeps the client that it opens when it is first asked.
        self._told = lru_cache(_MOST_COPIES)(self._tell)

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
        told = {"model": self.name} | {
            key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for key, value in self._identity.items()
        }
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
        return self._text(self._asked(prompt, values))

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the beginning of the answer.

        Read from the likeliest tokens that OpenAI-like models report; a label that is not among
        them gets the smallest log-probability reported, and is counted.

        Raises
        ------
        CompletionError
            If the model fails or gives no log-probabilities.
        """
        if not {"logprobs", "top_logprobs"} <= set(type(self._model).model_fields):
            raise no_logprobs(self._model)
        longest = max(len(label.strip()) for label in labels)
        values = {"max_tokens": longest, "temperature": 0.0, "logprobs": True, "top_logprobs": _TOP}
        answer = self._asked(prompt, values)
        choice = self._choice(answer)
        if not isinstance(choice.get("logprobs"), dict):
            raise no_logprobs(self._model)
        return chat_labels({"choices": [choice], "usage": self._counts(answer)}, labels)

    def _asked(self, prompt: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
        model, arguments = self._told(*values.items())
        try:
            with suppress():
                return self._answer(model, prompt, arguments)
        except Exception as error:
            told = request_error(error, model)
            if told is None:
                raise
            raise told from error

    def _tell(self, *values: tuple[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the model that was told, and the arguments of the call."""
        routes = {name: self._routes.get(name, name) for name, _ in values}
        return with_values(self._model, routes, dict(values))

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
