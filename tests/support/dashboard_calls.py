"""Ask an ASGI application as a server would, bytes as they come."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

START = 1_800_000_000.0 - 1_800_000_000.0 % 86_400
SOURCES = ("human", "llm:a", None)
LOCAL = ((b"host", b"127.0.0.1:8765"),)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """One event loop, and an application on it."""

    def __init__(self, app: Any) -> None:
        self.app, self.runner = app, asyncio.Runner()

    def __call__(self, target: str | bytes, **options: Any) -> Answer:
        return self.runner.run(self.ask(target, **options))

    async def ask(
        self,
        target: str | bytes,
        *,
        method: str = "GET",
        headers: tuple[tuple[bytes, bytes], ...] = LOCAL,
        body: bytes = b"",
    ) -> Answer:
        raw = target.encode() if isinstance(target, str) else target
        path, _, query = raw.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(headers),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8765),
        }
        sent: list[Any] = []

        received: list[None] = []

        async def receive() -> dict[str, Any]:
            if received:  # as long as the client does not leave
                await asyncio.Event().wait()
            received.append(None)
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, *parts = sent
        found = {k.decode().lower(): v.decode("latin-1") for k, v in start["headers"]}
        return Answer(start["status"], found, b"".join(m.get("body", b"") for m in parts))

    def close(self) -> None:
        self.runner.close()


def retrieval(i: int, n: int = 5, **labels: str) -> RetrievalEvent:
    """Documents whose sources turn with i; every 10th retrieval returns nothing."""
    n = 0 if i % 10 == 9 else n
    tags = tuple(
        DocTags(source=SOURCES[(i + j) % 3], style="plain" if j % 2 else None) for j in range(n)
    )
    ranked = RankedList(query_id=f"{i:016x}", doc_ids=tuple(f"d{i}-{j}" for j in range(n)))
    return RetrievalEvent(ranked=ranked, tags=tags, labels=labels)


def written(
    path: Path, n: int, *, first: int = 0, gap: float = 30.0, batch: int = 50, **options: Any
) -> None:
    """Log n retrievals, one every ``gap`` seconds, alternating between two routes."""
    with EventLog(path, **options) as log:
        for i in range(first, first + n):
            log.record(retrieval(i, route=f"r{i % 2}"), at=START + gap * i)
            if i % batch == batch - 1:
                log.flush()


def shares(series: dict[str, Any]) -> np.ndarray:
    return np.array(series["share"], np.float64)
