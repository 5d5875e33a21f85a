"""The builder and the client against a server that fails in every way."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import (
    FAULTS,
    REASONS,
    RETRY_AFTER,
    FaultServer,
    fault_of,
    faulty,
    is_filtered,
)

pytest.importorskip("openai")

from rag_sourcebias.llm.ask import RetryPolicy
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.pairs.rewrites import REWRITE, RewriteReport, read_manifest
from rag_sourcebias.pairs.rewriting import build_paired_corpus

N = 150
ATTEMPTS = 3
TEXTS = [f"Passage number {i}, about the river, the valley and the mill." for i in range(N)]
PROMPTS = [REWRITE.fill(text) for text in TEXTS]


@pytest.fixture(scope="module")
def human(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("human")
    rows = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(TEXTS)]
    (folder / "corpus").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "corpus" / "human.jsonl").write_text(lines, encoding="utf-8")
    return folder


def build(source: Path, server: FaultServer, out: Path) -> RewriteReport:
    # The address is part of the fingerprint: each server has a port of its own.
    completer = OpenAICompleter(
        "faulty", base_url=server.url, api_key="sk-secret", timeout=0.3, max_concurrency=8
    )
    retry = RetryPolicy(attempts=ATTEMPTS, base=0.01, longest=0.02)
    return build_paired_corpus(source, completer, out, retry=retry)


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def records(out: Path) -> dict[str, dict]:
    rows = rows_of(out / "raw" / "faulty.jsonl")
    assert [row["_id"] for row in rows] == [f"d{i}" for i in range(N)]  # each once, in order
    return {row["_id"]: row for row in rows}


def rewritten(out: Path) -> list[str]:
    return [row["_id"] for row in rows_of(out / "corpus" / "faulty.jsonl")]


def test_the_schedule_has_every_fault_passing_and_lasting() -> None:
    lasting = {fault_of(prompt, 10**6) for prompt in PROMPTS}
    passing = {fault_of(p, 0) for p in PROMPTS if fault_of(p, 2) is None}
    assert lasting == passing == {*FAULTS, None}
    assert any(is_filtered(prompt) for prompt in PROMPTS)


def test_nothing_is_lost_or_asked_twice_whatever_the_server_does(human, tmp_path) -> None:
    out = tmp_path / "out"
    with faulty() as server:
        report = build(human, server, out)
        lasting = {f"d{i}": fault_of(p, ATTEMPTS - 1) for i, p in enumerate(PROMPTS)}
        failed = {doc: REASONS[fault] for doc, fault in lasting.items() if fault is not None}
        first = records(out)
        # Failed are exactly those that the server failed each time, and they say why.
        assert {d: r["reason"] for d, r in first.items() if r["status"] == "failed"} == failed
        assert all(first[doc]["error"] for doc in failed)
        assert "sk-secret" not in (out / "raw" / "faulty.jsonl").read_text(encoding="utf-8")
        skipped = {d: r["reason"] for d, r in first.items() if r["status"] == "skipped"}
        assert skipped
        done = [doc for doc, row in first.items() if row["status"] == "done"]
        assert rewritten(out) == done
        assert len(done) + len(skipped) + len(failed) == N
        (entry,) = report.manifest.sources
        assert entry.done == len(done)
        assert entry.failed == dict(sorted(Counter(failed.values()).items()))
        # The server's log: each prompt as often as the schedule says, and answered once at most.
        sent = Counter(call.prompt for call in server.calls)
        assert sent == {
            p: min(ATTEMPTS, 1 + sum(fault_of(p, k) is not None for k in range(ATTEMPTS)))
            for p in PROMPTS
        }
        assert report.retries == sum(sent.values()) - N
        assert max(Counter(server.answered()).values()) == 1
        assert len(server.answered()) == N - len(failed)
        limited = [p for p in PROMPTS if fault_of(p, 0) == "rate_limited"]
        for prompt in limited:
            times = [call.at for call in server.calls if call.prompt == prompt]
            assert all(b - a >= RETRY_AFTER for a, b in pairwise(times))

        server.faults = False
        second = build(human, server, out)
        assert second.manifest.sources[0].failed == {}
        assert second.from_cache == N - len(failed)
        assert Counter(server.answered()) == Counter(PROMPTS)  # all paid, none twice
        assert rewritten(out) == [f"d{i}" for i, p in enumerate(PROMPTS) if not is_filtered(p)]
        assert {d for d, r in records(out).items() if r["status"] == "skipped"} == {
            f"d{i}" for i, p in enumerate(PROMPTS) if is_filtered(p)
        }
        calls = len(server.calls)
        build(human, server, out)
        assert len(server.calls) == calls  # finished: nothing is asked

        clean = tmp_path / "clean"
        build(human, server, clean)
        for name in ("corpus/human.jsonl", "corpus/faulty.jsonl", "raw/faulty.jsonl"):
            assert (out / name).read_bytes() == (clean / name).read_bytes()
        assert read_manifest(out).sources[0].done == read_manifest(clean).sources[0].done
        assert server.keys == {"Bearer sk-secret"}
