"""Retry waits, prices, the answer cache and label scores from reported tokens."""

import math
import sqlite3
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rag_sourcebias.core.completions import Completion, CompletionError, LabelScores, Request
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.llm.ask import CompletionCache, RetryPolicy, request_key
from rag_sourcebias.llm.openai import (
    OpenAICompleter,
    chat_text,
    label_scores_from_tokens,
    parsed,
    retry_after_seconds,
)


def error(reason="server", **options) -> CompletionError:
    return CompletionError("no", reason=reason, **options)


def test_waits_double_with_jitter_up_to_the_longest() -> None:
    policy = RetryPolicy(attempts=9, base=1.0, longest=10.0)
    for attempt, most in ((1, 1.0), (2, 2.0), (4, 8.0), (6, 10.0)):
        waits = [policy.wait(attempt, error()) for _ in range(50)]
        assert most / 2 <= min(waits) < max(waits) <= most
    assert policy.wait(9, error()) is None
    assert RetryPolicy(attempts=5000, longest=1.0).wait(4999, error()) <= 1.0


def test_what_the_server_asks_for_is_honoured_within_patience() -> None:
    policy = RetryPolicy(patience=60.0)
    assert 7.0 <= policy.wait(1, error(retry_after=7.0)) <= 7.7
    assert policy.wait(1, error(retry_after=61.0)) is None
    assert policy.wait(1, error("rejected")) is None
    assert policy.wait(1, error(fatal=True)) is None
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90))
    assert 85 < retry_after_seconds(later) <= 90
    assert retry_after_seconds("-3") == 0.0
    assert retry_after_seconds("nan") is None


def test_cache_keeps_answers_and_no_prompts(tmp_path) -> None:
    file = tmp_path / "deep" / "answers.sqlite"
    cache = CompletionCache(file)
    request = Request(prompt="a secret prompt \ud83d", labels=("a", "b"))
    key = request_key("f", request)
    assert cache.get([key]) == {}
    scores = LabelScores(logprobs=(-0.5, -math.inf), n_bounded=1, prompt_tokens=4)
    text = Completion(text="naïve ☂", logprobs=(-0.1,), completion_tokens=2)
    cache.put({key: scores, b"k" * 16: text})
    assert cache.get([key, b"k" * 16, b"x" * 16]) == {key: scores, b"k" * 16: text}
    assert len(CompletionCache(file).get([bytes([i % 256]) * 16 for i in range(2000)])) == 1
    stored = b"".join(p.read_bytes() for p in file.parent.iterdir())
    assert b"secret prompt" not in stored


def test_damaged_caches_are_named(tmp_path) -> None:
    file = tmp_path / "answers.sqlite"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match=r"answers.sqlite is damaged or not a cache"):
        CompletionCache(file).get([b"k"])
    good = tmp_path / "good.sqlite"
    CompletionCache(good).put({b"k": Completion(text="a")})
    with sqlite3.connect(good) as database:
        database.execute("UPDATE answers SET answer = 'oops'")
    database.close()
    with pytest.raises(DataError, match="stored answer 'oops'"):
        CompletionCache(good).get([b"k"])


BRACKETS = ("[0]", "[1]", "[2]")


def test_bracketed_labels_are_followed_to_where_they_differ() -> None:
    scores, bounded = label_scores_from_tokens(
        BRACKETS,
        ["[", "1", "]"],
        [[("[", -0.1), ("The", -3.0)], [("1", -0.5), ("0", -1.5), ("9", -4.0)], [("]", 0.0)]],
    )
    assert scores == pytest.approx((-1.6, -0.6, -4.1))
    assert bounded == 1


def test_one_token_labels_space_and_case_do_not_matter() -> None:
    options = [("yes", -1.0), (" Yes", -2.0), ("No", -3.0), ("Nothing", -0.5)]
    scores, bounded = label_scores_from_tokens(("no", "yes"), ["Nothing"], [options])
    assert scores == pytest.approx((-3.0, math.log(math.exp(-1) + math.exp(-2))))
    assert bounded == 0


def test_longer_numbers_are_not_labels_and_nothing_is_none() -> None:
    nothing = ((-math.inf, -math.inf), 2)
    other = [("10", -0.1), ("11", -2.0)]
    assert label_scores_from_tokens(("0", "1"), ["10"], [other]) == nothing
    assert label_scores_from_tokens(("0", "1"), [], []) == nothing
    scores, bounded = label_scores_from_tokens(("1", "10"), ["10"], [[("10", -0.1), ("1", -2.0)]])
    assert scores == (-2.0, -0.1)
    assert bounded == 0


def test_a_space_before_the_label_is_walked_over() -> None:
    scores, _ = label_scores_from_tokens(
        ("0", "1"), [" ", "1"], [[(" ", -0.25)], [("1", -0.5), ("0", -1.0)]]
    )
    assert scores == pytest.approx((-1.25, -0.75))


def test_nan_of_a_label_stays_nan() -> None:
    scores, _ = label_scores_from_tokens(("0", "1"), ["1"], [[("1", -0.5), ("0", math.nan)]])
    assert math.isnan(scores[0])


@pytest.mark.parametrize("text", ["", "[]", "null", '{"choices": {}}', '{"choices": [1]}', "{"])
def test_malformed_bodies_are_errors_of_their_request(text) -> None:
    with pytest.raises(CompletionError) as caught:
        parsed(text)
    assert caught.value.reason == "malformed"
    assert caught.value.passing


def test_content_that_is_not_text_is_malformed() -> None:
    with pytest.raises(CompletionError, match="content"):
        chat_text({"choices": [{"message": {"content": [1]}}]})
    with pytest.raises(CompletionError, match="without a message"):
        chat_text({"choices": [{"text": "a"}]})
    found = chat_text({"choices": [{"message": {"content": None}, "finish_reason": None}]})
    assert found == Completion(text="")


def test_openai_completer_needs_a_key_or_a_server(monkeypatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(DataError, match="needs a key: set OPENAI_API_KEY"):
        OpenAICompleter("gpt")
    own = OpenAICompleter("m", base_url="http://localhost:1/v1/")
    assert own.base_url == "http://localhost:1/v1"
    with pytest.raises(DataError, match="must be positive"):
        OpenAICompleter("m", base_url="http://localhost:1/v1", timeout=0)


def test_fingerprints_tell_settings_apart_and_hold_no_key() -> None:
    pytest.importorskip("openai")
    base = {"base_url": "http://localhost:1/v1", "api_key": "sk-secret"}
    completers = [
        OpenAICompleter("m", **base),
        OpenAICompleter("n", **base),
        OpenAICompleter("m", top_logprobs=5, **base),
        OpenAICompleter("m", extra={"top_p": 0.5}, **base),
    ]
    assert len({c.fingerprint for c in completers}) == len(completers)
    assert "sk-secret" not in repr([(c, c.fingerprint, c.settings) for c in completers])
