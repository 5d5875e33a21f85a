"""Observe the retrievals of an object of any framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.instrument.events import DroppedEvents, RetrievalEvent, guarded
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias.retrieval.adapters import candidates, installed, type_name

# The seam to frameworks: what an adapter offers, and the handle an instrumentation returns.


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


# Observe the retrievals of an object of any framework.


def instrument(
    obj: object,
    observer: Observer[RetrievalEvent],
    *,
    labels: Mapping[str, str] | None = None,
    tags: TagStore | None = None,
    doc_id: Callable[[Any], str] | None = None,
    query_key: bytes | None = None,
    queue: bool = True,
) -> Instrumentation:
    """Observe every retrieval of an object, or of a whole framework, without changing any result.

    Parameters
    ----------
    obj : object or str
        A LangChain retriever or vector store, a LlamaIndex retriever, query engine or index, a
        Chroma collection or client, or a function from a query to documents. A name
        (``"langchain"``, ``"llama-index"``, ``"chroma"``) stands for everything in the process.
    observer : Observer of RetrievalEvent
        For example :class:`~rag_sourcebias.instrument.ExposureObserver`.
    labels : mapping of str to str, optional
        Added to every event ("collection", "route", …).
    tags : TagStore, optional
        Where tags are looked up; otherwise, and for documents it does not know, the ``rsb_`` keys
        of the documents' metadata count.
    doc_id : callable, optional
        From a native document to its id, where the framework's own is not the one wanted.
    query_key : bytes, optional
        Record a hash of each query under this key; without it nothing of the query is recorded.
    queue : bool
        Observe on a thread of its own, so that no retrieval waits for the observer.

    Returns
    -------
    Instrumentation
        ``target`` is what to use from now on (``obj`` itself except for functions), ``close()``
        restores everything, ``dropped`` counts what was lost. Also a context manager.

    Raises
    ------
    DataError
        If the object cannot be instrumented; the message says what can.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.
    """
    found = installed()
    recorder = Recorder(
        observer, labels=labels, tags=tags, doc_id=doc_id, query_key=query_key, queue=queue
    )
    for entry in candidates(obj, found):
        adapter: Adapter = entry.load()
        attachment = adapter.attach(obj, recorder)
        if attachment is not None:
            return Instrumentation(recorder, attachment)
    what = repr(obj) if isinstance(obj, str) else f"an object of type {type_name(obj)}"
    raise DataError(f"{what} cannot be instrumented; expected {_accepted(found)}")


def _accepted(found: tuple[EntryPoint, ...]) -> str:
    texts = dict.fromkeys(entry.load().accepts for entry in found)
    return "; ".join(texts) or "nothing: no adapter is installed"
