"""Observe an object in place: exchange its class for a subclass that stays out of sight."""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["Layer", "add_observer", "copy_class", "is_observed", "observed_class"]

_set_class = vars(object)["__class__"].__set__  # not through a __setattr__ of the object's class


class Layer:
    """What stands between an object and its class.

    Attributes
    ----------
    original : type
        The class of the object.
    observers : tuple
        Those who observe the object now.
    """

    def __init__(self, original: type, *observers: Any) -> None:  # noqa: ANN401
        self.original = original
        self.observers: tuple[Any, ...] = observers


_layers: WeakKeyDictionary[type, Layer] = WeakKeyDictionary()
_lock = threading.RLock()
Members = Callable[[Layer], Mapping[str, Any]]


def observed_class(layer: Layer, members: Members) -> type:
    """Make a subclass that calls itself by the name of its base and says it is its base.

    Copies and pickles are objects of the base class, not observed. Metaclasses are passed over:
    pydantic would build its schema again, and a registry of subclasses would list this one.
    """
    original: Any = layer.original

    def reduce_ex(self: Any, protocol: Any) -> Any:  # noqa: ANN401
        reduced = original.__reduce_ex__(self, protocol)
        if not isinstance(reduced, tuple):
            return reduced
        call, arguments, *rest = reduced
        return (call, tuple(original if a is made else a for a in arguments), *rest)

    namespace: dict[str, Any] = {
        "__slots__": (),  # the memory layout must not differ
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__class__": property(lambda _: original),
        "__reduce_ex__": reduce_ex,
    }
    for name in ("__copy__", "__deepcopy__"):
        if hasattr(original, name):
            namespace[name] = _as_original(name, original)
    namespace.update(members(layer))
    made: type = ABCMeta.__new__(type(original), original.__name__, (original,), namespace)
    return made


def add_observer(obj: object, observer: object, members: Members) -> Callable[[], None]:
    """Have an object observed in place; the returned function ends it and may be called twice.

    Observers may leave in any order; with the last one the object gets its class back.
    """
    with _lock:
        layer = _layers.get(type(obj))
        if layer is None:
            layer = Layer(type(obj))
            made = observed_class(layer, members)
            _set_class(obj, made)
            _layers[made] = layer
        layer.observers = (*layer.observers, observer)

    def detach() -> None:
        with _lock:
            layer.observers = tuple(o for o in layer.observers if o is not observer)
            if not layer.observers and _layers.get(type(obj)) is layer:
                _set_class(obj, layer.original)

    return detach


def is_observed(obj: object) -> bool:
    """Return whether an object's class was exchanged."""
    return type(obj) in _layers


def copy_class(source: object, target: object) -> None:
    """Have a copy observed by those who observe the object it was made of."""
    _set_class(target, type(source))


def _as_original(name: str, original: type) -> Any:  # noqa: ANN401
    def copy(self: object, *args: object) -> object:
        copied: object = getattr(original, name)(self, *args)
        if type(copied) is type(self) and copied is not self:
            _set_class(copied, original)
        return copied

    return copy
