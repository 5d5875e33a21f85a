"""Local HTTP servers for tests: one with faults, one with a real model, both on loopback only."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

from loopback import Handler, Server, running

Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[str, dict, int], Reply]
"""(path, body, how often this prompt came) to status, headers, bytes."""


class LocalServer(Server):
    def __init__(self, answer: Answer) -> None:
        super().__init__(_Handler)
        self.answer = answer
        self.prompts: Counter[str] = Counter()
        self.authorizations: set[str | None] = set()
        self.times: dict[str, list[float]] = {}
        self.in_flight = self.most_in_flight = 0


class _Handler(Handler):
    server: LocalServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = body["messages"][0]["content"] if "messages" in body else body["prompt"]
        with self.server.lock:
            self.server.prompts[prompt] += 1
            self.server.authorizations.add(self.headers["authorization"])
            self.server.times.setdefault(prompt, []).append(time.monotonic())
            seen = self.server.prompts[prompt]
            self.server.in_flight += 1
            self.server.most_in_flight = max(self.server.most_in_flight, self.server.in_flight)
        try:
            status, headers, content = self.server.answer(self.path, body, seen)
        finally:
            with self.server.lock:
                self.server.in_flight -= 1
        self.reply(status, content, headers)
        if int(headers.get("content-length", len(content))) > len(content):
            self.close_connection = True


def serving(answer: Answer) -> AbstractContextManager[LocalServer]:
    return running(LocalServer(answer))


def chat_reply(text: str | None, *, logprobs: dict[str, float] | None = None, **message) -> Reply:
    """A chat completion; ``logprobs`` are the alternatives of its only token."""
    content = None
    if logprobs is not None:
        options = [{"token": t, "logprob": v} for t, v in logprobs.items()]
        best = max(options, key=lambda option: option["logprob"])
        content = {"content": [{**best, "top_logprobs": options}]}
    body = {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, **message},
                "logprobs": content,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return 200, {}, json.dumps(body).encode()
