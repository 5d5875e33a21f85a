"""Asking: each request ends once, equal ones are sent once, order and threads do not matter."""

import threading
import time
from collections import Counter

import pytest

from rag_sourcebias.core.completions import Completion, CompletionError, LabelScores, Request
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.llm.ask import Asker, CompletionCache, RetryPolicy

FAST = RetryPolicy(attempts=3, base=0.0)


class Scripted:
    """Answers as told; for tests of what surrounds a completer."""

    name = "scripted"
    fingerprint = "scripted-1"
    settings = {"model": "none"}  # noqa: RUF012

    def __init__(self, failures=None, *, delay=0.0, concurrency=4) -> None:
        self.failures = dict(failures or {})
        self.calls: Counter[str] = Counter()
        self.delay = delay
        self.max_concurrency = concurrency
        self.lock = threading.Lock()
        self.threads: set[int] = set()

    def complete(self, prompt, *, max_tokens, temperature, seed):
        with self.lock:
            self.calls[prompt] += 1
            self.threads.add(threading.get_ident())
            script = self.failures.get(prompt, [])
            error = script.pop(0) if script else None
        time.sleep(self.delay)
        if error is not None:
            raise error
        return Completion(text=f"{prompt}/{seed}", prompt_tokens=3, completion_tokens=1)

    def label_logprobs(self, prompt, labels):
        with self.lock:
            self.calls[prompt] += 1
        return LabelScores(logprobs=tuple(-float(i) for i in range(len(labels))))


def failed(reason, **options) -> CompletionError:
    return CompletionError(f"it failed: {reason}", reason=reason, **options)


def test_every_request_ends_once_whatever_the_order() -> None:
    completer = Scripted({"p3": [failed("server")], "p5": [failed("rejected")]}, delay=0.002)
    asker = Asker(completer, retry=FAST)
    outcomes = list(asker.ask(Request(prompt=f"p{i}") for i in range(600)))
    assert sorted(outcome.index for outcome in outcomes) == list(range(600))
    by_index = {outcome.index: outcome for outcome in outcomes}
    assert by_index[3].answer.text == "p3/0"
    assert by_index[5].answer is None
    assert by_index[5].error.reason == "rejected"
    assert completer.calls["p3"] == 2
    assert completer.calls["p5"] == 1  # the server said no: not asked again
    assert len(completer.threads) == 4
    usage = asker.usage
    assert (usage.requests, usage.failed, usage.retries) == (600, 1, 1)
    assert (usage.prompt_tokens, usage.completion_tokens) == (3 * 599, 599)


@pytest.mark.parametrize("on_disk", [False, True])
def test_equal_requests_are_sent_once(tmp_path, on_disk) -> None:
    completer = Scripted(delay=0.001)
    cache = CompletionCache(tmp_path / "c.sqlite") if on_disk else None
    asker = Asker(completer, cache=cache)
    requests = [Request(prompt=f"p{i % 7}") for i in range(900)]
    outcomes = list(asker.ask(requests))
    assert len(outcomes) == 900
    assert all(o.answer.text == f"p{o.index % 7}/0" for o in outcomes)
    assert set(completer.calls.values()) == {1}
    assert asker.usage.from_cache == 893
    assert asker.usage.prompt_tokens == 7 * 3


def test_samples_labels_and_settings_are_different_requests(tmp_path) -> None:
    completer = Scripted()
    cache = CompletionCache(tmp_path / "c.sqlite")
    requests = [
        Request(prompt="p"),
        Request(prompt="p", sample=1),
        Request(prompt="p", temperature=0.5),
        Request(prompt="p", max_tokens=5),
        Request(prompt="p", labels=("a", "b")),
        Request(prompt="p", labels=("a", "b", "c")),
    ]
    list(Asker(completer, cache=cache).ask(requests))
    assert completer.calls["p"] == 6
    completer.fingerprint = "scripted-2"
    list(Asker(completer, cache=cache).ask(requests))
    assert completer.calls["p"] == 12
    answers = {o.index: o.answer for o in Asker(completer, cache=cache).ask(requests)}
    assert completer.calls["p"] == 12
    assert answers[1].text == "p/1"
    assert answers[5].logprobs == (0.0, -1.0, -2.0)


