"""Find the adapters that are installed, through entry points; imports no framework itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.instrument.adapter import Adapter, Instrumentation
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias.protocols import Completer, Engine, Observer, RetrieverSpec
from rag_sourcebias.tagging.store import TagStore

__all__ = [
    "ADAPTER_GROUP",
    "ENGINE_GROUP",
    "METRICS_GROUP",
    "RETRIEVER_GROUP",
    "as_completer",
    "as_search",
    "document_id",
    "engine_factory",
    "instrument",
    "metrics_factory",
    "retriever_factory",
]

ADAPTER_GROUP = "rag_sourcebias.adapters"
ENGINE_GROUP = "rag_sourcebias.engines"
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


def engine_factory(kind: str) -> Callable[..., Engine]:
    """Return the factory registered for a kind of engine, such as "ray".

    It is called with ``workers`` (int or None) and ``address`` (str or None). A package offers one
    by an entry point in the group ``rag_sourcebias.engines``.

    Raises
    ------
    DataError
        If no installed package offers that kind.
    MissingExtraError
        If the engine's package is not installed.
    """
    found = entry_points(group=ENGINE_GROUP)
    for entry in found:
        if entry.name == kind:
            factory: Callable[..., Engine] = entry.load()
            return factory
    known = sorted(entry.name for entry in found)
    raise DataError(f"engine {kind!r} is unknown; there are {', '.join(known) or 'none'}")


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
    for name in (root for root in _roots(model) if root in by_name):
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


def as_search(obj: object) -> Callable[[str], Iterable[Any]]:
    """Return what takes the text of a query to what an object retrieves, best first.

    Parameters
    ----------
    obj : object
        A LangChain retriever, chain or vector store, a LlamaIndex retriever, query engine or
        index, or a function. :func:`document_id` reads ids off what comes back.

    Raises
    ------
    DataError
        If no adapter can ask such an object; the message says what is accepted.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.
    """
    found = tuple(entry_points(group=ADAPTER_GROUP))
    for entry in () if isinstance(obj, str) else _candidates(obj, found):
        make = getattr(entry.load(), "search", None)
        made: Callable[[str], Iterable[Any]] | None = make(obj) if make is not None else None
        if made is not None:
            return made
    adapters = (entry.load() for entry in sorted(found, key=lambda entry: entry.name))
    known = dict.fromkeys(getattr(adapter, "searches", "") for adapter in adapters)
    raise DataError(
        f"an object of type {_type_name(obj)} cannot be asked; expected "
        f"{'; '.join(filter(None, known)) or 'nothing: no adapter is installed'}"
    )


def document_id(found: Any, *, key: str | None = None) -> str:  # noqa: ANN401
    """Return the id of a document as a retriever gave it out; an id as it is.

    Parameters
    ----------
    found : object
        A LangChain document, a LlamaIndex node, or what a function returns: an id, or a dict or
        an object with one.
    key : str, optional
        Where the id stands in the metadata; otherwise it is the framework's own.

    Raises
    ------
    DataError
        If there is none.
    """
    return found if isinstance(found, str) else str(_id_reader(_roots(found))(found, key))


@lru_cache(maxsize=64)  # looking through the entry points takes longer than a search
def _id_reader(roots: tuple[str, ...]) -> Callable[[object, str | None], str]:
    by_name = {entry.name: entry for entry in entry_points(group=ADAPTER_GROUP)}
    for name in (*roots, _CALLABLE):
        read = getattr(by_name[name].load(), "document_id", None) if name in by_name else None
        if read is not None:
            reader: Callable[[object, str | None], str] = read
            return reader
    raise DataError("nothing reads ids off documents: no adapter is installed")


def _candidates(obj: object, found: tuple[EntryPoint, ...]) -> Iterator[EntryPoint]:
    """Yield the adapters for an object, by the packages of its classes."""
    by_name = {entry.name: entry for entry in found}
    if isinstance(obj, str):
        names = [obj.strip().lower().replace("-", "_")]
    else:
        names = [name for name in _roots(obj) if name in by_name]
        if not names and callable(obj):  # a framework's callable is no plain function
            names = [_CALLABLE]
    for name in names:
        if name in by_name:
            yield by_name[name]


def _roots(obj: object) -> tuple[str, ...]:
    """Return the top-level packages of an object's classes, its own first."""
    names = (base.__module__.partition(".")[0] for base in type(obj).__mro__)
    return tuple(dict.fromkeys(names))


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
