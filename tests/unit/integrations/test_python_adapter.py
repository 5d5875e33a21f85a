"""Plain functions: every shape of documents, every kind of function, nothing else changed."""

import asyncio
import copy
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

import rag_sourcebias as rsb
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.observe.events import hash_query, text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument

KEY = b"0123456789abcdef"
HUMAN = DocTags(source="human")


def observe(result: Any, **options: Any) -> tuple[Any, tuple[Any, ...], dict[str, int]]:
    observer = CollectingObserver()
    with instrument(lambda query: result, observer, **options) as handle:
        returned = handle.target("river")
    return returned, observer.events, dict(handle.dropped.by_reason)


@pytest.mark.parametrize(
    ("documents", "ids", "scores", "tagged"),
    [
        (["a", "b"], ["a", "b"], None, False),
        (("a", "b"), ["a", "b"], None, False),
        ([("a", 0.5), ("b", 0)], ["a", "b"], [0.5, 0.0], False),
        ([{"id": "a"}, {"doc_id": "b"}], ["a", "b"], None, False),
        ([{"id": 7, "score": 2}, {"id": 8, "score": 1.5}], ["7", "8"], [2.0, 1.5], False),
        ([{"id": "a", "score": 1.0}, {"id": "b"}], ["a", "b"], None, False),
        ([{"id": "a", "metadata": {"rsb_source": "human"}}], ["a"], None, True),
        ([{"id": "a", "rsb_source": "human"}], ["a"], None, True),
        ([({"id": "a", "rsb_source": "human"}, 0.25)], ["a"], [0.25], True),
        (
            [SimpleNamespace(id="a", score=0.5, metadata={"rsb_source": "human"})],
            ["a"],
            [0.5],
            True,
        ),
        ([SimpleNamespace(doc_id="a", metadata=None)], ["a"], None, False),
        ([UUID(int=1)], None, None, False),
        ([{"id": UUID(int=1)}], [str(UUID(int=1))], None, False),
        (["a", {"id": "b"}], ["a", "b"], None, False),
        (["The river floods."], [text_id("The river floods.")], None, False),
        ([], [], [], False),
    ],
)
def test_shapes_of_documents(documents, ids, scores, tagged) -> None:
    returned, events, dropped = observe(documents)
    assert returned is documents
    if ids is None:
        assert (events, sum(dropped.values())) == ((), 1)
        return
    (event,) = events
    assert dropped == {}
    assert list(event.ranked.doc_ids) == ids
    assert (None if event.ranked.scores is None else event.ranked.scores.tolist()) == scores
    assert list(event.tags) == [HUMAN if tagged else DocTags()] * len(ids)


NO_LIST = "result is no list of documents (str ids, (document, score) pairs, "
NO_ID = "a document has no id (expected str ids, (document, score) pairs, "


@pytest.mark.parametrize(
    ("result", "start", "remedy"),
    [
        (None, NO_LIST, "hits="),
        ("a", NO_LIST, "hits="),
        (7, NO_LIST, "hits="),
        ({"documents": ["a"]}, NO_LIST, "hits="),
        ({"hits": {"hits": None}}, NO_LIST, "hits="),
        ({"a", "b"}, NO_LIST, "hits="),
        (map(str, [1]), NO_LIST, "hits="),
        (object(), NO_LIST, "hits="),
        ([None], NO_ID, "doc_id="),
        ([{"text": "no id"}], NO_ID, "doc_id="),
        ([{"id": True}], NO_ID, "doc_id="),
        ([("a", "b")], NO_ID, "doc_id="),
        ([("a", {}, 0.5)], NO_ID, "doc_id="),
        ([{"id": "a"}, ("b", 0.5)], NO_ID, "doc_id="),
        ({"hits": {"hits": [{"_source": {"text": "t"}}]}}, NO_ID, "doc_id="),
    ],
)
def test_other_results_are_untouched_and_counted(result, start, remedy) -> None:
    returned, events, dropped = observe(result)
    assert returned is result
    assert events == ()
    ((reason, n),) = dropped.items()
    assert n == 1
    assert reason.startswith(start)
    assert remedy in reason
    if isinstance(result, map):
        assert list(result) == ["1"]  # nothing was taken out of it


