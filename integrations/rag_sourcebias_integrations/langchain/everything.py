"""Observe every retriever of the process, without any change in the application."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from langchain_core.tracers.context import register_configure_hook

from rag_sourcebias_integrations.langchain.handler import RecordingHandler

__all__ = ["observe_everything"]


class _Slot:
    """Stands where LangChain expects a ContextVar, of which it only calls ``get``.

    A handler set in a ContextVar is not seen by plain threads, its default is but can never be
    taken back, and a hook cannot be unregistered. An empty slot costs one call that returns None.
    """

    def __init__(self) -> None:
        self.handler: RecordingHandler | None = None

    def get(self, default: Any = None) -> Any:  # noqa: ANN401
        """Return the handler to attach to every run, or None."""
        return self.handler or default


_slots: list[_Slot] = []
_lock = threading.Lock()


def observe_everything(handler: RecordingHandler) -> Callable[[], None]:
    """Attach a handler to every run from now on; the returned function takes it back.

    Hooks are registered as often as handlers were attached at once, and used again.
    """
    with _lock:
        slot = next((slot for slot in _slots if slot.handler is None), None)
        if slot is None:
            slot = _Slot()
            _slots.append(slot)
            register_configure_hook(slot, inheritable=True)
        slot.handler = handler

    def detach() -> None:
        handler.stop()
        with _lock:
            if slot.handler is handler:  # called twice, another may have taken the place
                slot.handler = None

    return detach
