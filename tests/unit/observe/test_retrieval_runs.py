"""Which retrievals count: runs with ids, blocks, pools, and what suppress() hides."""

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import wrapt

from rag_sourcebias.observe.runs import RunTable, carried, outermost
from rag_sourcebias.observe.unobserved import is_suppressed, suppress


@pytest.fixture
def table() -> RunTable:
    return RunTable(object())


def test_an_ensemble_counts_once_whatever_ends_first(table) -> None:
    table.begin("ensemble")
    table.begin("a")
    table.begin("b")
    ends = {run: table.end(run) for run in ("ensemble", "b", "a")}
    assert ends == {"ensemble": True, "b": False, "a": False}
    table.begin("next")
    assert table.end("next")


def test_a_handler_registered_twice_counts_once(table) -> None:
    for run in ("outer", "inner"):
        table.begin(run)
        table.begin(run)
    ends = [table.end(run) for run in ("inner", "inner", "outer", "outer")]
    assert ends == [False, False, True, False]


def test_a_task_that_outlives_a_run_is_not_nested(table) -> None:
    async def main() -> list[bool]:
        go = asyncio.Event()

        async def child() -> bool:
            await go.wait()
            run = uuid4()
            table.begin(run)
            return table.end(run)

        table.begin("outer")
        late = asyncio.create_task(child())
        assert table.end("outer")
        go.set()
        return await late

    assert asyncio.run(main())


def test_runs_never_announced(table) -> None:
    assert not table.end("unknown")


@pytest.mark.parametrize("is_carried", [True, False])
def test_a_pool_runs_inside_the_block_that_submits_to_it(is_carried, monkeypatch) -> None:
    """The rest of the context stays where it was; nothing is left in the pool's thread."""
    submit = inspect.unwrap(ThreadPoolExecutor.submit)
    if is_carried:
        submit = wrapt.FunctionWrapper(submit, carried)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    of_application = contextvars.ContextVar("of_application", default="default")
    of_application.set("set")
    with ThreadPoolExecutor(1) as pool:
        with outermost() as first:
            inside = list(pool.map(lambda owner: (enter(owner), of_application.get()), [None]))
        after = pool.submit(enter, None).result()
    assert (first, inside, after) == (True, [(not is_carried, "default")], True)


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