def test_the_query_is_the_first_argument() -> None:
    observer = CollectingObserver()

    def search(question: str, k: int = 1) -> list[str]:
        return ["a"] * k

    with instrument(search, observer, query_key=KEY) as handle:
        handle.target("river")
        handle.target(k=2, question="meadow")
        handle.target(b"bytes")
    assert [event.query_hash for event in observer.events] == [
        hash_query("river", key=KEY),
        hash_query("meadow", key=KEY),
        None,
    ]


class Retriever:
    def search(self, query: str) -> list[str]:
        return [query]

    def __call__(self, query: str) -> list[str]:
        return [query]


class AsyncRetriever:
    async def __call__(self, query: str) -> list[str]:
        return [query]


def test_the_wrapper_is_of_the_same_kind() -> None:
    def plain(query: str) -> list[str]:
        """Search."""
        return [query]

    async def coroutine(query: str) -> list[str]:
        return [query]

    def generator(query: str) -> Iterator[str]:
        yield query

    async def async_generator(query: str) -> AsyncIterator[str]:
        yield query

    plain.marker = "kept"  # type: ignore[attr-defined]
    tests = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    for function in (plain, coroutine, generator, async_generator, functools.partial(coroutine)):
        target: Any = instrument(function, CollectingObserver()).target
        assert [test(target) for test in tests] == [test(function) for test in tests]
        assert inspect.signature(target) == inspect.signature(function)
    target = instrument(plain, CollectingObserver()).target
    assert (target.__name__, target.__doc__, target.marker) == ("plain", "Search.", "kept")
    for function in (Retriever(), Retriever().search, Retriever().__call__):
        observer = CollectingObserver()
        with instrument(function, observer) as handle:
            assert handle.target("q") == ["q"]
        assert len(observer.events) == 1
    with instrument(AsyncRetriever(), observer) as handle:
        assert asyncio.run(handle.target("q")) == ["q"]
    assert len(observer.events) == 2
    with instrument(Retriever.search, observer) as handle:
        assert copy.deepcopy(handle.target) is handle.target
        kind = type("Kind", (), {"search": handle.target})  # it is a method where the function is
        assert kind().search("q") == ["q"]
    assert len(observer.events) == 3


def test_what_a_plain_function_returns_unfinished_is_observed_later() -> None:
    observer = CollectingObserver()

    async def coroutine() -> list[str]:
        return ["a"]

    def generator() -> Iterator[str]:
        yield "b"

    async def async_generator() -> AsyncIterator[str]:
        yield "c"

    async def main() -> list[Any]:
        made = [coroutine, generator, async_generator]
        handles = [instrument(lambda q, f=f: f(), observer) for f in made]
        results = [handle.target("q") for handle in handles]  # type: ignore[operator]
        assert inspect.isgenerator(results[1])
        assert inspect.isasyncgen(results[2])
        found = [await results[0], list(results[1]), [x async for x in results[2]]]
        for handle in handles:
            handle.close()
        return found

    assert asyncio.run(main()) == [["a"], ["b"], ["c"]]
    assert [event.ranked.doc_ids for event in observer.events] == [("a",), ("b",), ("c",)]


