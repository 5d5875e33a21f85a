"""A judge against servers: one that fails in every way, a real one, one with a real model."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from model_server import LocalServer, chat_reply, serving

pytest.importorskip("openai")

from rag_sourcebias.core.completions import CompletionError, JudgeItem
from rag_sourcebias.judged.judges import LLMJudge
from rag_sourcebias.llm.ask import CompletionCache, Prices, RetryPolicy
from rag_sourcebias.llm.openai import OpenAICompleter

pytestmark = pytest.mark.server

FAST = RetryPolicy(attempts=3, base=0.01, longest=0.05, patience=5.0)


def item(name: str, text: str = "") -> JudgeItem:
    return JudgeItem.relevance(query_id="q", doc_id=name, query="what is wet", text=text or name)


def completer(server: LocalServer, **options) -> OpenAICompleter:
    options = {"timeout": 0.5, "api_key": "sk-secret", **options}
    return OpenAICompleter("model", base_url=server.url, **options)


def fault(path: str, body: dict, seen: int):  # noqa: C901
    """Answer as the word in the passage says."""
    text = body["messages"][0]["content"].partition("Passage: <passage>")[2].partition("<")[0]
    kind, _, times = text.partition(" ")
    if times and seen > int(times):
        kind = "good"
    error = json.dumps({"error": {"message": f"{kind} for you"}}).encode()
    match kind:
        case "429":
            return 429, {"retry-after": "0.3"}, error
        case "429-long":
            return 429, {"retry-after": "3600"}, error
        case "500":
            return 500, {}, error
        case "400":
            return 400, {}, error
        case "hang":
            time.sleep(0.9)
            return chat_reply("1")
        case "malformed":
            return 200, {}, b"{'not': json"
        case "html":
            return 200, {"content-type": "text/html"}, b"<html>gateway</html>"
        case "no-choices":
            return 200, {}, b'{"choices": []}'
        case "truncated":
            return 200, {"content-length": "5000"}, b'{"choices": [{"mess'
        case "refusal":
            return chat_reply("I'm sorry, but I can't assess this passage.")
        case "refusal-field":
            return chat_reply(None, refusal="I will not.")
        case "garbage":
            return chat_reply("banana 7 or 8")
        case "empty":
            return chat_reply(None)
        case _:
            return chat_reply("**Relevance: [2]**")


EXPECTED = {
    "good": ("ok", 1),
    "429 1": ("ok", 2),
    "429": ("error", 3),
    "429-long": ("error", 1),
    "500 2": ("ok", 3),
    "500": ("error", 3),
    "400": ("rejected", 1),
    "hang 1": ("ok", 2),
    "hang": ("timeout", 3),
    "malformed 1": ("ok", 2),
    "malformed": ("error", 3),
    "html": ("error", 3),
    "no-choices": ("error", 3),
    "truncated 1": ("ok", 2),
    "truncated": ("error", 3),
    "refusal": ("refused", 1),
    "refusal-field": ("refused", 1),
    "garbage": ("garbage", 1),
    "empty": ("garbage", 1),
}


def test_every_item_ends_with_a_judgment_or_the_reason_why_not(tmp_path: Path) -> None:
    items = [item(kind) for kind in EXPECTED]
    progress: list[int] = []
    cache = CompletionCache(tmp_path / "answers.sqlite")
    with serving(fault) as server:
        judge = LLMJudge(
            completer(server, max_concurrency=6),
            mode="verbalised",
            cache=cache,
            retry=FAST,
            prices=Prices(prompt=1.0, completion=10.0),
        )
        found = judge.judge(items, on_progress=progress.append)
        asked = {
            k: sum(n for p, n in server.prompts.items() if f">{k}</passage>\n" in p)
            for k in EXPECTED
        }
        assert server.most_in_flight <= 6
        waits = next(
            times for prompt, times in server.times.items() if ">429 1</passage>\n" in prompt
        )
        assert waits[1] - waits[0] >= 0.3  # what Retry-After asked for
        first_run = server.prompts.total()
        again = judge.judge(items)
        sent_again = server.prompts.total() - first_run
    assert found.doc_ids == tuple(EXPECTED)
    assert dict(zip(found.doc_ids, found.status, strict=True)) == {
        kind: status for kind, (status, _) in EXPECTED.items()
    }
    assert asked == {kind: times for kind, (_, times) in EXPECTED.items()}
    assert progress == list(range(1, len(items) + 1))
    assert all(
        bool(reason) == (s != "ok") for s, reason in zip(found.status, found.reasons, strict=True)
    )
    assert "sk-secret" not in repr((found.reasons, found.settings, judge.completer))
    assert found.usage.requests == len(items)
    assert found.usage.failed == sum(s in ("error", "timeout", "rejected") for s in found.status)
    answered = len(items) - found.usage.failed
    assert found.cost == pytest.approx(answered * (10 * 1.0 + 2 * 10.0) / 1e6)
    # Answers are not asked for again, failures are.
    assert again.usage.from_cache == answered
    assert again.usage.prompt_tokens == 0
    assert again.cost == 0
    assert again.status == found.status
    assert sent_again == sum(
        n for s, n in EXPECTED.values() if s in ("error", "timeout", "rejected")
    )


def test_scoring_reads_tops_bounds_what_is_missing_and_reports_nan() -> None:
    tops = {
        "all": {"0": -2.0, "1": -1.0, "2": -3.0, "3": -4.0},
        "three": {" 1": -1.0, "1": -2.0, "3": -3.0, "0": -2.5, "The": -5.0},
        "none": {"The": -0.1, "A": -3.0},
        "nan": {"0": float("nan"), "1": -1.0, "2": -3.0, "3": -4.0},
    }

    def answer(path: str, body: dict, seen: int):
        assert body["logprobs"] is True
        assert body["top_logprobs"] == 20
        name = body["messages"][0]["content"].partition("Passage: <passage>")[2].partition("<")[0]
        return chat_reply("1", logprobs=tops[name])

    with serving(answer) as server:
        found = LLMJudge(completer(server), retry=FAST).judge([item(n) for n in tops])
    assert found.status == ("ok", "ok", "garbage", "nan")
    assert np.log(found.probs[0] / found.probs[0, 1]) == pytest.approx([-1, 0, -2, -3])
    one = np.log(np.exp(-1.0) + np.exp(-2.0))
    assert np.log(found.probs[1] / found.probs[1, 1]) == pytest.approx(
        [-2.5 - one, 0, -5 - one, -3 - one]
    )
    assert len(found.distributions()) == 2


def test_a_key_that_is_wrong_ends_the_run_at_once() -> None:
    def answer(path: str, body: dict, seen: int):
        return 401, {}, b'{"error": {"message": "bad key sk-secret"}}'

    with serving(answer) as server:
        judge = LLMJudge(completer(server, max_concurrency=2), retry=FAST)
        with pytest.raises(CompletionError, match=r"answered 401.*check the key") as caught:
            judge.judge([item(str(i)) for i in range(50)])
        assert server.prompts.total() <= 4
    assert "sk-secret" not in str(caught.value)


def test_a_server_without_logprobs_is_named() -> None:
    with serving(lambda *_: chat_reply("1")) as server:
        judge = LLMJudge(completer(server), retry=FAST)
        with pytest.raises(CompletionError, match="without log-probabilities: use mode votes"):
            judge.judge([item("a"), item("b")])


def test_a_server_that_goes_down_leaves_the_rest_not_asked(tmp_path: Path) -> None:
    def answer(path: str, body: dict, seen: int):
        text = body["messages"][0]["content"]
        number = int(text.partition("Passage: <passage>")[2].partition("<")[0])
        return chat_reply("3") if number < 5 else (503, {}, b"{}")

    items = [item(str(i)) for i in range(60)]
    with serving(answer) as server:
        judge = LLMJudge(completer(server, max_concurrency=2), mode="verbalised", retry=FAST)
        found = judge.judge(items)
    counts = found.counts()
    assert counts["ok"] == 5
    assert 10 <= counts["error"] <= 13
    assert counts["not_asked"] == 60 - 5 - counts["error"]
    assert str(found).startswith("5 of 60 items judged by model, ")
    # and where nothing listens, there is one error instead of a table of failures
    judge = LLMJudge(completer(server, max_concurrency=2), mode="verbalised", retry=FAST)
    with pytest.raises(CompletionError, match="cannot be reached"):
        judge.judge(items)


KILLED = """
import sys
from rag_sourcebias.judged.judges import LLMJudge
from rag_sourcebias.llm import CompletionCache, OpenAICompleter
from rag_sourcebias.core.completions import JudgeItem

