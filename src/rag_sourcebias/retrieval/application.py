"""An application's own retriever, asked over the documents that it holds."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_sourcebias.core.data import Corpus, Query, Run
from rag_sourcebias.core.errors import DataError, SourceBiasError, require_at_least
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.protocols import Retriever
from rag_sourcebias.intake.objects import a
from rag_sourcebias.intake.rankings import entries_of
from rag_sourcebias.intake.results import is_number, listed
from rag_sourcebias.retrieval.findings import RetrievalCode
from rag_sourcebias.retrieval.rerank import CALLABLE, as_search, installed, roots, type_name

if TYPE_CHECKING:
    import asyncio


class Hit(NamedTuple):
    """One document as an application returned it.

    Parameters
    ----------
    doc_id : str or None
        The application's id; None where it gave none.
    text : str or None
    metadata : mapping
    score : float or None
        Only tells which documents tie: the order is the ranking.
    """

    doc_id: str | None
    text: str | None
    metadata: Mapping[str, object]
    score: float | None


# Find the retriever of an application by its name on the command line.


def load_object(text: str, option: str) -> Any:  # noqa: ANN401
    """Import what ``module:name`` stands for, from the current folder too.

    Parameters
    ----------
    text : str
        Such as ``"my_app.search:retriever"``; a prefix ``app:`` is ignored.
    option : str
        Where the user wrote it, for messages.

    Raises
    ------
    DataError
        If there is no such module or name.
    """
    module, _, attribute = text.removeprefix("app:").partition(":")
    if not (module and attribute):
        raise DataError(f"{option} {text!r}: write module:name, such as my_app.search:retriever")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does
    try:
        return attrgetter(attribute)(import_module(module))
    except ModuleNotFoundError as error:
        raise DataError(f"{option} {text!r}: there is no module {error.name!r} here") from error
    except AttributeError as error:
        raise DataError(f"{option} {text!r}: {error}") from error


def application_spec(
    text: str, option: str = "--retriever", *, name: str | None = None, id_key: str | None = None
) -> ApplicationSpec:
    """Return the recipe for ``app:module:name``, named so unless told otherwise.

    Raises
    ------
    DataError
        If there is no such object, or it cannot be asked.
    """
    found = load_object(text, option)
    try:
        return ApplicationSpec(found, name=name or text, id_key=id_key)
    except DataError as error:
        raise DataError(f"{option} {text!r}: {error}") from error


class ApplicationSpec:
    """Recipe of a retriever that an application has built already.

    Unlike other recipes it indexes nothing: ``build`` keeps the corpus to tell which of its
    documents came back. Controls that index other texts do not apply to it.

    Parameters
    ----------
    obj : object
        Whatever :func:`~rag_sourcebias.retrieval.as_search` takes, also an asynchronous function.
    name : str, optional
        By default the name of a function, or else that of the class.
    id_key : str, optional
        Where the id of the data stands in the metadata. By default ids, keys of the metadata and
        texts are tried, and the report says which fitted.

    Raises
    ------
    DataError
        If the object cannot be asked; the message says what can.
    """

    def __init__(self, obj: object, *, name: str | None = None, id_key: str | None = None) -> None:
        require_askable(obj)
        self.obj = obj
        self.name = name or str(getattr(obj, "__name__", type(obj).__name__))
        self.id_key = id_key
        self.progress: Callable[[int, int], None] | None = None
        self.settings: Mapping[str, str] = {
            "retriever": type_name(obj),
            "documents": "of the application",
        }
        try:  # what cannot be asked is refused before data are read
            as_search(_in_turn(obj, None))
        except SourceBiasError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{type_name(obj)} cannot be asked: {error}") from error

    def build(self, corpus: Corpus) -> ApplicationRetriever:
        """Keep the corpus: nothing is indexed."""
        return ApplicationRetriever(self, corpus)


class FinishedRun:
    """Rankings that exist already, or a retriever over a corpus of its own, as a recipe."""

    def __init__(self, found: Run | Retriever, *, name: str | None = None) -> None:
        self.name = name or found.name
        self.run = replace(found, name=self.name) if isinstance(found, Run) else None
        self._found = found
        self.settings: Mapping[str, str] = {"results": "finished before the audit"}

    def build(self, corpus: Corpus) -> Retriever:  # noqa: ARG002 - it indexes nothing
        """Return itself: nothing is indexed."""
        return self

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return the rankings."""
        if isinstance(self._found, Run):
            return self._found
        return self._found.retrieve(queries, depth)


