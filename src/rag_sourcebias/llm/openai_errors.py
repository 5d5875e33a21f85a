"""What an error of the openai client means for one request."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.io.addresses import Address
from rag_sourcebias.llm.http_status import retry_after_seconds, status_error
from rag_sourcebias.types.completions import CompletionError

__all__ = ["completion_error"]


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
        cause = _short(server.redacted(str(error.__cause__ or error), key))
        return CompletionError(
            f"{server.url} cannot be reached or broke off ({cause})", reason="unreachable"
        )
    said = _short(server.redacted(str(error), key))
    if not isinstance(error, openai.APIStatusError):
        return CompletionError(f"{server.url}: {said or type(error).__name__}", reason="malformed")
    status = int(error.status_code)
    return status_error(
        status,
        f"{server.url} answered {status} ({said})",
        code=getattr(error, "code", None),
        retry_after=retry_after_seconds(error.response.headers.get("retry-after")),
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "…"
