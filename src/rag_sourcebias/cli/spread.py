"""Options that several commands share: fields of one dataclass, which a command takes whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["spread"]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of its dataclass parameters.

    Typer reads options off a signature, so without this each command would have to declare, and
    pass on, every option of the set; one left out somewhere would go unnoticed.

    Parameters
    ----------
    command : callable
        Annotated; parameters whose type is a dataclass stand for the fields, in their order.
    """
    hints = get_type_hints(command, include_extras=True)
    sets: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for given in inspect.signature(command).parameters.values():
        kind = hints[given.name]
        if not is_dataclass(kind) or not isinstance(kind, type):
            shown.append(given.replace(annotation=kind))
            continue
        sets[given.name] = kind
        declared = get_type_hints(kind, include_extras=True)
        shown.extend(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=given.empty if field.default is MISSING else field.default,
                annotation=declared[field.name],
            )
            for field in fields(kind)
        )

    @wraps(command)
    def run(**values: Any) -> None:  # noqa: ANN401 - of any option
        whole = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in sets.items()
        }
        command(**values, **whole)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run
