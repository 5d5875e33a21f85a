"""Replace methods of a class and its subclasses while somebody observes, and put them back."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary


class Patch:
    """Methods of a class and of all its subclasses, replaced while there are observers.

    Subclasses made meanwhile are included. Where somebody else replaced a method after us, ours
    stays below theirs and passes on.

    Parameters
    ----------
    base : type
    chosen : callable
        From the name of a method to something true if it is to be replaced.
    make : callable
        From the name, the function and this patch to the replacement.

    Attributes
    ----------
    observers : tuple
        Those who observe now.
    """

    def __init__(
        self,
        base: type,
        chosen: Callable[[str], object],
        make: Callable[[str, Callable[..., Any], Patch], Callable[..., Any]],
    ) -> None:
        self.observers: tuple[Any, ...] = ()
        self._base, self._chosen, self._make = base, chosen, make
        self._lock = threading.RLock()
        #: By class and name: what stood there, and what stands there now.
        self._replaced: WeakKeyDictionary[type, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()

    def add(self, observer: object) -> None:
        """Add an observer; the first one replaces the methods."""
        with self._lock:
            self.observers = (*self.observers, observer)
            if len(self.observers) == 1:
                try:
                    self._set(self._base, "__init_subclass__", self._made_later())
                    for kind in _family(self._base):
                        self._replace(kind)
                except BaseException:
                    self.remove(observer)
                    raise

    def remove(self, observer: object) -> None:
        """Take an observer back, twice does no harm; the last one restores the methods."""
        with self._lock:
            self.observers = tuple(other for other in self.observers if other is not observer)
            if self.observers:
                return
            for kind, methods in list(self._replaced.items()):
                for name, (original, ours) in list(methods.items()):
                    if vars(kind).get(name) is not ours:
                        continue
                    if original is None:
                        delattr(kind, name)
                    else:
                        setattr(kind, name, original)
                    del methods[name]

    def _replace(self, kind: type) -> None:
        if "__class__" in vars(kind):  # of an object that is observed in place
            return
        for name, found in list(vars(kind).items()):
            if inspect.isfunction(found) and self._chosen(name):
                self._set(kind, name, partial(self._make, name, found, self))

    def _set(self, kind: type, name: str, make: Callable[[], Any]) -> None:
        methods = self._replaced.setdefault(kind, {})
        if name not in methods:
            ours = make()
            methods[name] = (vars(kind).get(name), ours)
            setattr(kind, name, ours)

    def _made_later(self) -> Callable[[], Any]:
        base: Any = self._base
        patch = self
        own = vars(base).get("__init_subclass__")

        def __init_subclass__(cls: Any, **options: Any) -> None:  # noqa: ANN401, N807
            if own is None:
                super(base, cls).__init_subclass__(**options)
            else:
                own.__func__(cls, **options)
            if patch.observers:
                with patch._lock:
                    patch._replace(cls)

        made: Any = __init_subclass__
        return lambda: classmethod(made)


def _family(kind: type) -> Iterator[type]:
    yield kind
    each: type
    for each in type.__subclasses__(kind):
        yield from _family(each)
