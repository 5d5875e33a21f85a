"""Which retrievals count: runs with ids and parents, blocks, and what suppress() hides."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from uuid import uuid4

import pytest

from rag_sourcebias.observe import runs
from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.observe.runs import RunTable, outermost
from rag_sourcebias.observe.unobserved import is_suppressed, suppress


@pytest.fixture
def table() -> RunTable:
    return RunTable(object(), DroppedEvents())


def elsewhere(call: Callable[..., object], *args: object) -> None:
    """Call on a thread without this context, so that only parents tell what is nested."""
    thread = threading.Thread(target=call, args=args)
    thread.start()
    thread.join()


def test_an_ensemble_counts_once_through_a_chain_between(table) -> None:
    table.begin_other("app", None)
    table.begin("ensemble", "app")
    table.begin_other("step", "ensemble")
    table.begin_other("below", "step")
    elsewhere(table.begin, "a", "step")
    elsewhere(table.begin, "b", "below")
    order = ("b", "a", "below", "step", "ensemble", "app")
    ends = {run: table.end(run) for run in order}
    assert ends == dict.fromkeys(order, False) | {"ensemble": True}
    assert len(table.open) == 0


def test_runs_outside_retrievals_are_not_kept(table) -> None:
    for n in range(100):
        table.begin_other(n, n - 1 if n else None)
    assert len(table.open) == 0


def test_a_handler_registered_twice_counts_once(table) -> None:
    for run, parent in (("outer", None), ("inner", "outer")):
        table.begin(run, parent)
        table.begin(run, parent)
    ends = [table.end(run) for run in ("inner", "inner", "outer", "outer")]
    assert ends == [False, False, True, False]
    assert len(table.open) == 0


def test_a_task_that_outlives_the_run_it_names_is_nested(table) -> None:
    async def main() -> list[bool]:
        go = asyncio.Event()

        async def child(parent: str | None) -> bool:
            await go.wait()
            run = uuid4()
            table.begin(run, parent)
            elsewhere(table.begin, "below", run)
            assert not table.end("below")
            return table.end(run)

        table.begin("outer")
        late = [asyncio.create_task(child(parent)) for parent in ("outer", "another", None)]
        assert table.end("outer")
        go.set()
        return await asyncio.gather(*late)

    assert asyncio.run(main()) == [False, True, True]
    assert len(table.open) == 0


def test_runs_never_announced(table) -> None:
    assert not table.end("unknown")
    table.begin("child", "parent of another library")
    assert table.end("child")


def test_memory_is_bounded_and_what_is_lost_is_counted(monkeypatch) -> None:
    monkeypatch.setattr(runs, "_MOST_OPEN", 100)
    dropped = DroppedEvents()
    table = RunTable(object(), dropped)

    def interrupted(begin: Callable[..., None], *run: object) -> None:
        contextvars.copy_context().run(begin, *run)

    interrupted(table.begin, "outer")
    for n in range(99):
        interrupted(table.begin_other, ("step", n), "outer")
    interrupted(table.begin, "next")
    assert (len(table.open), dropped.total) == (100, 1)
    for n in range(99):  # the steps are lost first, which loses nothing
        interrupted(table.begin, n)
    assert (len(table.open), dropped.total) == (100, 1)
    for n in range(99, 299):
        interrupted(table.begin, n)
    assert len(table.open) == 100
    assert dropped.by_reason == {"retrieval never ended": 201}
    assert [table.end(198), table.end(199)] == [False, True]


def test_an_interrupted_run_hides_nothing_after_a_while(table, monkeypatch) -> None:
    monkeypatch.setattr(runs, "_LONGEST_RUN", -1.0)

    def use() -> bool:
        table.begin("interrupted")
        table.begin("next")
        return table.end("next")

    assert contextvars.copy_context().run(use)


# suppress() and outermost(): tasks, threads, generators


def test_blocks_nest_and_end_on_errors() -> None:
    with suppress():
        with suppress():
            assert is_suppressed()
        assert is_suppressed()
    assert not is_suppressed()
    try:
        with suppress():
            raise ValueError
    except ValueError:
        assert not is_suppressed()


def test_suppress_in_tasks() -> None:
    async def quiet(entered: asyncio.Event, leave: asyncio.Event) -> bool:
        with suppress():
            entered.set()
            await leave.wait()
            return is_suppressed() and await asyncio.to_thread(is_suppressed)

    async def main() -> tuple[bool, bool, bool]:
        entered, leave = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(quiet(entered, leave))
        await entered.wait()
        other = is_suppressed()
        leave.set()
        with suppress():
            later = asyncio.create_task(asyncio.sleep(0, None))
            child = asyncio.create_task(asyncio.to_thread(is_suppressed))
        await later
        return await task, other, await child

    assert asyncio.run(main()) == (True, False, True)


def in_thread(context: contextvars.Context | None) -> bool:
    seen: list[bool] = []

    def work() -> None:
        seen.append(is_suppressed() if context is None else context.run(is_suppressed))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return seen[0]


def test_suppress_reaches_a_thread_only_with_its_context() -> None:
    with suppress():
        assert in_thread(contextvars.copy_context())
        assert not in_thread(None)


def enter(owner: object = None) -> bool:
    with outermost(owner) as first:
        return first


def test_owners_do_not_nest_in_each_other() -> None:
    a, b = object(), object()
    with outermost(a):
        assert enter(b)
        with outermost(b):
            assert not enter(a)


def test_concurrent_tasks_are_separate_and_inherit() -> None:
    async def retrieve(depth: int) -> list[bool]:
        with outermost() as first:
            await asyncio.sleep(0)
            if depth == 0:
                return [first]
            inner = await asyncio.gather(retrieve(depth - 1), retrieve(depth - 1))
            return [first, *(x for part in inner for x in part)]

    async def main() -> list[list[bool]]:
        return await asyncio.gather(*(retrieve(2) for _ in range(20)))

    for seen in asyncio.run(main()):
        assert seen == [True] + [False] * 6
