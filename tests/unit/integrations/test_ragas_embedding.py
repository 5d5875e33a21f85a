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

import pytest
from hashing_encoder import HashingEncoder

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")


from rag_sourcebias.core.errors import UnsupportedVersionError
from rag_sourcebias_integrations.ragas import _framework
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:a?evaluate\\(\\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*uuid.json:ResourceWarning"),  # of ragas
]


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
