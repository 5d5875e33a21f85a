"""Find the adapters that are installed, through entry points; imports no framework itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.instrument.adapter import Adapter, Instrumentation
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias.protocols import Completer, Observer, RetrieverSpec
from rag_sourcebias.tagging.store import TagStore

__all__ = [
    "ADAPTER_GROUP",
    "METRICS_GROUP",
    "RETRIEVER_GROUP",
    "as_completer",
    "instrument",
    "metrics_factory",
    "retriever_factory",
]

ADAPTER_GROUP = "rag_sourcebias.adapters"
METRICS_GROUP = "rag_sourcebias.metrics"
RETRIEVER_GROUP = "rag_sourcebias.retrievers"
_BUILT_IN = ("bm25", "dense")
_CALLABLE = "callable"


def retriever_factory(kind: str) -> Callable[..., RetrieverSpec]:
    """Return the factory registered for a kind of retriever.

    A factory is called with an encoder and string options and returns a ``RetrieverSpec``. A
    package offers one by an entry point in the group ``rag_sourcebias.retrievers``.

    Raises
    ------
    DataError
        If no installed package offers that kind.
    MissingExtraError
        If the adapter's framework is not installed.
    """
    found = entry_points(group=RETRIEVER_GROUP)
    for entry in found:
        if entry.name == kind:
            factory: Callable[..., RetrieverSpec] = entry.load()
            return factory
    known = sorted({*_BUILT_IN, *(entry.name for entry in found)})
    raise DataError(f"retriever kind {kind!r} is unknown; there are {', '.join(known)}")


def metrics_factory(kind: str) -> Callable[..., Any] | None:
    """Return what writes metrics of a kind, such as "prometheus"; None where it is not installed.

    It is called with ``snapshots`` (callable) and ``canary=`` (callable or None) and returns an
    object whose ``alarm(alarm)`` counts an alarm and whose ``text()`` returns the metrics as bytes.
    A package offers one by an entry point in the group ``rag_sourcebias.metrics``.
    """
    for entry in entry_points(group=METRICS_GROUP, name=kind):
        try:
            factory: Callable[..., Any] = entry.load()
        except MissingExtraError:
            return None
        return factory
    return None


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
    found = tuple(entry_points(group=ADAPTER_GROUP))
    recorder = Recorder(
        observer, labels=labels, tags=tags, doc_id=doc_id, query_key=query_key, queue=queue
    )
    for entry in _candidates(obj, found):
        adapter: Adapter = entry.load()
        attachment = adapter.attach(obj, recorder)
        if attachment is not None:
            return Instrumentation(recorder, attachment)
    what = repr(obj) if isinstance(obj, str) else f"an object of type {_type_name(obj)}"
    raise DataError(f"{what} cannot be instrumented; expected {_accepted(found)}")


def as_completer(model: object, **options: Any) -> Completer:  # noqa: ANN401
    """Return a completer for a language model of a framework; a completer as it is.

    Parameters
    ----------
    model : object
        A LangChain chat model or LLM, a LlamaIndex LLM, or a
        :class:`~rag_sourcebias.protocols.Completer`.
    **options
        Of the framework's completer: ``name``, ``max_concurrency``, ``parameters``.

    Raises
    ------
    DataError
        If no adapter knows such an object; the message says what is accepted.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.

    Examples
    --------
    ::

        build_paired_corpus("my-corpus", as_completer(ChatOpenAI(model="gpt-4o-mini")), "paired")
    """
    if isinstance(model, Completer):
        if options:
            raise DataError(f"{', '.join(options)}: {_type_name(model)} is a completer already")
        return model
    found = tuple(entry_points(group=ADAPTER_GROUP))
    by_name = {entry.name: entry for entry in found}
    roots = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    for name in dict.fromkeys(root for root in roots if root in by_name):
        # An adapter of somebody else's may know retrievers only.
        make = getattr(by_name[name].load(), "completer", None)
        made: Completer | None = make(model, options) if make is not None else None
        if made is not None:
            return made
    adapters = (entry.load() for entry in sorted(found, key=lambda entry: entry.name))
    known = dict.fromkeys(getattr(adapter, "completes", "") for adapter in adapters)
    accepted = ["an OpenAICompleter, a LocalCompleter or another completer", *filter(None, known)]
    raise DataError(
        f"an object of type {_type_name(model)} cannot complete prompts; expected "
        f"{'; '.join(accepted)}"
    )


def _candidates(obj: object, found: tuple[EntryPoint, ...]) -> Iterator[EntryPoint]:
    """Yield the adapters for an object, by the packages of its classes."""
    by_name = {entry.name: entry for entry in found}
    if isinstance(obj, str):
        names = [obj.strip().lower().replace("-", "_")]
    else:
        roots = (base.__module__.partition(".")[0] for base in type(obj).__mro__)
        names = [name for name in dict.fromkeys(roots) if name in by_name]
        if not names and callable(obj):  # a framework's callable is no plain function
            names = [_CALLABLE]
    for name in names:
        if name in by_name:
            yield by_name[name]


def _accepted(found: tuple[EntryPoint, ...]) -> str:
    texts = dict.fromkeys(entry.load().accepts for entry in sorted(found, key=lambda e: e.name))
    return "; ".join(texts) or "nothing: no adapter is installed"


def _type_name(obj: object) -> str:
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
