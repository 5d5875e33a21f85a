"""Retrievers of any framework, and a second stage that rescores their best documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from rag_sourcebias.core.data import Corpus, IntArray, Query, Run
from rag_sourcebias.core.errors import DataError, MissingExtraError, meant, require_at_least
from rag_sourcebias.core.protocols import Completer, Engine, Reranker, Retriever, RetrieverSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

# Which adapters are installed, and which of them an object is for.


ADAPTER_GROUP = "rag_sourcebias.adapters"
CALLABLE = "callable"
"""Name of the adapter for functions."""


def _entries(group: str) -> "EntryPoints":
    from importlib.metadata import entry_points  # reads e-mail too: 25 ms

    return entry_points(group=group)


@cache  # read once: file after file, while an event loop may be waiting
def installed() -> tuple["EntryPoint", ...]:
    """Return the adapters that installed packages offer, by name."""
    return tuple(sorted(_entries(ADAPTER_GROUP), key=lambda entry: entry.name))


def candidates(obj: object, found: tuple["EntryPoint", ...]) -> Iterator["EntryPoint"]:
    """Yield the adapters for an object, by the packages of its classes."""
    by_name = {entry.name: entry for entry in found}
    if isinstance(obj, str):
        names = [obj.strip().lower().replace("-", "_")]
    else:
        names = [name for name in roots(obj) if name in by_name]
        if not names and callable(obj):  # a framework's callable is no plain function
            names = [CALLABLE]
    yield from (by_name[name] for name in names if name in by_name)


def roots(obj: object) -> tuple[str, ...]:
    """Return the top-level packages of an object's classes, its own first."""
    return tuple(dict.fromkeys(c.__module__.partition(".")[0] for c in type(obj).__mro__))


def type_name(obj: object) -> str:
    """Return the name of an object's class as a message shows it."""
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


# Language models of frameworks as completers.


