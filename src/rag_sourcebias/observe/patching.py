"""Replace methods of a class and its subclasses while somebody observes, and put them back."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, ref

from wrapt import FunctionWrapper

Call: TypeAlias = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""What stands for a method, as wrapt calls it: with the bound method, the object, the arguments."""


class Patch:
    """Methods of classes, replaced while somebody observes all objects of a base class, or one.

    All objects: of the base class and its subclasses, those made meanwhile included. One object:
    the classes that it is of are enough, and other objects of theirs are passed on. Copies of it
    are not observed. Where somebody else replaced a method after us, ours stays below theirs and
    passes on.

    Parameters
    ----------
    base : type
    chosen : callable
        From the name of a method to something true if it is to be replaced.
    make : callable
        From the name, the function and this patch to what stands for it.
    """

    def __init__(
        self,
        base: type,
        chosen: Callable[[str], object],
        make: Callable[[str, Callable[..., Any], Patch], Call],
    ) -> None:
        #: Each observer, and the object that it observes; None for all.
        self._observers: tuple[tuple[Any, ref[Any] | None], ...] = ()
        self._base, self._chosen, self._make = base, chosen, make
        self._lock = threading.RLock()
        #: By class and name: what stood there, and what stands there now.
        self._replaced: WeakKeyDictionary[type, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()

    def observers_of(self, obj: object) -> list[Any]:
        """Return those who observe an object now."""
        return [one for one, only in self._observers if only is None or only() is obj]

    def add(self, observer: object, only: object = None) -> None:
        """Add an observer of one object, or of all; the first one replaces the methods."""
        with self._lock:
            alive = [one for one in self._observers if one[1] is None or one[1]() is not None]
            self._observers = (*alive, (observer, None if only is None else ref(only)))
            self._replace(self._family() if only is None else type(only).__mro__[:-1])

    def remove(self, observer: object) -> None:
        """Take an observer back, twice does no harm; the last one restores the methods."""
        with self._lock:
            self._observers = tuple(one for one in self._observers if one[0] is not observer)
            if self._observers:
                return
            for kind, methods in list(self._replaced.items()):
                for name, (original, ours) in list(methods.items()):
                    found = vars(kind).get(name)
                    # whoever takes a method from a class, and puts it back, has it bound
                    if found is not ours and getattr(found, "_self_parent", None) is not ours:
                        continue
                    if original is None:
                        delattr(kind, name)
                    else:
                        setattr(kind, name, original)
                    del methods[name]

    def _replace(self, kinds: Iterable[type]) -> None:
        for kind in kinds:
            for name, found in list(vars(kind).items()):
                if self._chosen(name) and inspect.isfunction(found):
                    self._set(kind, name, found, self._make(name, found, self))

    def _set(self, kind: type, name: str, method: Any, call: Call) -> None:  # noqa: ANN401
        methods = self._replaced.setdefault(kind, {})
        if name not in methods:
            ours = FunctionWrapper(method, call)
            methods[name] = (vars(kind).get(name), ours)
            setattr(kind, name, ours)

    def _family(self) -> Iterator[type]:
        """Yield the base and all its subclasses, and see to those that will be made."""
        base: Any = self._base

        def made(init: Callable[..., None], cls: type, args: Any, kwargs: Any) -> None:  # noqa: ANN401
            init(*args, **kwargs)
            with self._lock:
                if self._observers:
                    self._replace([cls])

        def inherited(cls: Any, /, **options: Any) -> None:  # noqa: ANN401
            super(base, cls).__init_subclass__(**options)

        own = vars(base).get("__init_subclass__", classmethod(inherited))
        self._set(base, "__init_subclass__", own, made)
        kinds = [base]
        while kinds:
            yield kinds[-1]
            kinds += type.__subclasses__(kinds.pop())
