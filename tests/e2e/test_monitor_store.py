"""``monitor serve`` beside a store that changes: told as what the store holds, never as ranking."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import COMMAND, ENVIRONMENT, inside

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.journal import taking_turns

pytestmark = [
    pytest.mark.server,
    pytest.mark.frameworks,
    pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals"),
]
HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:x")
DAY, BEFORE, AFTER = 86_400.0, 3_000, 900


class Search:
    """A Chroma collection of random vectors, asked with random vectors."""

    def __init__(self, folder: Path) -> None:
        import chromadb

        self.rng = np.random.default_rng(7)
        self.client = chromadb.PersistentClient(str(folder))
        self.collection = self.client.create_collection("docs")
        self.n = 0
        self.add("human", 400)
        self.add("llm:x", 200)

    def add(self, source: str, n: int) -> None:
        self.collection.add(
            ids=[f"d{self.n + i}" for i in range(n)],
            embeddings=self.rng.normal(size=(n, 8)).astype(np.float32),
            documents=["text"] * n,
            metadatas=[{"rsb_source": source}] * n,
        )
        self.n += n

    def events(self, n: int, *, favoured: float = 0.0) -> Iterator[RetrievalEvent]:
        """Ten documents a question, of which ``favoured`` of the human are passed over."""
        for start in range(0, n, 200):
            found = self.collection.query(
                query_embeddings=self.rng.normal(size=(min(200, n - start), 8)).astype(np.float32),
                n_results=40,
                include=["metadatas"],
            )
            for ids, rows in zip(found["ids"], found["metadatas"] or (), strict=True):
                sources = [(i, str(row["rsb_source"])) for i, row in zip(ids, rows, strict=True)]
                kept = [(i, s) for i, s in sources if s != "human" or self.rng.random() >= favoured]
                ranked = RankedList(query_id="", doc_ids=tuple(i for i, _ in kept[:10]))
                tags = tuple(HUMAN if source == "human" else LLM for _, source in kept[:10])
                yield RetrievalEvent(ranked=ranked, tags=tags, labels={"collection": "docs"})


def record(log: Path, events: Iterator[RetrievalEvent], times: np.ndarray) -> None:
    """Log all of it before a reader sees any: it lasts days, and the store is looked at now."""
    with EventLog(log, flush_seconds=60.0) as writer, taking_turns(log, 30.0):
        for event, at in zip(events, times.tolist(), strict=True):
            writer.record(event, at=at)


@contextmanager
def serving(folder: Path, *args: str) -> Iterator[str]:
    command = [*COMMAND, "monitor", "serve", "log.db", "--port", "0", *args]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT
    ) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            yield next(line for line in lines if line.startswith("http://")).split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()
            process.wait(60)


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def wait_until_read(url: str, n: int) -> dict[str, Any]:
    for _ in range(600):
        overview: dict[str, Any] = ask(f"{url}api/overview")
        if overview["follower"]["n_read"] == n:
            return overview
        time.sleep(0.1)
    raise AssertionError(f"read {overview['follower']}")


@pytest.mark.parametrize(
    ("baseline", "came", "favoured", "rule"),
    [("reference:1000", 400, 0.0, "composition"), ("store:chroma:db", 0, 0.5, "shift")],
)
def test_what_came_into_the_store_is_told_from_ranking(
    tmp_path: Path, baseline: str, came: int, favoured: float, rule: str
) -> None:
    """Sixteen days of traffic before the server starts, four after half a day, in fast motion."""
    pytest.importorskip("chromadb")
    search, now = Search(tmp_path / "db"), time.time()
    record(tmp_path / "log.db", search.events(BEFORE), np.linspace(now - 16 * DAY, now, BEFORE))
    args = ("--baseline", baseline, "--store", "chroma:db")
    with serving(tmp_path, *args) as url:
        wait_until_read(url, BEFORE)
        quiet = ask(f"{url}api/alarms")["alarms"]
        if came:
            search.add("llm:x", came)
        # In another half-day than the first count: within one nothing says which came first.
        later = now + np.linspace(0.6 * DAY, 4.5 * DAY, AFTER)
        record(tmp_path / "log.db", search.events(AFTER, favoured=favoured), later)
        overview = wait_until_read(url, BEFORE + AFTER)
        alarms = ask(f"{url}api/alarms")["alarms"]
    told = [alarm for alarm in alarms if alarm not in quiet]
    assert quiet == []
    assert [alarm["rule"] for alarm in told] == [rule]
    parts = {part["of"]: part for part in told[0]["parts"]}
    moved = told[0]["share"] - told[0]["baseline"]
    if baseline.startswith("reference"):
        assert sum(part["change"] for part in parts.values()) == pytest.approx(moved, abs=0.03)
    assert abs(parts["index"]["change"]) > 0.1 if came else parts["index"]["change"] == 0
    assert ("what the store holds" in told[0]["message"].split(" to ")[0]) == bool(came)
    assert not overview["follower"]["dropped"]
    # Replayed with what was served: the same baseline, and what the store held.
    code, output, messages = inside("monitor", "replay", "log.db", "--json", "-", cwd=tmp_path)
    assert code == 0, messages
    assert [alarm["rule"] for alarm in json.loads(output)["alarms"]] == [rule]
    # A store that has changed is no other setting.
    with serving(tmp_path, *args) as url:
        assert len(ask(f"{url}api/alarms")["alarms"]) == 1