def as_completer(model: object, **options: Any) -> Completer:  # noqa: ANN401
    """Return a completer for a language model of a framework; a completer as it is.

    Parameters
    ----------
    model : object
        A LangChain chat model or LLM, a LlamaIndex LLM, or a
        :class:`~rag_sourcebias.core.Completer`.
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
            raise DataError(f"{', '.join(options)}: {type_name(model)} is a completer already")
        return model
    found = installed()
    for entry in candidates(model, found):
        # An adapter of somebody else's may know retrievers only.
        make = getattr(entry.load(), "completer", None)
        made: Completer | None = make(model, options) if make is not None else None
        if made is not None:
            return made
    known = dict.fromkeys(getattr(entry.load(), "completes", "") for entry in found)
    accepted = ["an OpenAICompleter, a LocalCompleter or another completer", *filter(None, known)]
    raise DataError(
        f"an object of type {type_name(model)} cannot complete prompts; expected "
        f"{'; '.join(accepted)}"
    )


# Retrievers, engines and metrics that installed packages offer.


ENGINE_GROUP = "rag_sourcebias.engines"
METRICS_GROUP = "rag_sourcebias.metrics"
RETRIEVER_GROUP = "rag_sourcebias.retrievers"


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
    return _offered(RETRIEVER_GROUP, "retriever kind", kind, built_in=("bm25", "dense"))


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
    return _offered(ENGINE_GROUP, "engine", kind)


def metrics_factory(kind: str) -> Callable[..., Any] | None:
    """Return what writes metrics of a kind, such as "prometheus"; None where it is not installed.

    It is called with ``snapshots`` (callable) and returns an
    object whose ``alarm(alarm)`` counts an alarm and whose ``text()`` returns the metrics as bytes.
    A package offers one by an entry point in the group ``rag_sourcebias.metrics``.
    """
    for entry in _entries(METRICS_GROUP).select(name=kind):
        with suppress(MissingExtraError):
            return cast("Callable[..., Any]", entry.load())
    return None


def _offered(
    group: str, what: str, kind: str, *, built_in: tuple[str, ...] = ()
) -> Callable[..., Any]:
    found = _entries(group)
    if kind in found.names:
        return cast("Callable[..., Any]", found[kind].load())
    known = sorted({*built_in, *found.names})
    offered = f"{', '.join(known) or 'none'}{meant(kind, known)}"
    raise DataError(f"{what} {kind!r} is unknown; there are {offered}")


# Ask a retriever of any framework, and read ids off what it returns.


# How objects of people's own are asked, most often.
_ASKS = ("invoke", "retrieve", "search", "query", "get_relevant_documents", "ainvoke", "aretrieve")


def as_search(obj: object, *, depth: int | None = None) -> Callable[[str], Iterable[Any]]:
    """Return what takes the text of a query to what an object retrieves, best first.

    Parameters
    ----------
    obj : object
        A LangChain retriever, chain or vector store, a LlamaIndex retriever, query engine, index
        or vector store, a Chroma collection, or a function.
    depth : int, optional
        Documents that stores and indexes are asked for; retrievers and functions return what they
        are set to.

    Raises
    ------
    DataError
        If no adapter can ask such an object; the message says what is accepted.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.
    """
    found = installed()
    for entry in () if isinstance(obj, str) else candidates(obj, found):
        make = getattr(adapter := entry.load(), "search", None)
        made: Callable[[str], Iterable[Any]] | None = None
        if make is not None:  # an adapter that describes what it finds can be told how much
            made = make(obj, depth) if depth and hasattr(adapter, "describe") else make(obj)
        if made is not None:
            return made
    known = dict.fromkeys(getattr(entry.load(), "searches", "") for entry in found)
    asks = next((name for name in _ASKS if callable(getattr(obj, name, None))), None)
    raise DataError(
        f"an object of type {type_name(obj)} cannot be asked"
        f"{f' as it is: pass its method {asks}' if asks else ''}; expected "
        f"{'; '.join(filter(None, known)) or 'nothing: no adapter is installed'}"
    )


Held: TypeAlias = Iterable[tuple[str, str | None, Mapping[str, object] | None]]
"""Id, text and metadata of all documents of a store."""


def held_by(obj: object) -> Held | None:
    """Return id, text and metadata of all that a framework's store holds; None of anything else.

    Raises
    ------
    DataError
        If it is a framework's and does not tell what it holds.
    """
    found = list(candidates(obj, installed()))
    for entry in found:
        make = getattr(entry.load(), "held", None)
        if make is not None and (held := make(obj)) is not None:
            return cast("Held", held)
    if found:
        raise DataError(
            f"an object of type {type_name(obj)} does not tell what it holds; give the collection, "
            "index or vector store itself (of LangChain: Chroma, FAISS, in memory), or {id: text}, "
            "a frame or a file with id, text and source"
        )
    return None


# A second stage that rescores the best documents of a first stage.


def rerank(
    run: Run,
    reranker: Reranker,
    corpus: Corpus,
    queries: Sequence[Query],
    *,
    depth: int = 100,
) -> Run:
    """Reorder the top ``depth`` documents of each query by a reranker.

    Documents below ``depth`` are dropped: their first-stage scores cannot be compared with the
    reranker's. Documents that the reranker scores equally keep the order of the first stage.
    Each distinct (query text, document text) pair is scored once, so exact copies tie.

    Parameters
    ----------
    run : Run
        First stage.
    reranker : Reranker
    corpus : Corpus
        Texts of every document among the top ``depth``.
    queries : sequence of Query
        Texts of every query of the run; others are ignored.
    depth : int
        At least 1.

    Returns
    -------
    Run
        Named ``"<first> > <reranker>"``, with the queries of ``run`` in their order.

    Raises
    ------
    DataError
        If a query or document of the run has no text, or a score is NaN (the message names query
        and document).
    """
    require_at_least(1, depth=depth)
    top = run.top(depth)
    asked, rows = searched_texts(top, corpus, queries)
    pairs = [
        (asked[query], corpus.texts[row])
        for query, row in zip(top.query_codes.tolist(), rows.tolist(), strict=True)
    ]
    row_of: dict[tuple[str, str], int] = {}
    places = [row_of.setdefault(pair, len(row_of)) for pair in pairs]
    distinct = np.asarray(reranker.score(list(row_of)), dtype=np.float32)
    if distinct.shape != (len(row_of),):
        raise DataError(
            f"reranker {reranker.name!r} returned shape {distinct.shape} for {len(row_of)} pairs; "
            f"expected ({len(row_of)},)"
        )
    scores = distinct[np.array(places, dtype=np.int64)]
    bad = np.flatnonzero(np.isnan(scores))
    if len(bad):
        entry = bad[0]
        raise DataError(
            f"reranker {reranker.name!r} gave {len(bad)} NaN score(s), first for query "
            f"{top.query_ids[top.query_codes[entry]]!r}, document "
            f"{top.doc_ids[top.doc_codes[entry]]!r}; a score must be a number (empty texts and "
            "half precision are usual causes)"
        )
    return Run.from_arrays(
        query_ids=top.query_ids,
        query_codes=top.query_codes,
        doc_codes=top.doc_codes,
        doc_ids=top.doc_ids,
        scores=scores,
        name=_name(run.name, reranker.name),
        sort_by_score=True,
    )


def searched_texts(
    run: Run, corpus: Corpus, queries: Sequence[Query]
) -> tuple[list[str], IntArray]:
    """Return the text of each query of a run, and the row of each of its entries in the corpus.

    Raises
    ------
    DataError
        If a query has no text, or the corpus lacks a document.
    """
    text_of = {query.query_id: query.text for query in queries}
    missing = [query_id for query_id in run.query_ids if query_id not in text_of]
    if missing:
        raise DataError(
            f"run {run.name!r} has {len(missing)} queries without a text, first {missing[0]!r}; "
            "pass a Query for each"
        )
    rows = corpus.tags.rows_for(run.doc_ids)[run.doc_codes]
    if -1 in rows:
        lacking = run.doc_ids[run.doc_codes[np.argmin(rows)]]
        raise DataError(
            f"run {run.name!r} holds document {lacking!r}, which the corpus does not have; give "
            "the corpus that was searched"
        )
    return [text_of[query_id] for query_id in run.query_ids], rows


@dataclass(kw_only=True)
class _RerankedRetriever:
    name: str
    first: Retriever
    reranker: Reranker
    corpus: Corpus
    depth: int

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``min(depth, reranked depth)`` documents for each query."""
        require_at_least(1, depth=depth)
        run = self.first.retrieve(queries, self.depth)
        return rerank(run, self.reranker, self.corpus, queries, depth=self.depth).top(depth)


@dataclass
class RerankedSpec:
    """Recipe of a first stage with a reranker on top.

    Parameters
    ----------
    first : RetrieverSpec
    reranker : Reranker
    depth : int
        Documents of the first stage that are rescored; the rest is dropped.
    """

    first: RetrieverSpec
    reranker: Reranker
    depth: int = 100

    def __post_init__(self) -> None:
        require_at_least(1, depth=self.depth)
        self.name = _name(self.first.name, self.reranker.name)

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state, those of the reranker prefixed with ``rerank.``."""
        return {
            **self.first.settings,
            "rerank.depth": str(self.depth),
            **{f"rerank.{key}": value for key, value in self.reranker.settings.items()},
        }

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage."""
        return _RerankedRetriever(
            name=self.name,
            first=self.first.build(corpus),
            reranker=self.reranker,
            corpus=corpus,
            depth=self.depth,
        )


def _name(first: str, second: str) -> str:
    return f"{first} > {second}"
