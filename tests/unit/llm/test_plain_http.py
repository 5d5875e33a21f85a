"""Plain connections: kept, renewed, never mixed up; and when they are not used at all."""

from __future__ import annotations

import functools
import gc
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_server import chat_reply, serving

from rag_sourcebias.llm.openai import PlainHttp

pytest.importorskip("openai")

from rag_sourcebias.core.completions import CompletionError
from rag_sourcebias.llm.openai import OpenAICompleter

ASK = {"max_tokens": 5, "temperature": 0.0, "seed": 0}
NO_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch) -> None:
    for name in NO_PROXIES:
        monkeypatch.delenv(name, raising=False)


def echo(path: str, body: dict, seen: int):
    return chat_reply(body["messages"][0]["content"])


def test_connections_are_kept_and_answers_not_mixed_up(monkeypatch) -> None:
    opened: list[socket.socket] = []
    connect = socket.create_connection

    def counted(*args, **options):
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(socket, "create_connection", counted)
    with serving(echo) as server:
        completer = OpenAICompleter("m", base_url=server.url, max_concurrency=6)
        prompts = [f"Say {i}, ☂ and naïve" for i in range(120)]
        ask = functools.partial(completer.complete, **ASK)
        with ThreadPoolExecutor(6) as pool:
            texts = [found.text for found in pool.map(ask, prompts)]
        assert texts == prompts
        assert set(server.prompts) == set(prompts)
        assert 1 <= len(opened) <= 6
        del completer, ask
        gc.collect()
        assert all(one.fileno() == -1 for one in opened)  # none is left open


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    body = chat_reply("hello")[2]
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    closed = threading.Event()

    def serve() -> None:
        for _ in range(3):
            with server.accept()[0] as connection:
                received = b""
                while b"seed" not in received:
                    received += connection.recv(65536)
                connection.sendall(head + body)
            closed.set()

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    completer = OpenAICompleter("m", base_url=url, timeout=10)
    for _ in range(3):
        assert completer.complete("Q", **ASK).text == "hello"
        closed.wait(10)
        closed.clear()
    thread.join()
    server.close()


def test_a_connection_that_failed_is_not_used_again() -> None:
    late = threading.Event()

    def answer(path: str, body: dict, seen: int):
        if body["messages"][0]["content"] == "slow":
            late.wait(10)
        return echo(path, body, seen)

    with serving(answer) as server:
        completer = OpenAICompleter("m", base_url=server.url, timeout=0.2)
        assert completer.complete("one", **ASK).text == "one"
        with pytest.raises(CompletionError, match="in time") as caught:
            completer.complete("slow", **ASK)
        late.set()
        assert caught.value.reason == "timeout"
        # The late answer would come over the old connection.
        assert completer.complete("two", **ASK).text == "two"


def test_a_redirected_server_is_followed() -> None:
    place: dict[str, str] = {}
    with serving(echo) as server, serving(lambda *_: (307, place, b"")) as old:
        place["location"] = f"{server.url}/chat/completions"
        completer = OpenAICompleter("m", base_url=old.url, timeout=10)
        assert [completer.complete(p, **ASK).text for p in "ab"] == ["a", "b"]
        del completer
        gc.collect()


@pytest.mark.parametrize(
    ("url", "proxies", "suits"),
    [
        ("http://localhost:8000/v1", {}, True),
        ("https://localhost:8000/v1", {}, False),
        ("http://server:8000/v1", {"http_proxy": "http://proxy:3128"}, False),
        ("http://server:8000/v1", {"http_proxy": "http://proxy:3128", "no_proxy": "server"}, True),
        ("http://server:8000/v1", {"all_proxy": "http://proxy:3128"}, False),
    ],
)
def test_other_addresses_are_left_to_the_general_client(url, proxies, suits, monkeypatch) -> None:
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)
    assert PlainHttp.suits(url) is suits


def test_the_general_client_gives_the_same_answers_and_errors(monkeypatch) -> None:
    def answer(path: str, body: dict, seen: int):
        prompt = body["messages"][0]["content"]
        if prompt == "busy":
            return 429, {"retry-after": "2"}, b'{"error": {"code": "x", "message": "busy"}}'
        return (200, {}, b"{") if prompt == "cut" else echo(path, body, seen)

    def ends(completer: OpenAICompleter) -> list[object]:
        found: list[object] = [completer.complete("fine", **ASK)]
        for prompt in ("busy", "cut", "half \ud83d"):
            with pytest.raises(CompletionError) as caught:
                completer.complete(prompt, **ASK)
            error = caught.value
            found.append((error.reason, error.retry_after, str(error)))
        return found

    with serving(answer) as server:
        plain = ends(OpenAICompleter("m", base_url=server.url, timeout=10))
        monkeypatch.setattr(PlainHttp, "suits", staticmethod(lambda url: False))
        general = ends(OpenAICompleter("m", base_url=server.url, timeout=10))
        gc.collect()
    assert plain == general
    assert plain[1][:2] == ("rate_limited", 2.0)