_AWAITED = ("ainvoke", "aretrieve")  # of LangChain, of LlamaIndex
_ENCODES = ("encode_query", "embed_query", "get_query_embedding")


def require_askable(obj: object) -> None:
    """Refuse what people pass by mistake, in one sentence."""
    if inspect.isclass(obj):
        raise DataError(
            f"{obj.__qualname__} is a class, and a retriever is an object of one: pass "
            f"{obj.__name__}(…) or the retriever that it makes"
        )
    if any(callable(getattr(obj, name, None)) for name in _ENCODES):
        raise DataError(
            f"{type_name(obj)} is an embedding model, which retrieves nothing by itself: write "
            "'dense:<its name or folder>', or pass the store or index that uses it"
        )
    if isinstance(obj, ModuleType):
        raise DataError(f"{obj.__name__} is a module; pass the retriever in it")
    if inspect.iscoroutine(obj) or inspect.isgenerator(obj) or inspect.isasyncgen(obj):
        if inspect.iscoroutine(obj):
            obj.close()
        raise DataError(
            f"{getattr(obj, '__name__', 'this')!r} is what a call of a function gave; pass the "
            "function itself, without brackets"
        )
    if inspect.isgeneratorfunction(obj) or inspect.isasyncgenfunction(obj):
        raise DataError(
            f"{obj.__name__} yields documents one by one; pass a function that returns the list"
        )


def _asynchronous(obj: object) -> bool:
    return inspect.iscoroutinefunction(obj) or inspect.iscoroutinefunction(
        getattr(obj, "__call__", None)  # noqa: B004 - whether calling it has to be awaited
    )


def _in_turn(obj: Any, runner: asyncio.Runner | None) -> Any:  # noqa: ANN401
    """Return an asynchronous function as one that waits for its result; others as they are."""
    if not _asynchronous(obj):
        return obj

    def ask(text: str) -> Any:  # noqa: ANN401
        if runner is None:
            raise DataError(f"{getattr(obj, '__name__', obj)!r} has to be awaited")
        return runner.run(obj(text))

    return ask


