"""What the completers of all frameworks share: a model's settings, read and set on a copy.

Frameworks declare their models with pydantic, so that fields tell what a model can be told. The
model that was given is never changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rag_sourcebias.errors import DataError

__all__ = ["ROUTES", "clients_of", "once_copy", "routes_of", "with_values"]

ROUTES: Mapping[str, tuple[str, ...]] = {
    "max_tokens": (
        *("max_tokens", "max_output_tokens", "max_new_tokens", "max_completion_tokens"),
        *("num_predict", "max_tokens_to_sample"),
    ),
    "temperature": ("temperature",),
    "seed": ("seed", "random_seed"),
}
"""Settings of a request, and the names that frameworks have for them."""

_CALL = "call."
_RETRIES = "max_retries"


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
        if setting not in ROUTES:
            raise DataError(f"parameters {setting!r} is not one of {', '.join(ROUTES)}")
        if route is not None and not route.startswith(_CALL):
            field, _, key = route.partition(".")
            if field not in fields or (key and not isinstance(getattr(model, field), dict | None)):
                raise DataError(
                    f"parameters {setting!r}: {type(model).__name__} has no field {field!r}"
                    f"{' that holds a dict' if key else ''}; it has {_names(fields)}"
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
                f"({_names(fields)}) is called {' or '.join(names)}; say where it goes with "
                f"parameters={{{setting!r}: 'field'}}, 'field.key' or 'call.argument', or "
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
        if route is None:
            continue
        if route.startswith(_CALL):
            arguments[route.removeprefix(_CALL)] = value
            continue
        field, _, key = route.partition(".")
        before = update.get(field, getattr(model, field)) if key else None
        update[field] = {**(before or {}), key: value} if key else value
    return (_copied(model, update) if update else model), arguments


def once_copy(model: Any) -> tuple[Any, bool]:  # noqa: ANN401
    """Return a copy that sends each request once, and whether any retries were found to stop.

    Retries are stopped where they are a field ``max_retries``, and in clients that have
    ``with_options(max_retries=…)``, as those of OpenAI, Anthropic, Groq and others.
    """
    found = _RETRIES in type(model).model_fields
    copy = _copied(model, {_RETRIES: 0} if found else {})
    for store in (copy.__dict__, copy.__pydantic_private__ or {}):
        for name, value in list(store.items()):
            owner = _owner(value)
            if owner is None:
                continue
            once = owner.with_options(max_retries=0)
            store[name] = once if owner is value else type(value)(once)
            found = True
    return copy, found


def clients_of(model: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the clients that a model has as fields, as far as they can be recognised.

    Not those that it makes when it is first asked: they would be there one time and not another.
    """
    for name in type(model).model_fields:
        owner = _owner(getattr(model, name, None))
        if owner is not None:
            yield owner


def _owner(value: Any) -> Any:  # noqa: ANN401
    """Return the client that a value is, or is a part of; None where it is neither."""
    for one in (value, getattr(value, "_client", None)):
        retries = getattr(one, _RETRIES, None)
        if isinstance(retries, int) and callable(getattr(type(one), "with_options", None)):
            return one
    return None


def _copied(model: Any, update: Mapping[str, Any]) -> Any:  # noqa: ANN401
    copy = model.model_copy(update=dict(update))
    # What the model computed from its fields and remembers (cached properties) may be out of date.
    for name in set(copy.__dict__) - set(type(model).model_fields):
        if hasattr(type(model), name):
            del copy.__dict__[name]
    return copy


def _names(fields: Mapping[str, Any]) -> str:
    return ", ".join(sorted(fields))
