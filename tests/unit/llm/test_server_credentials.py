"""User, password and key of a server: sent, and neither shown nor stored nor exposed unsaid."""

import base64
import json
import logging
import socket

import pytest
from model_server import LocalServer, Reply, chat_reply, serving

pytest.importorskip("openai")

from rag_sourcebias.core.completions import CompletionError
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.llm.openai import OpenAICompleter

ASK = {"max_tokens": 5, "temperature": 0.0, "seed": 0}
PASSWORD, KEY = "pa55-w0rd", "sk-s3cret"
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
UNENCRYPTED = "is sent unencrypted"


def echoing(path: str, body: dict, seen: int) -> Reply:
    """Answer, or repeat in an error what the client sent."""
    if body["messages"][0]["content"] == "fail":
        said = f"not let in: me:{PASSWORD}, Basic {BASIC}, Bearer {KEY}"
        return 401, {}, json.dumps({"error": {"message": said}}).encode()
    return chat_reply("1")


def with_password(server: LocalServer) -> str:
    return server.url.replace("//", f"//me:{PASSWORD}@")


def test_a_password_is_sent_and_told_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with serving(echoing) as server:
        completer = OpenAICompleter("m", base_url=with_password(server), timeout=10)
        assert completer.complete("hello", **ASK).text == "1"
        assert server.authorizations == {f"Basic {BASIC}"}
        with pytest.raises(
            CompletionError, match=r"401 .*not let in: me:…, Basic …, Bearer …"
        ) as e:
            completer.complete("fail", **ASK)
    nobody = OpenAICompleter("m", base_url=f"http://me:{PASSWORD}@127.0.0.1:1/v1", timeout=10)
    with pytest.raises(CompletionError, match="cannot be reached") as gone:
        nobody.complete("hello", **ASK)
    assert completer.base_url == server.url
    told = [
        *(repr(completer), completer.fingerprint, str(completer.settings)),
        *(str(e.value), repr(e.value), str(gone.value), str(gone.value.__cause__)),
        caplog.text,
    ]
    for secret in (PASSWORD, BASIC, KEY):
        assert not [text for text in told if secret in text]
    assert UNENCRYPTED not in caplog.text  # it stays on this machine


def test_caches_of_addresses_without_credentials_stay_as_they_are() -> None:
    plain = OpenAICompleter("m", base_url="http://127.0.0.1:1/v1/")
    assert plain.fingerprint == "openai-1:http://127.0.0.1:1/v1:m:chat:top:20:{}"
    named = OpenAICompleter("m", base_url="http://me:x@127.0.0.1:1/v1")
    assert named.fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"http://127.0.0.1:1/v1?key={KEY}", "http://127.0.0.1:1/v1 has a query"),
        (f"me:{PASSWORD}@127.0.0.1/v1", "must be an http or https address"),
        (f"http://me:{PASSWORD}@127.0.0.1:x/v1", "must be an http or https address"),
    ],
)
def test_addresses_that_cannot_be_used_are_not_repeated(url: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        OpenAICompleter("m", base_url=url)
    assert KEY not in str(caught.value)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "user", "key", "warned"),
    [
        ("judge.example", "", KEY, 1),
        ("judge.example", f"me:{PASSWORD}@", None, 1),
        ("judge.example", "", None, 0),
        ("127.0.0.1", "", KEY, 0),
        ("localhost", f"me:{PASSWORD}@", KEY, 0),
    ],
)
def test_a_key_for_another_machine_is_warned_of_before_it_is_sent_without_tls(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    host: str,
    user: str,
    key: str | None,
    warned: int,
) -> None:
    real, before_connecting = socket.getaddrinfo, []

    def resolved(name: str, *args: object, **options: object) -> object:
        before_connecting.append(caplog.text.count(UNENCRYPTED))
        return real("127.0.0.1" if name == host else name, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)  # a name that leads here
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(echoing) as server:
        port = server.server_address[1]
        url = f"http://{user}{host}:{port}/v1"
        completer = OpenAICompleter("m", base_url=url, api_key=key, timeout=10)
        assert caplog.text.count(UNENCRYPTED) == 0  # nothing is sent yet
        for prompt in ("one", "two"):
            assert completer.complete(prompt, **ASK).text == "1"
    assert before_connecting[0] == caplog.text.count(UNENCRYPTED) == warned
    assert KEY not in caplog.text
    assert PASSWORD not in caplog.text


def test_a_redirected_server_is_followed() -> None:
    place: dict[str, str] = {}
    with serving(echoing) as server, serving(lambda *_: (307, place, b"")) as old:
        place["location"] = f"{server.url}/chat/completions"
        completer = OpenAICompleter("m", base_url=old.url, timeout=10)
        assert [completer.complete(prompt, **ASK).text for prompt in "ab"] == ["1", "1"]


def test_what_the_server_asks_to_wait_and_a_text_that_cannot_be_sent() -> None:
    busy = (429, {"retry-after": "2"}, b'{"error": {"code": "x", "message": "busy"}}')
    with serving(lambda *_: busy) as server:
        completer = OpenAICompleter("m", base_url=server.url, timeout=10)
        with pytest.raises(CompletionError, match="answered 429") as waiting:
            completer.complete("fine", **ASK)
        with pytest.raises(CompletionError, match="the text cannot be sent") as half:
            completer.complete("half \ud83d", **ASK)
    assert (waiting.value.reason, waiting.value.retry_after) == ("rate_limited", 2.0)
    assert half.value.reason == "rejected"
