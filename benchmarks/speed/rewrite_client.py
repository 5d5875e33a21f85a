"""What the client of the rewriter adds to an endpoint's own time, and what it costs in CPU.

    python benchmarks/speed/rewrite_client.py [--quick] [--output FILE]

A stub in a process of its own answers every chat request after 50 ms; 32 requests run at once, so
that no client can be done before ceil(N / 32) · 50 ms. In turns with ours (every answer stored on
disk) run two bare loops over 32 threads that only send and read: the openai client, and the
standard library's HTTP connections, which are as close as one gets to what stub and machine allow.
Exit status 1 when a target is missed (never with ``--quick``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import openai
from rounds import finish, ratio, row

from rag_sourcebias.core.completions import Completion, Request
from rag_sourcebias.llm.ask import Asker, CompletionCache
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.pairs.rewrites import REWRITE
from rag_sourcebias.pairs.rewriting import build_paired_corpus

LATENCY = 0.05
AT_ONCE = 32
MOST_OVERHEAD = 0.05
WORDS = "A passage of about one hundred words on rivers and mills. " * 9
GROWTH = 1.1
Times = dict[str, list[float]]


class Stub(asyncio.Protocol):
    """Sends the same answer, 50 ms after each whole request."""

    reply = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) >= length:
            self.received = body[length:]
            asyncio.get_running_loop().call_later(LATENCY, self.transport.write, self.reply)


async def serve() -> None:
    message = {"role": "assistant", "content": f"In other words: {WORDS}"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 150, "completion_tokens": 130, "total_tokens": 280}
    common = {"id": "c", "object": "chat.completion", "created": 1, "model": "stub"}
    body = json.dumps({**common, "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    Stub.reply = f"{head}\r\n".encode() + body
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def stub() -> Iterator[str]:
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.kill()


def requests(n: int, lap: int) -> Iterator[Request]:
    return (Request(prompt=f"{lap} {i} {REWRITE.fill(WORDS)}", max_tokens=256) for i in range(n))


def ours(url: str, n: int) -> Callable[[int], None]:
    completer = OpenAICompleter("stub", base_url=url, max_concurrency=AT_ONCE)

    def ask(lap: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asker = Asker(completer, cache=CompletionCache(Path(folder) / "answers.sqlite"))
            for outcome in asker.ask(requests(n, lap)):
                assert outcome.answer is not None
            assert asker.usage.from_cache == 0

    return ask


def body_of(request: Request) -> dict:
    told = {"max_tokens": request.max_tokens, "temperature": 0.0, "seed": 0}
    return {"model": "stub", "messages": [{"role": "user", "content": request.prompt}], **told}


def looped(n: int, send: Callable[[dict], str]) -> Callable[[int], None]:
    def ask(lap: int) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for text in pool.map(send, map(body_of, requests(n, lap))):
                assert text

    return ask


def openai_loop(url: str, n: int) -> Callable[[int], None]:
    client = openai.OpenAI(api_key="none", base_url=url, max_retries=0)

    def send(body: dict) -> str:
        return client.chat.completions.create(**body).choices[0].message.content or ""

    return looped(n, send)


def socket_loop(url: str, n: int) -> Callable[[int], None]:
    mine = threading.local()
    headers = {"content-type": "application/json", "authorization": "Bearer none"}

    def send(body: dict) -> str:
        if not hasattr(mine, "connection"):
            mine.connection = HTTPConnection(urlsplit(url).netloc)
        mine.connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = json.loads(mine.connection.getresponse().read())
        return answer["choices"][0]["message"]["content"]

    return looped(n, send)


def client_rows(n: int, rounds: int) -> list[dict]:
    wall: Times = {}
    cpu: Times = {}
    with stub() as url:
        works = {
            "ours": ours(url, n),
            "sockets": socket_loop(url, n),
            "openai": openai_loop(url, n),
        }
        warm = {"ours": ours(url, AT_ONCE), "openai": openai_loop(url, AT_ONCE)}
        for work in warm.values():
            work(-1)
        for lap in range(rounds):
            for name in list(works) if lap % 2 == 0 else list(reversed(works)):
                started, used = time.perf_counter(), time.process_time()
                works[name](lap)
                wall.setdefault(name, []).append(time.perf_counter() - started)
                cpu.setdefault(name, []).append((time.process_time() - used) / n * 1e3)
    ideal = math.ceil(n / AT_ONCE) * LATENCY
    over = {name: statistics.median(times) / ideal - 1 for name, times in wall.items()}
    told = {
        name: f"{statistics.median(wall[name]):.3f} s ({min(wall[name]):.3f} at best), "
        f"{statistics.median(cpu[name]):.2f} ms CPU per request"
        for name in works
    }
    what = f"{n:,} requests, {AT_ONCE} at once, against an endpoint of 50 ms"
    best = min(wall["ours"]) / ideal - 1
    return [
        row(
            f"{what}: share of time above the ideal, median of {rounds} rounds",
            told["ours"],
            f"ideal: {ideal:.3f} s",
            over["ours"],
            f"< {MOST_OVERHEAD:g}",
            over["ours"] < MOST_OVERHEAD,
        ),
        row(
            f"{what}: share of time above the ideal, best round (least other load)",
            told["ours"],
            f"ideal: {ideal:.3f} s",
            best,
            "stated",
            None,
        ),
        row(
            f"{what}: time, answers stored, against bare sockets that store nothing",
            told["ours"],
            f"sockets: {told['sockets']}, {over['sockets']:+.1%} above the ideal",
            ratio(wall["ours"], wall["sockets"]),
            "stated: the floor that stub and machine set",
            None,
        ),
        row(
            f"{what}: time, answers stored, against the openai client's create in a bare loop",
            told["ours"],
            f"openai: {told['openai']}, {over['openai']:+.1%} above the ideal",
            ratio(wall["ours"], wall["openai"]),
            "≤ 1×",
            ratio(wall["ours"], wall["openai"]) <= 1,
        ),
        row(
            f"{what}: CPU time of the client, against the openai client's",
            told["ours"],
            f"openai: {told['openai']}",
            ratio(cpu["ours"], cpu["openai"]),
            "stated",
            None,
        ),
    ]


class Instant:
    """Answers at once, so that nothing but the builder is measured."""

    name = fingerprint = "instant"
    settings = {"model": "instant"}  # noqa: RUF012
    max_concurrency = AT_ONCE

    def complete(self, prompt: str, **_: object) -> Completion:
        return Completion(text=f"In other words: {prompt[-200:]}", completion_tokens=9)


def build(folder: Path, n: int) -> None:
    """Build a corpus; print seconds and the peak MiB of this process."""
    source = folder / "human"
    (source / "corpus").mkdir(parents=True)
    with (source / "corpus" / "human.jsonl").open("w") as stream:
        for i in range(n):
            stream.write(json.dumps({"_id": f"d{i}", "title": "", "text": f"{i} {WORDS}"}) + "\n")
    started = time.perf_counter()
    build_paired_corpus(source, Instant(), folder / "paired")
    seconds = time.perf_counter() - started
    # Not ru_maxrss, in which the process that started this one counts too.
    status = Path("/proc/self/status").read_text()
    print(seconds, int(status.partition("VmHWM:")[2].split()[0]) / 2**10)


def built(n: int) -> tuple[float, float]:
    """Seconds and peak MiB of a build in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--build", folder, str(n)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def builder_rows(small: int, large: int) -> list[dict]:
    seconds, before = built(small)
    _, after = built(large)
    return [
        row(
            f"builder of {small:,} documents around a model that answers at once, all its files",
            f"{seconds:.2f} s",
            "",
            seconds / small * 1e3,
            "stated, in ms per document: reading, hashing, storing, cleaning, writing",
            None,
        ),
        row(
            f"peak memory of the builder's process, {large:,} documents against {small:,}",
            f"{after:.1f} MiB",
            f"{before:.1f} MiB",
            after / before,
            f"< {GROWTH:g}×",
            after / before < GROWTH,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Overhead and memory of the rewriter's client.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdict")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/…")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    if options.build:
        build(Path(options.build[0]), int(options.build[1]))
        return 0
    n, rounds, small, large = (256, 2, 200, 1_000) if options.quick else (2_000, 7, 2_000, 20_000)
    loads = [round(load, 2) for load in os.getloadavg()]
    found = client_rows(n, rounds) + builder_rows(small, large)
    return finish(
        "rewrite_client", found, quick=options.quick, output=options.output, loads_before=loads
    )


if __name__ == "__main__":
    sys.exit(main())
