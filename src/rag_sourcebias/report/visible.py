"""A report whose texts can be shown as they are, in a page, a picture and a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar, cast

from rag_sourcebias.types.names import visible

__all__ = ["visible_report"]

T = TypeVar("T")


def visible_report(report: T, *, lines: bool = True) -> T:
    """Return the report with control characters, overrides and surrogates written out everywhere.

    Once for all of it, before anything is drawn: lengths of names, keys and texts then agree in
    every view, and no view has to know where a text came from.

    Parameters
    ----------
    report : a report of any kind
    lines : bool
        Leave line ends and tabs, which excerpts have and which pages show as blanks.

    Returns
    -------
    report
        The same object where there is nothing to write out, as nearly always.
    """
    return cast("T", _visible(report, lines))


def _visible(value: Any, lines: bool) -> Any:  # noqa: ANN401 - any field of any report
    if isinstance(value, str):
        return visible(value, lines=lines)
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new = {name: _visible(item, lines) for name, item in old.items()}
        changed = {name: item for name, item in new.items() if item is not old[name]}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        pairs = {_visible(key, lines): _visible(item, lines) for key, item in value.items()}
        same = all(map(is_, (*value, *value.values()), (*pairs, *pairs.values())))
        return value if same else pairs
    if isinstance(value, tuple | list):
        items = [_visible(item, lines) for item in value]
        return value if all(map(is_, value, items)) else type(value)(items)
    return value
