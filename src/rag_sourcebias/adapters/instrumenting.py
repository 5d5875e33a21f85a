"""Observe the retrievals of an object of any framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from rag_sourcebias.adapters.installed import candidates, installed, type_name
from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.adapter import Adapter, Instrumentation
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging.store import TagStore

__all__ = ["instrument"]


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
