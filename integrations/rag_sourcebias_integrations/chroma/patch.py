"""Change the class of one object, or a method of a class, so that it can be undone in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Patch", "subclass", "swap_in", "swap_out", "swapped_in"]

_ITEMS = "_rag_sourcebias_items"
_MARK = "_rag_sourcebias_subclass"
_lock = threading.RLock()


def subclass(kind: type, methods: dict[str, Any]) -> type:
    """Return a subclass that looks like its base, for :func:`swap_in`."""
    like = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    made: type = type(kind)(kind.__name__, (kind,), {**like, **methods, _MARK: True})
    return made


def swap_in(obj: Any, make: Callable[[type], type], item: object) -> None:  # noqa: ANN401
    """Give an object a subclass of its class, and an item for the methods of that class.

    Unlike a method put on the object, this keeps working when the object is copied.
    """
    with _lock:
        if _MARK not in vars(type(obj)):
            obj.__class__ = make(type(obj))
        vars(obj)[_ITEMS] = (*swapped_in(obj), item)


def swap_out(obj: Any, item: object) -> None:  # noqa: ANN401
    """Take an item back, and with the last one the class; twice does no harm."""
    with _lock:
        left = tuple(other for other in swapped_in(obj) if other is not item)
        if left:
            vars(obj)[_ITEMS] = left
            return
        vars(obj).pop(_ITEMS, None)
        if _MARK in vars(type(obj)):  # otherwise somebody changed the class after us
            obj.__class__ = type(obj).__base__


def swapped_in(obj: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the items of an object, oldest first."""
    items: tuple[Any, ...] = vars(obj).get(_ITEMS, ())
    return items


class Patch:
    """A method of a class, replaced while there are items for it.

    Parameters
    ----------
    kind : type
    name : str
    make : callable
        From the method, and a function that returns the items for an object, to the replacement.
    """

    def __init__(
        self,
        kind: type,
        name: str,
        make: Callable[[Callable[..., Any], Callable[[Any], Sequence[Any]]], Callable[..., Any]],
    ) -> None:
        self._kind, self._name, self._make = kind, name, make
        self._items: tuple[Any, ...] = ()
        self._original: Any = None
        self._replacement: Any = None

    def add(self, item: object) -> None:
        """Add an item; the first one replaces the method."""
        with _lock:
            self._items = (*self._items, item)
            if self._replacement is None:
                self._original = vars(self._kind)[self._name]
                self._replacement = self._make(self._original, lambda _: self._items)
                setattr(self._kind, self._name, self._replacement)

    def remove(self, item: object) -> None:
        """Take an item back; the last one restores the method.

        Where somebody else replaced the method after us, ours stays below theirs and passes on.
        """
        with _lock:
            self._items = tuple(other for other in self._items if other is not item)
            if not self._items and vars(self._kind)[self._name] is self._replacement:
                setattr(self._kind, self._name, self._original)
                self._original = self._replacement = None