class TestGenerators:
    def test_they_stay_lazy_and_are_observed_when_closed(self) -> None:
        made: list[int] = []

        def search(query: str) -> Iterator[str]:
            for n in range(5):
                made.append(n)
                yield f"d{n}"

        observer = CollectingObserver()
        with instrument(search, observer) as handle:
            rows = handle.target("q")
            assert made == []
            assert [next(rows), next(rows)] == ["d0", "d1"]
            assert (made, observer.events) == ([0, 1], ())
            rows.close()
            for _ in handle.target("q"):
                break
        assert [event.ranked.doc_ids for event in observer.events] == [("d0", "d1"), ("d0",)]

    def test_sending_throwing_and_returning_reach_the_function(self) -> None:
        def search(query: str) -> Any:
            try:
                sent = yield "a"
            except KeyError as error:
                sent = str(error)
            yield f"{query}-{sent}"
            return "done"

        for act, expected in (
            (lambda g: g.send("x"), "q-x"),
            (lambda g: g.throw(KeyError("k")), "q-'k'"),
            (next, "q-None"),
        ):
            observer = CollectingObserver()
            with instrument(search, observer) as handle:
                rows = handle.target("q")
                assert next(rows) == "a"
                assert act(rows) == expected
                with pytest.raises(StopIteration) as stopped:
                    next(rows)
            assert stopped.value.value == "done"
            assert [event.ranked.doc_ids for event in observer.events] == [("a", expected)]

    def test_the_consumer_may_retrieve_in_between(self) -> None:
        observer = CollectingObserver()

        def search(query: str) -> Iterator[str]:
            inner(query)  # inside: nested
            yield "a"
            yield "b"

        inner_handle = instrument(lambda query: ["x"], observer)
        inner = inner_handle.target
        with instrument(search, observer) as handle:
            for _ in handle.target("q"):
                inner("q")  # outside: a retrieval of its own
        inner_handle.close()
        assert [event.ranked.doc_ids for event in observer.events] == [("x",), ("x",), ("a", "b")]

    def test_asynchronous_ones(self) -> None:
        closed = []

        async def search(query: str) -> Any:
            try:
                for n in range(3):
                    try:
                        yield f"d{n}"
                    except KeyError:
                        yield "thrown"
            finally:
                closed.append(query)

        async def main(target: Any) -> None:
            assert [row async for row in target("all")] == ["d0", "d1", "d2"]
            some = target("some")
            assert await anext(some) == "d0"
            assert await some.athrow(KeyError()) == "thrown"
            await some.aclose()
            failing = target("failing")
            await anext(failing)
            with pytest.raises(ZeroDivisionError):
                await failing.athrow(ZeroDivisionError())
            async for _ in target("left"):
                break
            await asyncio.sleep(0.01)

        observer = CollectingObserver()
        with instrument(search, observer) as handle:
            asyncio.run(main(handle.target))
            assert handle.dropped.total == 0
        assert closed == ["all", "some", "failing", "left"]
        assert [event.ranked.doc_ids for event in observer.events] == [
            ("d0", "d1", "d2"),
            ("d0", "thrown"),
            ("d0",),
        ]


def test_a_function_that_calls_another_observed_one_counts_once() -> None:
    observer, inner_only = CollectingObserver(), CollectingObserver()
    first = instrument(lambda query: ["a", "b"], observer)
    second = instrument(first.target, inner_only)

    def fused(query: str) -> list[str]:
        return [*second.target(query), *second.target(query)][:3]

    with instrument(fused, observer) as handle:
        assert handle.target("q") == ["a", "b", "a"]
    second.close()
    first.close()
    assert [event.ranked.doc_ids for event in observer.events] == [("a", "b", "a")]
    assert len(inner_only.events) == 2


@pytest.mark.parametrize(
    "found",
    [
        ["The river floods.", "The meadow is dry.", "c"],
        [("The river floods.", 0.5), ("b", 0.25), ("c", 0.1)],
        [{"id": "a"}, {"id": "b"}, {"id": "c"}],
    ],
)
def test_what_a_function_of_the_application_leaves_of_it_is_a_stage(found: list[Any]) -> None:
    observer = CollectingObserver()
    with instrument(lambda query: found, observer) as handle:
        rsb.shown(handle.target("q")[:2], stage="reranked")
        rsb.shown([])
        assert handle.dropped.total == 0
    retrieved, reranked, shown = observer.events
    assert reranked.ranked.doc_ids == retrieved.ranked.doc_ids[:2]
    assert (reranked.stage, shown.stage, shown.ranked.doc_ids) == ("reranked", "shown", ())
    assert len({event.request for event in observer.events}) == 1
    with instrument(lambda query: found, observer) as handle:
        handle.target("q")
        rsb.shown([object()])  # read by nobody: counted, and nothing else happens
        assert list(handle.dropped.by_reason) == ["shown documents could not be read"]
