"""Local HTTP servers for tests: one with faults, one with a real model, both on loopback only."""

from __future__ import annotations

import json
import threading
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
