"""Which model it is, without what must stay secret."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from rag_sourcebias_integrations._model_settings import clients_of

__all__ = ["identity_of", "name_of", "redacted", "settings_text"]

# What changes how a model is run or watched, and not what it answers.
_RUNTIME = frozenset(
    (
        *("cache", "verbose", "callbacks", "callback_manager", "tags", "metadata", "name"),
        *("custom_get_token_ids", "rate_limiter", "disable_streaming", "output_version", "profile"),
        *("max_retries", "request_timeout", "timeout", "streaming", "stream_usage", "batch_size"),
        *("stream_chunk_timeout", "include_response_headers", "reuse_client", "client", "n_jobs"),
        *("async_client", "root_client", "root_async_client", "http_client", "async_http_client"),
        *("http_async_client", "http_socket_options", "openai_proxy", "output_parser"),
    )
)
_SECRET = re.compile(
    r"(?:^|_|-|api)keys?(?:_id)?$|secret|passw|credential|auth|cookie|headers?$|token$"
)
_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "repo_id")
_DROPPED = object()
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
    """Return class, server and the fields that are not at their defaults, ready for JSON.

    Parameters
    ----------
    model : pydantic model
    leave_out : collection of str
        Fields that are part of each request.
    more : mapping, optional
        Further settings.
    """
    servers = sorted({_url(str(client.base_url)) for client in clients_of(model)})
    kind = type(model)
    found: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    if servers:
        found["server"] = ", ".join(servers)
    found.update(_fields(model, leave_out, _DEEPEST))
    found.update(_plain(dict(more or {}), _DEEPEST))
    return found


def settings_text(identity: Mapping[str, Any]) -> dict[str, str]:
    """Return an identity as texts, for a report."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in identity.items()
    }


def redacted(text: str, model: Any) -> str:  # noqa: ANN401
    """Return a message of one line in which no secret of the model is repeated."""
    text = " ".join(text.split())
    for name in type(model).model_fields:
        value = getattr(model, name, None)
        reveal = getattr(value, "get_secret_value", None)
        secret = reveal() if callable(reveal) else value if _SECRET.search(name.lower()) else None
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "…")
    return text if len(text) <= 300 else text[:299] + "…"


def _fields(model: Any, leave_out: Collection[str], depth: int) -> dict[str, Any]:  # noqa: ANN401
    found: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        if name in _RUNTIME or name in leave_out or _SECRET.search(name.lower()):
            continue
        value = getattr(model, name, None)
        if value is None or value == field.default:
            continue
        plain = _plain(value, depth)
        if plain is not _DROPPED and plain not in ({}, [], ""):
            found[name] = plain
    return found


def _plain(value: Any, depth: int) -> Any:  # noqa: ANN401
    """Return a value ready for JSON and equal in every process, or a mark that it has none."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | PurePath):
        return _url(str(value))
    if not depth:
        return _DROPPED
    if isinstance(value, Mapping):
        kept = {str(k): _plain(v, depth - 1) for k, v in value.items()}
        return {
            k: v for k, v in kept.items() if v is not _DROPPED and not _SECRET.search(k.lower())
        }
    if isinstance(value, list | tuple | set | frozenset):
        items = [p for v in value if (p := _plain(v, depth - 1)) is not _DROPPED]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items
    if hasattr(type(value), "model_fields") and not isinstance(value, type):
        return {"class": type(value).__qualname__} | _fields(value, (), depth - 1)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return _DROPPED


def _url(text: str) -> str:
    """Return an address without user, password and query; other texts as they are."""
    if "://" not in text.partition("?")[0] or any(c.isspace() for c in text):
        return text
    parts = urlsplit(text)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