def test_failures_are_not_stored_and_nan_is_not_stored(tmp_path) -> None:
    cache = CompletionCache(tmp_path / "c.sqlite")
    completer = Scripted({"p": [failed("timeout")] * 3})
    (first,) = Asker(completer, cache=cache, retry=FAST).ask([Request(prompt="p")])
    assert first.error.reason == "timeout"
    (second,) = Asker(completer, cache=cache, retry=FAST).ask([Request(prompt="p")])
    assert second.answer.text == "p/0"
    assert not second.cached

    class Nan(Scripted):
        def label_logprobs(self, prompt, labels):
            self.calls[prompt] += 1
            return LabelScores(logprobs=(float("nan"), -1.0))

    nan = Nan()
    for _ in range(2):
        list(Asker(nan, cache=cache).ask([Request(prompt="n", labels=("a", "b"))]))
    assert nan.calls["n"] == 2


def test_an_error_of_ones_own_code_is_raised_and_answers_are_kept(tmp_path) -> None:
    cache = CompletionCache(tmp_path / "c.sqlite")
    completer = Scripted({"p9": [ZeroDivisionError("bug")]}, concurrency=1)
    requests = [Request(prompt=f"p{i}") for i in range(20)]
    with pytest.raises(ZeroDivisionError, match="bug"):
        list(Asker(completer, cache=cache).ask(requests))
    done = completer.calls.total() - 1
    assert 9 <= done < 20
    list(Asker(completer, cache=cache).ask(requests))
    assert completer.calls.total() == 21


def test_fatal_first_raises_later_is_told_per_request() -> None:
    wrong = failed("rejected", fatal=True)
    with pytest.raises(CompletionError, match="it failed"):
        list(Asker(Scripted({"p0": [wrong]}, concurrency=1)).ask([Request(prompt="p0")] * 2))
    fatal_later = {f"p{i}": [wrong] for i in range(3, 99)}
    asker = Asker(Scripted(fatal_later, concurrency=1))
    outcomes = list(asker.ask(Request(prompt=f"p{i}") for i in range(99)))
    reasons = Counter(o.error.reason if o.error else "ok" for o in outcomes)
    assert reasons == {"ok": 3, "rejected": 10, "not_asked": 86}
    assert "not asked: it failed" in str(outcomes[-1].error)


def test_a_reader_that_stops_leaves_nothing_behind(tmp_path) -> None:
    cache = CompletionCache(tmp_path / "c.sqlite")
    completer = Scripted(delay=0.01, concurrency=3)
    asked = Asker(completer, cache=cache).ask(Request(prompt=f"p{i}") for i in range(100))
    for _ in range(4):
        next(asked)
    asked.close()
    sent = completer.calls.total()
    assert 4 <= sent <= 10
    again = Asker(completer, cache=cache)
    list(again.ask(Request(prompt=f"p{i}") for i in range(100)))
    assert again.usage.from_cache == sent
    assert set(completer.calls.values()) == {1}


def test_threads_do_not_wait_for_a_slow_reader_nor_run_far_ahead() -> None:
    completer = Scripted(concurrency=3)
    asked = Asker(completer).ask(Request(prompt=f"p{i}") for i in range(100))
    next(asked)
    time.sleep(0.2)
    assert completer.calls.total() == 6  # as many as run at once, and as many again
    assert len(list(asked)) == 99
    assert set(completer.calls.values()) == {1}


def test_memory_of_requests_is_bounded() -> None:
    taken = 0

    def requests():
        nonlocal taken
        for i in range(5000):
            taken = i
            yield Request(prompt=f"p{i}")

    asked = Asker(Scripted()).ask(requests())
    next(asked)
    assert taken < 600
    asked.close()


def test_bad_options_are_named() -> None:
    with pytest.raises(DataError, match="concurrency must be at least 1, got 0"):
        Asker(Scripted(), concurrency=0)
    assert Asker(Scripted(concurrency=1), concurrency=9).concurrency == 1
    with pytest.raises(DataError, match="temperature must be finite and at least 0, got nan"):
        Request(prompt="p", temperature=float("nan"))
    with pytest.raises(DataError, match="at least two, distinct"):
        Request(prompt="p", labels=("a", "a"))
