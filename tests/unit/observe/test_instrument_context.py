"""suppress() and outermost(): tasks, threads, generators."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from rag_sourcebias.observe.runs import outermost
from rag_sourcebias.observe.unobserved import is_suppressed, suppress


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


def test_only_the_outermost_counts() -> None:
    with outermost() as first:
        assert first
        assert not enter()
        assert not enter()
    assert enter()


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
