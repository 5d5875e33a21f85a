"""Models of frameworks, through the builder, against a server that fails in every way."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import REASONS, FaultServer, fault_of, faulty, is_filtered
from served_models import served_chat_model, served_llm

from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.llm.ask import RetryPolicy
from rag_sourcebias.pairs.rewrites import REWRITE
from rag_sourcebias.pairs.rewriting import build_paired_corpus
from rag_sourcebias.retrieval.rerank import as_completer

pytestmark = pytest.mark.frameworks

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
