"""What the status of an HTTP answer means for one request."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rag_sourcebias.types.completions import CompletionError, FailureReason

__all__ = ["retry_after_seconds", "status_error"]

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
    if "logprobs" in said or "echo" in said:
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
