"""The seam to frameworks: what an adapter offers, and the handle an instrumentation returns."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Protocol

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.recorder import Recorder

__all__ = ["Adapter", "Attachment", "Instrumentation"]


class Attachment(NamedTuple):
    """What an adapter did to an object.

    ``target`` is what the application uses from now on: the object itself where it could be
    instrumented in place. ``detach`` restores everything and may be called twice.
    """

    target: object
    detach: Callable[[], None]


class Adapter(Protocol):
    """Instruments the objects of one framework.

    A package offers one by an entry point in the group ``rag_sourcebias.adapters``. The name of
    the entry point is the top-level package of the objects' classes (a subclass counts), or a
    word by which users ask for the whole framework: ``instrument("langchain", observer)``.

    An adapter may offer more, each looked up by name in :mod:`rag_sourcebias.adapters` and absent
    where its framework has no such thing: ``completer(model, options)`` with the text
    ``completes``, and ``search(obj)`` with ``document_id(found, key)`` and the text ``searches``.
    """

    accepts: str
    """What can be given, for error messages: "a LangChain retriever or vector store"."""

    def attach(self, obj: object, recorder: Recorder) -> Attachment | None:
        """Instrument an object, or everything when given the name; None for a wrong object."""
        ...


class Instrumentation:
    """An instrumentation that is on until :meth:`close`; a context manager.

    Parameters
    ----------
    recorder : Recorder
    attachment : Attachment

    Attributes
    ----------
    target : object
        What the application uses from now on; the object that was given where it could be
        instrumented in place.
    """

    def __init__(self, recorder: Recorder, attachment: Attachment) -> None:
        self.target = attachment.target
        self._recorder = recorder
        self._detach: Callable[[], None] | None = attachment.detach

    @property
    def dropped(self) -> DroppedEvents:
        """Events that were lost, by reason."""
        return self._recorder.dropped

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every retrieval so far was observed; False when ``timeout`` seconds passed.

        Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Restore the object, then wait up to ``timeout`` seconds for queued events."""
        detach, self._detach = self._detach, None
        if detach is not None:
            with guarded(self.dropped, "instrumentation could not be removed"):
                detach()
            self.flush(timeout)

    def __enter__(self) -> Instrumentation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