judge = LLMJudge(
    OpenAICompleter("model", base_url=sys.argv[1], max_concurrency=2),
    mode="verbalised", cache=CompletionCache(sys.argv[2]),
)
judge.judge(
    JudgeItem.relevance(query_id="q", doc_id=str(i), query="what", text=str(i)) for i in range(40)
)
"""


def test_a_killed_run_resumes_with_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"

    def answer(path: str, body: dict, seen: int):
        time.sleep(0.03)
        return chat_reply("1")

    items = [
        JudgeItem.relevance(query_id="q", doc_id=str(i), query="what", text=str(i))
        for i in range(40)
    ]
    with serving(answer) as server:
        process = subprocess.Popen([sys.executable, "-c", KILLED, server.url, str(file)])
        deadline = time.monotonic() + 60
        while server.prompts.total() < 12 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        process.wait()
        time.sleep(0.2)
        before = server.prompts.copy()
        assert 12 <= before.total() < 40
        judge = LLMJudge(
            OpenAICompleter("model", base_url=server.url, max_concurrency=2),
            mode="verbalised",
            cache=CompletionCache(file),
        )
        found = judge.judge(items)
        asked_twice = [prompt for prompt, n in server.prompts.items() if n > 1]
    assert found.counts() == {"ok": 40}
    assert len(server.prompts) == 40
    # Only what was on its way when the process died is asked for again.
    assert len(asked_twice) <= 4
    assert found.usage.from_cache >= before.total() - 4


def test_votes_count_samples_and_share_the_cache(tmp_path: Path) -> None:
    answers = ["[2]", "3", "I cannot say", "2", "2"]

    def answer(path: str, body: dict, seen: int):
        assert body["temperature"] == 0.8
        return chat_reply(answers[body["seed"]])

    with serving(answer) as server:
        judge = LLMJudge(
            completer(server),
            mode="votes",
            votes=5,
            temperature=0.8,
            cache=CompletionCache(tmp_path / "a.sqlite"),
            retry=FAST,
        )
        found = judge.judge([item("a")])
    assert found.probs[0] == pytest.approx([0, 0, 0.75, 0.25])
    assert found.mass[0] == pytest.approx(0.8)
    assert found.usage.requests == 5
    assert found.usage.prompt_tokens == 50
