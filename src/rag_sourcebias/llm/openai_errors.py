"""What an error of the openai client means for one request."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.llm.http_status import retry_after_seconds, status_error
from rag_sourcebias.types.completions import CompletionError

__all__ = ["completion_error"]


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
    status = int(error.status_code)
    return status_error(
        status,
        f"{server} answered {status} ({_short(str(error), key)})",
        code=getattr(error, "code", None),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
    )


def _short(text: str, key: str) -> str:
    text = " ".join(text.split())
    if key:
        text = text.replace(key, "…")
    return text if len(text) <= 300 else text[:299] + "…"
