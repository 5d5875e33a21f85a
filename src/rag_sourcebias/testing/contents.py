"""What an object holds, for checks of privacy and of equality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

__all__ = ["strings_in"]


def strings_in(value: object) -> list[str]:
    """Return every string inside nested containers, dataclasses and objects."""
    found: list[str] = []
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
            continue
        if isinstance(item, bytes):
            found.append(item.decode("utf-8", "replace"))
            continue
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
        elif is_dataclass(item):
            waiting += [getattr(item, field.name) for field in fields(item)]
        else:
            waiting += vars(item).values() if hasattr(item, "__dict__") else ()
    return found
