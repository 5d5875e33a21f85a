"""Our encoders inside the real ragas, and what its import says when it cannot be imported."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from importlib import reload
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")

from ragas import EvaluationDataset, aevaluate, evaluate
from ragas.metrics import collections
from ragas.metrics._answer_similarity import AnswerSimilarity, SemanticSimilarity
from ragas_judges import FixedModernLLM

from rag_sourcebias.core.errors import MissingExtraError, UnsupportedVersionError
from rag_sourcebias_integrations.ragas import _framework
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:a?evaluate\\(\\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*uuid.json:ResourceWarning"),  # of ragas
]

ROWS = [
    {"user_input": f"q{i}", "response": f"name{i} river of sand", "reference": f"name{i % 3} river"}
    for i in range(12)
]


def cosine(encoder: Any, first: str, second: str) -> float:
    a, b = encoder.encode_documents([first, second]).astype(np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


class SlowEncoder(HashingEncoder):
    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()
        self.error: Exception | None = None

    def encode_documents(self, texts: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        time.sleep(self.seconds)
        assert self.may_go.wait(20)
        if self.error is not None:
            raise self.error
        return super().encode_documents(texts)


def test_every_similarity_of_ragas_takes_it() -> None:
    encoder = HashingEncoder()
    embeddings = EncoderEmbedding(encoder)
    expected = [cosine(encoder, row["response"], row["reference"]) for row in ROWS]
    modern = collections.SemanticSimilarity(embeddings=embeddings)
    pairs = [{key: row[key] for key in ("reference", "response")} for row in ROWS]
    assert [r.value for r in modern.batch_score(pairs)] == pytest.approx(expected)
    dataset = EvaluationDataset.from_list(ROWS)
    metrics = [SemanticSimilarity(), AnswerSimilarity()]
    result = evaluate(dataset, metrics=metrics, embeddings=embeddings, show_progress=False)
    assert result["semantic_similarity"] == pytest.approx(expected)
    assert result["answer_similarity"] == pytest.approx(expected)
    again = asyncio.run(
        aevaluate(dataset, metrics=metrics, embeddings=embeddings, show_progress=False)
    )
    assert again["semantic_similarity"] == pytest.approx(expected)
    judge = collections.AnswerCorrectness(llm=FixedModernLLM(), embeddings=embeddings)
    score = judge.score(user_input="q", response=ROWS[1]["response"], reference="name1 river")
    assert score.value == pytest.approx(0.75 * 2 / 3 + 0.25 * expected[1])


def test_concurrent_texts_come_in_order_and_unaltered() -> None:
    encoder = SlowEncoder(0.001)
    embeddings = EncoderEmbedding(encoder)
    texts = [f"name{i} \n River  é{i}" for i in range(20)]

    async def each() -> list[Any]:
        return await asyncio.gather(*(embeddings.aembed_text(text) for text in texts))

    found = asyncio.run(each())
    assert sorted(encoder.calls) == sorted([text] for text in texts)
    assert found == HashingEncoder().encode_documents(texts).tolist()
    assert embeddings.embed_texts(texts) == found
    assert threading.main_thread().name in encoder.threads  # the sync call, and only that


def test_the_event_loop_runs_while_the_encoder_works() -> None:
    embeddings = EncoderEmbedding(SlowEncoder(0.3))

    async def ticks() -> int:
        task = asyncio.create_task(embeddings.aembed_texts(["a river", "a name"]))
        count = 0
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(ticks()) >= 5


def test_an_error_of_the_encoder_reaches_every_caller_and_no_later_one() -> None:
    encoder = SlowEncoder()
    embeddings = EncoderEmbedding(encoder)

    async def run() -> list[Any]:
        encoder.error = RuntimeError("no memory")
        asked = [embeddings.aembed_text(text) for text in ("a", "b")]
        failed = await asyncio.gather(*asked, return_exceptions=True)
        encoder.error = None
        return [*failed, await embeddings.aembed_text("c")]

    *failed, found = asyncio.run(run())
    assert [str(error) for error in failed] == ["no memory"] * 2
    assert found == HashingEncoder().encode_documents(["c"])[0].tolist()


def test_a_missing_ragas_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ragas", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[ragas\]'?"):
        reload(_framework)


def test_a_langchain_community_that_is_too_new_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """ragas is imported anew; the module that langchain-community 0.4.2 dropped is not there."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "ragas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain_community.chat_models.vertexai", None)
    with pytest.raises(UnsupportedVersionError) as caught:
        reload(_framework)
    assert re.fullmatch(
        r"ragas 0\.4\S* cannot be imported with langchain-community \S+ \(.*vertexai.*\); "
        r"versions that go together: pip install .*\[ragas\]'?",
        str(caught.value),
    )
