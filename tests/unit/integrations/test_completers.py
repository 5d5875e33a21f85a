"""Models of frameworks as completers: told per call, without secrets, whatever fails."""

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import REASONS, FaultServer, fault_of, faulty, is_filtered
from model_server import chat_reply, serving
from served_models import served_chat_model, served_llm

from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.llm.ask import RetryPolicy
from rag_sourcebias.pairs.rewrites import REWRITE
from rag_sourcebias.pairs.rewriting import build_paired_corpus
from rag_sourcebias.retrieval.rerank import as_completer

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import PrivateAttr

from rag_sourcebias.core.completions import Completion, CompletionError
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.observe.unobserved import is_suppressed
from rag_sourcebias_integrations.langchain.completer import LangChainCompleter
from rag_sourcebias_integrations.llama_index.completer import LlamaIndexCompleter

pytestmark = pytest.mark.frameworks


SERVED = [served_chat_model, served_llm]
NOWHERE = {"max_tokens": None, "temperature": None}
ASK = {"max_tokens": 7, "temperature": 0.5, "seed": 3}


def answering(*bodies: bytes):
    """A server that keeps what it was asked."""
    asked: list[dict] = []

    def answer(path: str, body: dict, seen: int):
        asked.append(body)
        return 200, {}, bodies[min(len(asked), len(bodies)) - 1]

    return asked, serving(answer)


@pytest.mark.parametrize("served", SERVED)
def test_a_request_reaches_the_server_as_it_was_asked(served) -> None:
    asked, server = answering(chat_reply("An answer.")[2])
    with server as running:
        model = served(running.url, temperature=0.9, timeout=20)
        before = model.model_dump()
        completer = as_completer(model, max_concurrency=2)
        assert isinstance(completer, Completer)
        found = completer.complete("A question?", **ASK)
        completer.complete("A question?", **{**ASK, "max_tokens": 8, "temperature": 0.0})
    assert found == Completion(
        text="An answer.", finish_reason="stop", prompt_tokens=10, completion_tokens=2
    )
    told = {"model": "faulty", "messages": [{"role": "user", "content": "A question?"}]}
    assert asked[0] == {**told, **ASK}
    assert (asked[1]["max_tokens"], asked[1]["temperature"]) == (8, 0.0)
    assert model.model_dump() == before
    assert model.max_retries == 2
    assert (completer.name, completer.max_concurrency) == ("faulty", 2)


@pytest.mark.parametrize("served", SERVED)
def test_the_fingerprint_knows_the_model_and_no_secret(served) -> None:
    def of(**fields: Any) -> Any:
        return as_completer(served("http://me:pass@host/v1?key=sk-secret", **fields))

    one = of()
    text = one.fingerprint + json.dumps(dict(one.settings)) + repr(one)
    assert "sk-secret" not in text
    assert "pass" not in text
    assert "http://host/v1" in one.fingerprint
    assert one.settings["model"] == "faulty"
    # What each request carries, and what only matters to how it runs, is no part of it.
    same = of(temperature=1.0, max_tokens=3, seed=9, timeout=5, max_retries=7, api_key="sk-2")
    assert same.fingerprint == one.fingerprint
    assert of(model="other").fingerprint != one.fingerprint
    left = as_completer(served("http://host/v1"), parameters={"seed": None})
    assert left.settings["not told to the model"] == "seed"
    assert left.fingerprint != as_completer(served("http://host/v1")).fingerprint


@pytest.mark.parametrize("served", SERVED)
@pytest.mark.parametrize(
    ("status", "headers", "reason", "after", "fatal"),
    [
        (429, {"retry-after": "7"}, "rate_limited", 7.0, False),
        (500, {}, "server", None, False),
        (408, {}, "timeout", None, False),
        (401, {}, "rejected", None, True),
        (404, {}, "rejected", None, True),
        (400, {}, "rejected", None, False),
    ],
)
def test_errors_are_told_apart_and_echo_no_key(
    served, status, headers, reason, after, fatal
) -> None:
    body = b'{"error": "wrong, sk-secret"}'
    with serving(lambda path, asked, seen: (status, headers, body)) as server:
        with pytest.raises(CompletionError) as caught:
            as_completer(served(server.url, timeout=20, max_retries=0)).complete("Q", **ASK)
        assert sum(server.prompts.values()) == 1
    found = caught.value
    assert (found.reason, found.retry_after, found.fatal) == (reason, after, fatal)
    assert "sk-secret" not in str(found)


class Client:
    """As the packages of OpenAI and others have it."""


class Lazy(MockLLM):
    """Makes its client when it is first asked, as LlamaIndex's own OpenAI does."""

    temperature: float = 0.0
    resource: Any = None
    stop: Any = None
    _made: Any = PrivateAttr(default=None)
    _seen: list[int] = PrivateAttr(default_factory=list)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any):
        self._made = self._made or Client()
        self._seen.append(id(self._made))
        return super().complete(prompt, formatted=formatted)


