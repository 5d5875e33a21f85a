"""What an error of the openai client means for one request."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rag_sourcebias.types.completions import CompletionError

__all__ = ["completion_error", "retry_after_seconds"]

_WRONG_FOR_ALL = {
    401: "check the key (OPENAI_API_KEY)",
    402: "check the account's balance",
    403: "check that the key may use this model",
    404: "check base_url (it usually ends in /v1) and the model's name",
    405: "check base_url (it usually ends in /v1)",
}


def completion_error(error: Exception, openai: Any, server: str, *, key: str) -> CompletionError:  # noqa: ANN401
    """Return the error to report for an error of the openai client.

    Parameters
    ----------
    error : openai.OpenAIError
    openai : module
    server : str
        Address, for the message.
    key : str
        Never to be repeated in a message; some servers echo it.
    """
    if isinstance(error, openai.APITimeoutError):
        return CompletionError(f"{server} did not answer in time", reason="timeout")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return CompletionError(
            f"{server} cannot be reached or broke off ({_short(str(cause), key)})",
            reason="unreachable",
        )
    if not isinstance(error, openai.APIStatusError):
        return CompletionError(
            f"{server}: {_short(str(error), key) or type(error).__name__}", reason="malformed"
        )
    return _status_error(error, server, key)


def _status_error(error: Any, server: str, key: str) -> CompletionError:  # noqa: ANN401
    status = int(error.status_code)
    said = f"{server} answered {status} ({_short(str(error), key)})"
    if status in _WRONG_FOR_ALL:
        return CompletionError(f"{said}; {_WRONG_FOR_ALL[status]}", reason="rejected", fatal=True)
    if status == 429 and getattr(error, "code", None) == "insufficient_quota":
        return CompletionError(
            f"{said}; the account has no quota left", reason="rejected", fatal=True
        )
    if status in (408, 409, 425, 429) or status >= 500:
        after = retry_after_seconds(error.response.headers.get("retry-after"))
        reason = "rate_limited" if status == 429 else "timeout" if status == 408 else "server"
        return CompletionError(said, reason=reason, retry_after=after)  # type: ignore[arg-type]
    if "logprobs" in str(error) or "echo" in str(error):
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


def _short(text: str, key: str) -> str:
    text = " ".join(text.split())
    if key:
        text = text.replace(key, "…")
    return text if len(text) <= 300 else text[:299] + "…"
