"""Chunks of items, judged by the workers of an engine, end as one process would end them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from model_server import LocalServer, chat_reply, serving

pytest.importorskip("openai")

from rag_sourcebias.core.completions import CompletionError, JudgeItem
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.judged.judges import RelevanceJudge, judge_with
from rag_sourcebias.llm.ask import CompletionCache, Prices, RetryPolicy
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.source.shards.work import LocalEngine

pytestmark = pytest.mark.server

N = 23
FAST = RetryPolicy(attempts=2, base=0.01, longest=0.02, patience=1.0)


def item(number: int) -> JudgeItem:
    return JudgeItem.relevance(query_id="q", doc_id=str(number), query="what", text=str(number))


def number_of(body: dict) -> int:
    return int(body["messages"][0]["content"].partition("Passage: <passage>")[2].partition("<")[0])


def answer(path: str, body: dict, seen: int):
    """Five of 23 have no judgment, for three reasons; the others differ in their grades."""
    number = number_of(body)
    if number % 11 == 3:
        return 400, {}, b"{}"
    if number % 11 == 5:
        return chat_reply("who knows", logprobs={"who": -0.1, "a": -3.0})
    if number == 7:
        return chat_reply("1", logprobs={"0": float("nan"), "1": -1.0, "2": -2.0, "3": -3.0})
    logprobs = {"0": -1.0, "1": -0.1 * number, "2": -2.5, "3": -3.1}
    return chat_reply("1", logprobs=logprobs)


def make_judge(server: LocalServer, folder: Path | None = None, **options) -> RelevanceJudge:
    return RelevanceJudge(
        OpenAICompleter("model", base_url=server.url, api_key="sk-secret", max_concurrency=3),
        cache=None if folder is None else CompletionCache(folder / "answers.sqlite"),
        retry=FAST,
        prices=Prices(prompt=0.15, completion=0.6),
        **options,
    )


@pytest.mark.parametrize("chunk_size", [1, 6, N, 1000])
def test_judgments_are_those_of_one_process(chunk_size: int) -> None:
    items = [item(number) for number in range(N)]
    told: list[int] = []
    with serving(answer) as server:
        alone = make_judge(server).judge(items)
        found = judge_with(
            LocalEngine(),
            partial(make_judge, server),
            iter(items),
            chunk_size=chunk_size,
            on_progress=told.append,
        )
    assert alone.counts() == {"ok": 18, "garbage": 2, "nan": 1, "rejected": 2}
    # as text, in which one NaN is like another and no digit is lost
    assert repr(found.to_dict()) == repr(alone.to_dict())
    assert told == sorted(told)
    assert len(told) == -(-N // chunk_size)
    assert told[-1] == N


def test_votes_are_counted_as_in_one_process() -> None:
    def vote(path: str, body: dict, seen: int):
        return chat_reply(str((number_of(body) + body["seed"]) % 4))

    items = [item(number) for number in range(N)]
    with serving(vote) as server:
        make = partial(make_judge, server, mode="votes", votes=3)
        found = judge_with(LocalEngine(), make, items, chunk_size=5)
        assert repr(found.to_dict()) == repr(make().judge(items).to_dict())
    assert found.usage.requests == 3 * N


def test_a_run_that_was_stopped_asks_for_what_is_missing_only(tmp_path: Path) -> None:
    items = [item(number) for number in range(N) if number % 11 not in (3,) and number != 7]

    def stop(done: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with serving(answer) as server:
        make = partial(make_judge, server, tmp_path)
        with pytest.raises(KeyboardInterrupt):
            judge_with(LocalEngine(), make, items, chunk_size=4, on_progress=stop)
        assert server.prompts.total() == 8
        found = judge_with(LocalEngine(), make, items, chunk_size=4)
        assert server.prompts.total() == len(items)
    assert found.usage.from_cache == 8


def test_what_is_wrong_with_items_is_said_before_anything_is_asked() -> None:
    items = [item(number) for number in range(N)]
    with serving(answer) as server:
        make = partial(make_judge, server)
        with pytest.raises(DataError, match="document '0' is to be judged 2 times"):
            judge_with(LocalEngine(), make, [*items, item(0)], chunk_size=4)
        textless = JudgeItem(query_id="q", doc_id="x", texts={"query": "what"})
        with pytest.raises(DataError, match="passage"):
            judge_with(LocalEngine(), make, [*items, textless], chunk_size=4)
        with pytest.raises(DataError, match="no items"):
            judge_with(LocalEngine(), make, [])
        with pytest.raises(DataError, match="chunk_size must be at least 1, got 0"):
            judge_with(LocalEngine(), make, items, chunk_size=0)
        assert not server.prompts


def test_a_wrong_key_ends_the_run_at_once() -> None:
    with serving(lambda *_: (401, {}, b"{}")) as server:
        with pytest.raises(CompletionError, match="answered 401") as caught:
            judge_with(
                LocalEngine(),
                partial(make_judge, server),
                [item(number) for number in range(200)],
                chunk_size=10,
            )
        assert server.prompts.total() <= 10
    assert caught.value.fatal


def test_what_was_judged_before_the_server_went_is_kept() -> None:
    def goes(path: str, body: dict, seen: int):
        number = number_of(body)
        return answer(path, body, seen) if number < 3 else (401, {}, b"{}")

    items = [item(number) for number in range(40)]
    with serving(goes) as server:
        found = judge_with(LocalEngine(), partial(make_judge, server), items, chunk_size=3)
        assert server.prompts.total() <= 6  # two chunks
    assert found.status == ("ok",) * 3 + ("not_asked",) * 37
    assert "answered 401" in found.reasons[-1]
    assert found.doc_ids == tuple(str(number) for number in range(40))
    assert found.usage.requests == 40