class ApplicationRetriever:
    """An application's retriever with the data in which its documents are looked up."""

    def __init__(self, spec: ApplicationSpec, corpus: Corpus) -> None:
        self.name = spec.name
        self.spec = spec
        self.corpus = corpus
        self.notes: tuple[Finding, ...] = ()

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Ask each query, and give documents of the data their ids.

        Raises
        ------
        DataError
            If the application fails, returns no list of documents, or none of its documents is in
            the data.
        """
        require_at_least(1, depth=depth)
        lists = self._ask(queries, depth)
        hits = list(chain.from_iterable(lists))
        ids, matched = _Matching(self.corpus, self.spec.id_key).of(hits, self.name)
        most = max(map(len, lists))
        self.notes = (matched, *([RetrievalCode.AT_MOST(n=most)] if most < depth else ()))
        left = iter(ids)
        scored = all(is_number(hit.score) for hit in hits)
        found = [
            (list(islice(left, len(part))), [hit.score for hit in part] if scored else None)
            for part in lists
        ]
        query_ids = [query.query_id for query in queries]
        return entries_of(f"retriever {self.name!r}", query_ids, found).run(self.name)

    def _ask(self, queries: Sequence[Query], depth: int) -> list[list[Hit]]:
        obj = self.spec.obj
        if _asynchronous(obj):
            return self._awaited(obj, queries, depth)
        try:
            return self._answers(as_search(obj, depth=depth), queries, depth)
        except DataError as error:
            waiting = next(
                (ask for name in _AWAITED if callable(ask := getattr(obj, name, 0))), None
            )
            if waiting is None or not isinstance(error.__cause__, NotImplementedError):
                raise
            return self._awaited(waiting, queries, depth)  # it knows no other way

    def _awaited(self, obj: Any, queries: Sequence[Query], depth: int) -> list[list[Hit]]:  # noqa: ANN401
        import asyncio  # half of what starting a command takes

        if asyncio._get_running_loop() is not None:
            raise DataError(
                f"retriever {self.name!r} is asynchronous and an event loop is running here, as in "
                "a notebook: run the audit in a thread, await asyncio.to_thread(rsb.audit, "
                "retriever, data), or pass a function that is not asynchronous"
            )
        with asyncio.Runner() as runner:
            return self._answers(as_search(_in_turn(obj, runner)), queries, depth)

    def _answers(
        self, search: Callable[[str], Iterable[Any]], queries: Sequence[Query], depth: int
    ) -> list[list[Hit]]:
        lists = []
        for done, query in enumerate(queries):
            if self.spec.progress is not None:
                self.spec.progress(done, len(queries))
            try:
                found = search(query.text)
            except SourceBiasError:
                raise
            except Exception as error:
                raise DataError(
                    f"retriever {self.name!r} failed on query {query.query_id!r}: "
                    f"{type(error).__name__}: {error}"
                ) from error
            found = self._listed(found, query)
            text = isinstance(found, str | bytes | Mapping)
            if text or not isinstance(found, Iterable) or inspect.isawaitable(found):
                raise DataError(
                    f"retriever {self.name!r} returned {a(found)} for query {query.query_id!r}; "
                    "expected a list of documents (ids, or objects or dicts with an id, text or "
                    "metadata), best first; where it is a chain or a tool around a retriever, pass "
                    "that"
                )
            lists.append([_described(one, self.name) for one in list(found)[:depth]])
        return lists

    def _listed(self, found: Any, query: Query) -> Any:  # noqa: ANN401
        """Return documents best first; what holds none as it is."""
        if isinstance(found, Mapping) and found and all(map(is_number, found.values())):
            return sorted(found.items(), key=lambda row: -row[1])
        try:
            return listed(found)
        except DataError as error:
            raise DataError(
                f"retriever {self.name!r}, query {query.query_id!r}: {error}"
            ) from error


def _described(found: Any, name: str) -> Hit:  # noqa: ANN401
    by_name = {entry.name: entry for entry in installed()}
    packages = roots(found[0] if isinstance(found, tuple) and found else found)
    for package in (*packages, CALLABLE):
        describe = (
            getattr(by_name[package].load(), "describe", None) if package in by_name else None
        )
        if describe is not None:
            try:
                hit: Hit = describe(found)
            except (TypeError, AttributeError, IndexError, ValueError) as error:
                raise DataError(
                    f"retriever {name!r} returned {a(found)} among its documents; expected ids, "
                    "or objects or dicts with an id, text or metadata"
                ) from error
            return hit
    return Hit(doc_id=str(found), text=None, metadata={}, score=None)


# Which documents of the data came back.


class _Matching:
    """Finds documents by id, by a key of their metadata, or by their text."""

    def __init__(self, corpus: Corpus, id_key: str | None) -> None:
        self.rows = corpus.tags.row_of
        self.example = next(iter(corpus.doc_ids), "")
        self.id_key = id_key
        self.by_text: dict[str, str | None] = {}
        self.corpus = corpus
        sources = corpus.tags.source_codes.tolist()
        first: dict[str, int] = {}
        for row, (doc_id, text) in enumerate(corpus):
            if not (plain := _plain(text)):
                continue
            other = first.setdefault(plain, row)
            if sources[other] != sources[row]:
                self.by_text[plain] = None  # copies of different sources: the text does not tell
            else:
                self.by_text.setdefault(plain, doc_id)

    def of(self, hits: Sequence[Hit], name: str) -> tuple[list[str], Finding]:
        """Return the id of each document and how they were found."""
        if not hits:
            raise DataError(f"retriever {name!r} returned no document for any query")
        key = self.id_key or self._best_key(hits)
        ways: Counter[str] = Counter()
        ids = [self._one(hit, key, ways) for hit in hits]
        if ways[""]:
            self._find_parts(hits, ids, ways)
        ids = [id_ or _unknown(hit) for id_, hit in zip(ids, hits, strict=True)]
        found = sum(n for way, n in ways.items() if way)
        if not found:
            raise DataError(
                f"none of the {len(hits):,} documents that retriever {name!r} returned is in the "
                f"data: ids there are such as {self.example!r}, here {hits[0].doc_id!r}, and no "
                "text or metadata is equal; say with id_key= which key of the metadata holds the "
                "id of the data"
            )
        return ids, RetrievalCode.MATCHED(
            n=found,
            n_all=len(hits),
            n_id=ways["id"],
            n_key=ways["metadata"],
            n_text=ways["text"],
            n_part=ways["part"],
        )

    def _best_key(self, hits: Sequence[Hit]) -> str | None:
        """Return the key of the metadata that most often holds an id of the data."""
        counts = Counter(
            key
            for hit in hits
            for key, value in hit.metadata.items()
            if isinstance(value, str | int) and str(value) in self.rows
        )
        return counts.most_common(1)[0][0] if counts else None

    def _one(self, hit: Hit, key: str | None, ways: Counter[str]) -> str:
        exact = self.by_text.get(_plain(hit.text)) if hit.text else None
        named = None if key is None else hit.metadata.get(key)
        candidates: list[tuple[str, object]] = [("id", hit.doc_id)] if self.id_key is None else []
        if not isinstance(named, list | tuple | dict):  # no id, and too deep to be written perhaps
            candidates.append(("metadata", named))
        for way, value in candidates:
            # positions such as "1" may be ids of the data by accident: the text knows better
            if value is not None and str(value) in self.rows and exact in (None, str(value)):
                ways[way] += 1
                return str(value)
        if exact is not None:
            ways["text"] += 1
            return exact
        ways[""] += 1
        return ""

    def _find_parts(self, hits: Sequence[Hit], ids: list[str], ways: Counter[str]) -> None:
        """Find the documents of which an application holds parts, as text splitters make them.

        A part is looked up by the words in its middle; then all of it has to be in the document.
        """
        wanted: dict[str, list[str]] = {}
        for hit, id_ in zip(hits, ids, strict=True):
            if not id_ and hit.text and len(words := hit.text.split()) >= _PART_WORDS:
                start = (len(words) - _PART_WORDS) // 2
                key = " ".join(words[start : start + _PART_WORDS])
                wanted.setdefault(key, []).append(" ".join(words))
        found: dict[str, str] = {}
        sources: dict[str, int] = {}
        for row, (doc_id, text) in enumerate(self.corpus if wanted else ()):
            words = text.split()
            plain = " ".join(words)
            source = int(self.corpus.tags.source_codes[row])
            for at in range(len(words) - _PART_WORDS + 1):
                for part in wanted.get(" ".join(words[at : at + _PART_WORDS]), ()):
                    if part in plain:
                        known = sources.setdefault(part, source) == source
                        found[part] = found.get(part, doc_id) if known else ""
        for at, hit in enumerate(hits):
            if not ids[at] and hit.text and (whole := found.get(_plain(hit.text))):
                ids[at] = whole
                ways["part"] += 1
                ways[""] -= 1


_PART_WORDS = 8  # words by which a part of a document is looked up


def _unknown(hit: Hit) -> str:
    digest = hashlib.blake2b((hit.text or "").encode(errors="replace"), digest_size=8)
    return f"{hit.doc_id or digest.hexdigest()} (not in the data)"


def _plain(text: str) -> str:
    return " ".join(text.split())
