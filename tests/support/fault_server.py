"""A chat server on loopback that fails as real ones do, on a schedule that the prompts decide."""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import NamedTuple

from loopback import Handler, Server, running

REASONS = {
    "rate_limited": "rate_limited",
    "server_error": "server",
    "overloaded": "server",
    "hang": "timeout",
    "reset": "unreachable",
    "truncated": "unreachable",
    "malformed": "malformed",
    "no_choices": "malformed",
}
"""Faults, and what they are called in the end."""
FAULTS = tuple(REASONS)
RETRY_AFTER = 0.2
"""Seconds; far above the pauses of a test's own policy, so that it shows who decided."""


class Call(NamedTuple):
    """One request as the server saw it."""

    prompt: str
    what: str
    at: float


class FaultServer(Server):
    """Answers depend on the prompt alone; faults on the prompt and how often it came.

    Of ten prompts three are answered at once; the others meet a fault once, twice, or (one in
    four) as long as ``faults`` is on. One in sixteen answers is filtered, always.
    """

    request_queue_size = 64

    def __init__(self, *, faults: bool) -> None:
        super().__init__(_Handler)
        self.faults = faults
        self.calls: list[Call] = []
        self.keys: set[str | None] = set()

    def answered(self) -> list[str]:
        """Prompts that got a whole answer, each as often as it did."""
        return [call.prompt for call in self.calls if call.what == "answer"]

    def begin(self, prompt: str) -> str:
        """Return what happens to this request, and write it down."""
        with self.lock:
            seen = sum(call.prompt == prompt for call in self.calls)
            what = fault_of(prompt, seen) if self.faults else None
            self.calls.append(Call(prompt, what or "answer", time.monotonic()))
        return what or "answer"


def digest_of(prompt: str) -> bytes:
    return blake2b(prompt.encode(), digest_size=8).digest()


def fault_of(prompt: str, seen: int) -> str | None:
    """The fault that a prompt meets when it came ``seen`` times before."""
    first, second, third, *_ = digest_of(prompt)
    times = 0 if first % 10 < 3 else 10**9 if second % 4 == 0 else 1 + second % 2
    return FAULTS[third % len(FAULTS)] if seen < times else None


def is_filtered(prompt: str) -> bool:
    return digest_of(prompt)[3] % 16 == 0


def answer_to(prompt: str) -> dict:
    """The body of an answer; the same whenever it is asked."""
    written = f"What was said, in other words: {digest_of(prompt).hex()} é."
    filtered = is_filtered(prompt)
    message = {"role": "assistant", "content": "" if filtered else written}
    finish = "content_filter" if filtered else "stop"
    choice = {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 9, "total_tokens": 9}
    common = {"id": "c", "object": "chat.completion", "created": 1, "model": "faulty"}
    return {**common, "choices": [choice], "usage": usage}


class _Handler(Handler):
    server: FaultServer
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.keys.add(self.headers["authorization"])
        prompt = body["messages"][0]["content"]
        whole = json.dumps(answer_to(prompt)).encode()
        what = self.server.begin(prompt)
        if what == "answer":
            self.reply(200, whole, {})
        elif what == "rate_limited":
            slowly = b'{"error": {"message": "slowly"}}'
            self.reply(429, slowly, {"retry-after": f"{RETRY_AFTER}"})
        elif what == "server_error":
            self.reply(500, b"<html>boom</html>", {})
        elif what == "overloaded":
            self.reply(503, b"", {})
        elif what == "malformed":
            self.reply(200, whole[:-20], {})
        elif what == "no_choices":
            self.reply(200, json.dumps({**answer_to(prompt), "choices": []}).encode(), {})
        elif what == "truncated":
            self.reply(200, whole[: len(whole) // 2], {"content-length": str(len(whole))})
            self.close_connection = True
        elif what == "hang":
            self.server.closing.wait(30)
            self.close_connection = True
        else:
            linger = struct.pack("ii", 1, 0)  # close by a reset, not by an end
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True


def faulty(*, faults: bool = True) -> AbstractContextManager[FaultServer]:
    return running(FaultServer(faults=faults))
