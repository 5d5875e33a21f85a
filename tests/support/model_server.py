"""Local HTTP servers for tests: one with faults, one with a real model, both on loopback only."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[str, dict, int], Reply]
"""(path, body, how often this prompt came) to status, headers, bytes."""


class LocalServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.lock = threading.Lock()
        self.prompts: Counter[str] = Counter()
        self.authorizations: set[str | None] = set()
        self.times: dict[str, list[float]] = {}
        self.in_flight = self.most_in_flight = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: LocalServer
    protocol_version = "HTTP/1.1"

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
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        if int(headers.get("content-length", len(content))) > len(content):
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(answer: Answer) -> Iterator[LocalServer]:
    server = LocalServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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


def model_answer(model, tokenizer) -> Answer:
    """Serve a causal language model: greedy chat and echo with the model's own log-probabilities.

    One token is written per request; enough for scoring.
    """
    import torch

    lock = threading.Lock()

    def logprobs_of(ids: list[int]):
        with lock, torch.inference_mode():
            return model(torch.tensor([ids])).logits[0].double().log_softmax(-1)

    def answer(path: str, body: dict, seen: int) -> Reply:
        chat = path.endswith("/chat/completions")
        text = body["messages"][0]["content"] if chat else body["prompt"]
        if chat:
            text = tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
        ids = tokenizer(text, add_special_tokens=False).input_ids
        table = logprobs_of(ids)
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        best = int(table[-1].argmax())
        if chat:
            top = table[-1].topk(body["top_logprobs"])
            alternatives = {
                tokenizer.decode([i]): v
                for v, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)
            }
            return chat_reply(tokenizer.decode([best]), logprobs=alternatives)
        tokens = [tokenizer.decode([i]) for i in (*ids, best)]
        values = [None, *(float(table[i, t]) for i, t in enumerate([*ids[1:], best]))]
        tops = [None] + [{tokenizer.decode([int(row.argmax())]): float(row.max())} for row in table]
        offsets = [len("".join(tokens[:i])) for i in range(len(tokens))]
        columns = {
            "tokens": tokens,
            "token_logprobs": values,
            "top_logprobs": tops,
            "text_offset": offsets,
        }
        choice = {"text": "".join(tokens), "finish_reason": "length", "logprobs": columns}
        return 200, {}, json.dumps({"choices": [choice], "usage": usage}).encode()

    return answer
