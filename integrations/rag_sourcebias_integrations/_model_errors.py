"""What an exception of a framework, or of the package below it, means for one request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_sourcebias.errors import SourceBiasError
from rag_sourcebias.llm.http_status import retry_after_seconds, status_error
from rag_sourcebias.types.completions import CompletionError, FailureReason
from rag_sourcebias_integrations._model_identity import redacted

__all__ = ["no_logprobs", "request_error"]

_DEEPEST = 6
# Parts of names of exceptions; packages agree on them more than on anything else.
_NAMES: tuple[tuple[FailureReason, bool, tuple[str, ...]], ...] = (
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
        names = [base.__name__ for base in type(one).__mro__]
        for reason, fatal, parts in _NAMES:
            if any(part in name for name in names for part in parts):
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
        numbers, headers = [told.get("HTTPStatusCode")], told.get("HTTPHeaders") or {}
    else:
        names = ("status_code", "http_status", "status", "code")
        numbers = [getattr(error, name, None) for name in names]
        numbers.append(getattr(response, "status_code", None))
        headers = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    status = next((n for n in numbers if type(n) is int and 400 <= n < 600), None)
    return status, headers, code if isinstance(code, str) else None
