"""One observed call of ``Collection.query``: what is asked beside, and given back as asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from rag_sourcebias.instrument import Recorder, guarded
from rag_sourcebias_integrations.chroma.convert import rankings, space_of

__all__ = ["observing"]

_TRANSPORT = ("httpx", "httpcore")


def observing(
    query: Callable[..., Any],
    recorders_of: Callable[[Any], Sequence[Recorder]],
    call: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a ``query`` method that is observed.

    Parameters
    ----------
    query : function
        ``Collection.query`` or ``AsyncCollection.query``.
    recorders_of : callable
        From the collection to those that record it at this moment.
    call : callable, optional
        Called in place of ``query``.
    """
    places = {name: at for at, name in enumerate([*inspect.signature(query).parameters][1:])}
    inner = query if call is None else call

    def observed(collection: Any, one: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ANN401
        ask: Callable[..., Any] = partial(inner, collection)
        for recorder in recorders_of(collection):
            ask = partial(one, recorder, collection, places, ask)
        return ask

    if inspect.iscoroutinefunction(query):

        @wraps(query)
        async def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            return await observed(self, _ask_async)(*args, **kwargs)

    else:

        @wraps(query)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            return observed(self, _ask)(*args, **kwargs)

    return method


def _ask(
    recorder: Recorder,
    collection: Any,  # noqa: ANN401
    places: dict[str, int],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return ask(*args, **kwargs)
        query = _Query(recorder, collection, places, args, kwargs)
        if query.added:
            try:
                result = ask(*query.args, **query.kwargs)
            except Exception as error:
                if not query.may_be_to_blame(error):
                    raise
            else:
                if query.finish(result):
                    return result
        result = ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


async def _ask_async(
    recorder: Recorder,
    collection: Any,  # noqa: ANN401
    places: dict[str, int],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return await ask(*args, **kwargs)
        query = _Query(recorder, collection, places, args, kwargs)
        if query.added:
            try:
                result = await ask(*query.args, **query.kwargs)
            except Exception as error:
                if not query.may_be_to_blame(error):
                    raise
            else:
                if query.finish(result):
                    return result
        result = await ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


class _Query:
    """The arguments of one call, with the fields that are needed for tags and scores."""

    __slots__ = (
        "_collection",
        "_failure",
        "_include",
        "_recorder",
        "_texts",
        "added",
        "args",
        "kwargs",
    )

    def __init__(
        self,
        recorder: Recorder,
        collection: Any,  # noqa: ANN401
        places: dict[str, int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._recorder, self._collection = recorder, collection
        self.args, self.kwargs = args, kwargs
        self.added: tuple[str, ...] = ()
        self._failure: BaseException | None = None
        self._include: Any = None
        self._texts: Any = None
        with guarded(recorder.dropped, "query could not be read"):
            self._texts = _argument(args, kwargs, "query_texts", places)
            include = self._include = _argument(args, kwargs, "include", places)
            # Without "include" Chroma returns all we need. With "data" it returns fields nobody
            # asked for, which could not be told from ours.
            if type(include) is list and "data" not in include:
                needed = ("metadatas", "distances") if recorder.reads_metadata else ("distances",)
                self._add(tuple(name for name in needed if name not in include), places)

    def _add(self, added: tuple[str, ...], places: dict[str, int]) -> None:
        if not added:
            return
        wide = [*self._include, *added]
        if "include" in self.kwargs:
            self.kwargs = {**self.kwargs, "include": wide}
        else:
            at = places["include"]
            self.args = (*self.args[:at], wide, *self.args[at + 1 :])
        self.added = added

    def finish(self, result: Any) -> bool:  # noqa: ANN401
        """Record a result and take out what was added; False when that was not possible."""
        recorder = self._recorder
        with guarded(recorder.dropped, "result could not be read"):
            texts = [self._texts] if isinstance(self._texts, str) else self._texts or ()
            labels = {"collection": self._collection.name}
            doc_id = recorder.doc_id
            for index, found in enumerate(rankings(result, space=space_of(self._collection))):
                recorder.record(
                    found.ids if doc_id is None else (doc_id(row) for row in found.rows()),
                    metadata=found.metadata,
                    scores=found.scores,
                    query=texts[index] if index < len(texts) else None,
                    labels=labels,
                )
        with guarded(recorder.dropped, "added fields could not be taken out"):
            if self.added:
                result.update(dict.fromkeys(self.added), included=self._include)
            return True
        return False

    def finish_as_given(self, result: Any) -> None:  # noqa: ANN401
        """Record the result of the call as the application made it."""
        if not self.added:
            self.finish(result)
        elif self._failure is not None:
            self._recorder.dropped.add("query with added fields failed", error=self._failure)

    def may_be_to_blame(self, error: BaseException) -> bool:
        """Return whether a call may have failed for what was added to it.

        A call that failed before Chroma was asked (arguments, encoder), or to which a server did
        not answer, fails as given too, and asking again would make the application wait twice.
        """
        if isinstance(error, OSError) or type(error).__module__.startswith(_TRANSPORT):
            return False
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_name != "_query":
            trace = trace.tb_next
        self._failure = error
        return trace is not None


def _argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], name: str, places: dict[str, int]
) -> Any:  # noqa: ANN401
    if name in kwargs:
        return kwargs[name]
    at = places.get(name, len(args))
    return args[at] if at < len(args) else None