def test_clients_are_kept_and_do_not_change_the_fingerprint_once_they_are_there() -> None:
    model = Lazy()
    model.resource, model.stop = Client(), Lazy
    fresh = as_completer(model)
    for _ in range(2):
        fresh.complete("Q", **ASK)
    assert len(set(model._seen)) == 1
    model.complete("Q")
    used = as_completer(model)
    assert fresh.fingerprint == used.fingerprint == as_completer(model).fingerprint
    assert "Client" in used.fingerprint
    assert "Lazy" in used.settings["stop"]


def test_a_refusal_is_told() -> None:
    ChatOpenAI = pytest.importorskip("langchain_openai").ChatOpenAI
    with serving(lambda *_: chat_reply(None, refusal="I will not.")) as server:
        completer = as_completer(ChatOpenAI(model="m", base_url=server.url, api_key="k"))
        found = completer.complete("Q", **ASK)
    assert (found.text, found.finish_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize("served", SERVED)
def test_label_scores_where_the_model_has_them(served) -> None:
    reply = chat_reply("yes", logprobs={"yes": math.log(0.6), "no": math.log(0.3)})[2]
    asked, server = answering(reply, chat_reply("yes")[2])
    with server as running:
        completer = as_completer(served(running.url, timeout=20))
        found = completer.label_logprobs("Is it?", ("no", "yes"))
        with pytest.raises(CompletionError, match=r"no log-probabilities.*votes") as caught:
            completer.label_logprobs("Is it?", ("no", "yes"))
    assert found.logprobs == pytest.approx((math.log(0.3), math.log(0.6)))
    assert (asked[0]["logprobs"], asked[0]["top_logprobs"], asked[0]["max_tokens"]) == (True, 20, 3)
    assert caught.value.fatal


def test_models_without_log_probabilities_name_the_other_modes() -> None:
    completer = as_completer(FakeListLLM(responses=["a"]), parameters=NOWHERE)
    with pytest.raises(CompletionError, match="FakeListLLM gives no log-probabilities"):
        completer.label_logprobs("Q", ("0", "1"))


def test_what_cannot_be_told_is_refused_unless_left_out() -> None:
    with pytest.raises(DataError, match=r"FakeListChatModel takes no max_tokens.*parameters="):
        LangChainCompleter(FakeListChatModel(responses=["a"]))
    with pytest.raises(DataError, match=r"MockLLM takes no temperature"):
        LlamaIndexCompleter(MockLLM(max_tokens=5))
    with pytest.raises(DataError, match="no field 'nowhere'"):
        LlamaIndexCompleter(MockLLM(), parameters={"temperature": "nowhere"})
    with pytest.raises(DataError, match="no field 'max_tokens' that holds a dict"):
        LlamaIndexCompleter(MockLLM(max_tokens=5), parameters={"temperature": "max_tokens.x"})
    with pytest.raises(DataError, match="'top_p' is not one of max_tokens, temperature, seed"):
        LlamaIndexCompleter(MockLLM(), parameters={"top_p": None})
    completer = LangChainCompleter(FakeListLLM(responses=["a b"]), parameters=NOWHERE)
    assert completer.complete("Q", **ASK).text == "a b"
    assert completer.settings["not told to the model"] == "max_tokens, temperature, seed"
    one_word = LlamaIndexCompleter(MockLLM(), parameters={"temperature": None})
    assert one_word.complete("Q", max_tokens=2, temperature=0, seed=0).text == "text text"


class Told(FakeListChatModel):
    """Takes settings of a request as arguments and in a dict, and says what it was told."""

    responses: list[str] = []  # noqa: RUF012
    options: dict[str, Any] = {"top_k": 4}  # noqa: RUF012
    watched: list[bool] = []  # noqa: RUF012

    def _generate(self, messages, stop=None, run_manager=None, *, temperature=None, **kwargs):
        self.watched.append(is_suppressed())
        told = {"temperature": temperature, **kwargs, **self.options, "stop": stop}
        content = [
            {"type": "reasoning", "reasoning": "hm"},
            {"type": "text", "text": json.dumps(told)},
        ]
        return ChatResult(
            generations=[
                ChatGeneration(
                    message=AIMessage(content, response_metadata={"stop_reason": "end_turn"})
                )
            ]
        )


class Counting(BaseCallbackHandler):
    def __init__(self) -> None:
        self.starts: list[str] = []

    def on_chat_model_start(self, serialized, messages, **kwargs) -> None:
        self.starts.append(messages[0][0].content)


def test_callbacks_of_the_application_are_left_alone() -> None:
    handler = Counting()
    model = Told(callbacks=[handler])
    completer = as_completer(model, parameters={"max_tokens": None})
    completer.complete("Q", **ASK)
    assert handler.starts == ["Q"]
    assert model.callbacks == [handler]


def test_samples_do_not_come_from_the_cache_of_the_application() -> None:
    from langchain_core.caches import InMemoryCache
    from langchain_core.globals import get_llm_cache, set_llm_cache

    before, cache = get_llm_cache(), InMemoryCache()
    set_llm_cache(cache)
    try:
        for model in (FakeListChatModel(responses=["a", "b"]), FakeListLLM(responses=["a", "b"])):
            completer = as_completer(model, parameters=NOWHERE)
            texts = [completer.complete("Q", **{**ASK, "seed": seed}).text for seed in (0, 1)]
            assert texts == ["a", "b"]
        assert cache._cache == {}
        assert get_llm_cache() is cache
    finally:
        set_llm_cache(before)


def test_a_mistake_of_ones_own_is_not_a_failed_request() -> None:
    class Broken(Told):
        def _generate(self, messages, stop=None, run_manager=None, *, temperature=None, **kwargs):
            raise NotImplementedError("not yet")

    class Strict(FakeListLLM):
        def _call(self, prompt, stop=None, run_manager=None, *, temperature=None, max_tokens=None):
            return "a"

    with pytest.raises(NotImplementedError, match="not yet"):
        as_completer(Broken(), parameters={"max_tokens": None}).complete("Q", **ASK)
    strict = as_completer(Strict(responses=[]), parameters={"seed": "call.seed"})
    with pytest.raises(CompletionError, match=r"unexpected keyword.*parameters=") as caught:
        strict.complete("Q", **ASK)
    assert caught.value.fatal
    assert as_completer(Strict(responses=[])).complete("Q", **ASK).text == "a"


def test_other_objects_are_refused_with_what_is_accepted() -> None:
    with pytest.raises(DataError, match="of type int cannot") as caught:
        as_completer(3)
    for accepted in ("OpenAICompleter", "LangChain chat model", "LlamaIndex LLM"):
        assert accepted in str(caught.value)
    from langchain_core.embeddings import DeterministicFakeEmbedding

    with pytest.raises(DataError, match="no LangChain model"):
        as_completer(DeterministicFakeEmbedding(size=3))
    with pytest.raises(DataError, match="max_concurrency must be at least 1, got 0"):
        as_completer(Told(), max_concurrency=0)
    made = as_completer(Told(), parameters={"max_tokens": None}, name="mine")
    assert as_completer(made) is made
    assert made.name == "mine"
    with pytest.raises(DataError, match=r"name: .* is a completer already"):
        as_completer(made, name="x")
    if "openai" in sys.modules:
        own = OpenAICompleter("m", base_url="http://localhost:1/v1")
        assert as_completer(own) is own


# Models of frameworks, through the builder, against a server that fails in every way


TEXTS = tuple(f"Passage number {i}, about the river, the valley and the mill." for i in range(50))
PROMPTS = [REWRITE.fill(text) for text in TEXTS]
ATTEMPTS = 3


def of_langchain_openai(server: FaultServer) -> Any:
    ChatOpenAI = pytest.importorskip("langchain_openai").ChatOpenAI
    return ChatOpenAI(
        model="faulty", base_url=server.url, api_key="sk-secret", timeout=0.3, max_retries=0
    )


def of_langchain(server: FaultServer) -> Any:
    pytest.importorskip("langchain_core")
    return served_chat_model(server.url, max_retries=0)


def of_llama_index(server: FaultServer) -> Any:
    pytest.importorskip("llama_index.core")
    return served_llm(server.url, max_retries=0)


def records(out: Path) -> list[dict]:
    file = out / "raw" / "faulty.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("model_at", [of_langchain, of_langchain_openai, of_llama_index])
def test_every_document_ends_and_is_paid_once(model_at, tmp_path) -> None:
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(len(TEXTS)))
    corpus = Corpus(texts=TEXTS, tags=tags)
    out = tmp_path / "out"
    with faulty() as server:

        def build(folder: Path):
            completer = as_completer(model_at(server), max_concurrency=8)
            retry = RetryPolicy(attempts=ATTEMPTS, base=0.01, longest=0.02)
            return build_paired_corpus(corpus, completer, folder, retry=retry)

        build(out)
        ends = [fault_of(p, ATTEMPTS - 1) for p in PROMPTS]
        assert [row["reason"] for row in records(out)] == [
            REASONS[end] if end else "filtered" if is_filtered(p) else None
            for p, end in zip(PROMPTS, ends, strict=True)
        ]
        # One attempt for one of ours: the model was told not to try again by itself.
        assert Counter(call.prompt for call in server.calls) == {
            p: min(ATTEMPTS, 1 + sum(fault_of(p, k) is not None for k in range(ATTEMPTS)))
            for p in PROMPTS
        }
        server.faults = False
        report = build(out)
        assert report.manifest.sources[0].failed == {}
        assert report.from_cache == sum(end is None for end in ends)
        assert Counter(server.answered()) == Counter(PROMPTS)
        build(tmp_path / "clean")
    for name in ("corpus/faulty.jsonl", "raw/faulty.jsonl"):
        assert (out / name).read_bytes() == (tmp_path / "clean" / name).read_bytes()
    stored = b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    assert b"sk-secret" not in stored
    assert server.keys == {"Bearer sk-secret"}
