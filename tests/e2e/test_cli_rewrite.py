"""Rewriting from the command line: real requests to a local server, killed and gone on with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from command_line import COMMAND, ENVIRONMENT, INTERRUPTIBLE, inside, refused, succeed
from model_server import LocalServer, Reply, chat_reply, serving

pytest.importorskip("openai")

from rag_sourcebias.intake.beir import read_beir

pytestmark = pytest.mark.server

N = 40
IN_FLIGHT = 4


class Model:
    """What it writes depends on the prompt alone; some documents make it or the server fail."""

    def __init__(self) -> None:
        self.broken = threading.Event()

    def __call__(self, path: str, body: dict, seen: int) -> Reply:
        text = body["messages"][0]["content"]
        if "SLOW" in text:
            time.sleep(0.02)
        if "TOO LONG" in text and self.broken.is_set():
            return 400, {}, json.dumps({"error": {"message": "context length exceeded"}}).encode()
        if "REFUSE" in text:
            return chat_reply("I'm sorry, but I can't help with that.")
        words = text.split(": ", 1)[-1].replace("Document", "Paper").replace("about", "on")
        mark = blake2b(text.encode(), digest_size=4).hexdigest()
        sure = "Sure, here's a possible rewrite of the text:\n\n" if mark[0] in "0123" else ""
        return chat_reply(f"{sure}{words} Né {mark}.")


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with serving(Model()) as found:
        yield found


def documents(folder: Path, n: int = N, *, more: str = "", layout: str = "corpus.jsonl") -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / layout).parent.mkdir(exist_ok=True)
    rows = [
        {
            "_id": f"d{i}",
            "title": f"T{i}",
            "text": f"Document {i} is about the naïve {['rivers', 'lakes', 'seas'][i % 3]}. {more}",
            "metadata": {"source": "human"},
        }
        for i in range(n)
    ]
    (folder / layout).write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": f"q{i}", "text": f"SECRET{i} rivers lakes seas {i}"} for i in range(n)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    qrels = "".join(f"q{i}\td{i}\t1\n" for i in range(n))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    return folder


def edit(folder: Path, number: int, text: str) -> None:
    file = folder / "corpus.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[number]["text"] = text
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def model(server: LocalServer) -> tuple[str, ...]:
    limits = ("--concurrency", str(IN_FLIGHT), "--timeout", "20")
    return ("--model", "openai:writer", "--base-url", server.url, *limits)


def files(folder: Path) -> dict[str, bytes]:
    """Everything but the cache of answers, and without the day on which a run began."""
    return {
        str(p.relative_to(folder)): re.sub(rb'"date": "[0-9-]+"', b"", p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file() and "answers.sqlite" not in p.name
    }


def asked(server: LocalServer) -> int:
    return sum(server.prompts.values())


def test_a_dry_run_counts_and_asks_nothing(
    tmp_path: Path, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(tmp_path / "in")
    prices = ("--price-in", "100", "--price-out", "1000", "--currency", "EUR")
    command = ("rewrite", "in", *model(server), "-o", "out", "--prompts", "styles")
    text = succeed(*command, *prices, "--max-tokens", "50", "--dry-run", cwd=tmp_path)
    assert "40 documents × 9 prompts: 360 requests, 0 answered already" in text
    assert "18,000 to write at most" in text
    low, high = map(float, re.findall(r"about ([\d.]+) EUR, at most ([\d.]+)", text)[0])
    assert 0 < low < high
    assert high == pytest.approx(18_000 * 1000 / 1e6, abs=5)
    assert "give --price-in" in succeed(*command, "--dry-run", cwd=tmp_path)
    # At OpenAI itself there is a key to pay with; looking needs none.
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    paid = ("rewrite", "in", "--model", "openai:gpt-x", "-o", "out")
    assert "40 requests" in succeed(*paid, "--dry-run", cwd=tmp_path)
    assert "set OPENAI_API_KEY" in refused(*paid, cwd=tmp_path)
    assert not server.prompts
    assert not (tmp_path / "out").exists()


def test_documents_end_with_a_reason_and_those_that_failed_are_asked_again(
    tmp_path: Path, server: LocalServer
) -> None:
    source = documents(tmp_path / "in")
    edit(source, 3, "REFUSE this")
    edit(source, 5, "TOO LONG for now, but about lakes.")
    edit(source, 7, "   ")
    assert isinstance(server.answer, Model)
    server.answer.broken.set()
    command = ("rewrite", "in", *model(server), "-o", "out", "--name", "org/w")
    code, text, messages = inside(*command, "--price-in", "1000", "--price-out", "0", cwd=tmp_path)
    flat = " ".join(text.split())
    assert code == 1
    assert "llm:org/w 37 2 1 " in flat
    assert "1 skipped, refusal (the model declined), first d3" in flat
    assert "1 skipped, no text (the document is empty), first d7" in flat
    assert "first d5:" in flat
    assert "context length exceeded" in flat
    assert "run the same command again" in flat
    assert "39 requests (0 answered before or equal to another, 0 retries)" in flat
    assert "380 tokens read, 76 written that cost 0.3800 USD" in flat
    for word in ("org%2Fw.jsonl", "manifest.json", "check-pairs out", "audit source out"):
        assert word in messages
    assert not any("SECRET" in prompt or "T3" in prompt for prompt in server.prompts)
    server.answer.broken.clear()
    before = asked(server)
    # Another prompt is complete, whatever is left of the first one.
    styled = succeed(*command, "--prompts", "style-3", cwd=tmp_path)
    assert "llm:org/w 37 2 1 " in styled
    assert "llm:org/w+style-3 38 2 0 " in styled
    assert asked(server) == before + 39
    before = asked(server)
    text = succeed(*command, cwd=tmp_path)
    assert "llm:org/w 38 2 0 " in text
    assert "failed," not in text
    assert asked(server) == before + 1
    assert "this run: 0 requests" in succeed(*command, cwd=tmp_path)
    data = read_beir(tmp_path / "out")
    assert data.corpus.tags.counts() == {
        "human": 40,
        "llm:org/w": 38,
        "llm:org/w+style-3": 38,
    }
    audited = succeed("audit", "source", "out", "--retriever", "bm25", cwd=tmp_path)
    assert "org/w" in audited


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_run_goes_on_to_the_same_bytes_and_pays_nothing_twice(
    tmp_path: Path, server: LocalServer
) -> None:
    documents(tmp_path / "in", more="SLOW")
    command = ("rewrite", "in", *model(server), "--prompts", "rewrite,style-3")
    succeed(*command, "-o", "whole", cwd=tmp_path)
    assert asked(server) == 2 * N
    server.prompts.clear()
    # in the middle of the second prompt
    _stopped([*COMMAND, *command, "-o", "out"], tmp_path, server, N + N // 2, signal.SIGKILL)
    assert N + N // 2 <= asked(server) < 2 * N
    succeed(*command, "-o", "out", cwd=tmp_path)
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    assert len(server.prompts) == 2 * N
    # Requests in flight, and answers of the last 50 ms (two of 20 ms each) only in memory; more on
    # a busy machine. Without resuming it would be N + N // 2.
    assert asked(server) - 2 * N <= 8 * IN_FLIGHT
    dry = succeed(*command, "-o", "out", "--dry-run", cwd=tmp_path)
    assert "80 requests, 80 answered already" in dry


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path: Path, server: LocalServer) -> None:
    documents(tmp_path / "in", more="SLOW")
    command = ("rewrite", "in", *model(server), "-o", "out")
    process, messages = _stopped(
        [*INTERRUPTIBLE, *command], tmp_path, server, N // 2, signal.SIGINT
    )
    assert process.returncode == 130, messages
    assert "the same command goes on" in messages
    assert "Traceback" not in messages
    succeed(*command, cwd=tmp_path)
    assert asked(server) <= N + 1  # what was on its way when Ctrl-C came was kept too
    assert len(read_beir(tmp_path / "out").corpus) == 2 * N


def _stopped(
    command: list[str], folder: Path, server: LocalServer, wanted: int, how: signal.Signals
) -> tuple[subprocess.Popen[str], str]:
    """Stop a run once the server was asked so often."""
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    ) as process:
        deadline = time.monotonic() + 60
        while asked(server) < wanted and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(how)
        _, messages = process.communicate(timeout=30)
    return process, messages


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs ulimit of bash")
def test_a_full_disk_is_an_error_and_what_was_paid_is_kept(
    tmp_path: Path, server: LocalServer
) -> None:
    documents(tmp_path / "in", more="Words. " * 300)  # files of 100 KiB
    command = ("rewrite", "in", *model(server), "-o", "out")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 80 && exec "$@"', "bash", *COMMAND, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | ENVIRONMENT,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "out").rglob(".*.tmp"))
    succeed(*command, cwd=tmp_path)
    assert asked(server) == N


def test_wrong_data_is_refused(tmp_path: Path, server: LocalServer) -> None:
    source = documents(tmp_path / "in", 6)
    command = ("rewrite", "in", *model(server), "-o", "out")
    corpus = source / "corpus.jsonl"
    good = corpus.read_text()
    corpus.write_text(good.replace('"human"', '""'))
    refused(*command, cwd=tmp_path)
    assert not server.prompts
    succeed(*command, "--untagged-as-human", cwd=tmp_path)
    assert asked(server) == 6
    # Other settings and other documents do not mix with what the folder holds.
    warmer = (*command, "--untagged-as-human", "--temperature", "0.5", "--dry-run")
    warned = succeed(*warmer, cwd=tmp_path)
    assert "6 requests, 0 answered already" in warned
    assert "but this command would be refused: " in warned
    assert "temperature 0.0 (now 0.5); choose another folder" in warned
    again = succeed(*command, "--untagged-as-human", "--dry-run", cwd=tmp_path)
    assert "6 answered already" in again
    assert "refused" not in again
    corpus.write_text(good)
    edit(source, 1, "changed")
    told = succeed(*command, "--dry-run", cwd=tmp_path)
    assert "would be refused: out was made from other documents" in told
    assert asked(server) == 6


def test_a_run_stops_when_the_money_is_spent(tmp_path: Path, server: LocalServer) -> None:
    documents(tmp_path / "in")
    command = ("rewrite", "in", *model(server), "-o", "out")
    # 10 tokens read and 2 written per answer: 0.012 each at these prices
    prices = ("--price-in", "1000", "--price-out", "1000")
    code, text, _ = inside(*command, *prices, "--max-cost", "0.12", cwd=tmp_path)
    assert code == 1
    assert 10 <= asked(server) <= 10 + IN_FLIGHT
    assert "--max-cost 0.12 USD is spent" in " ".join(text.split())
    succeed(*command, *prices, cwd=tmp_path)
    assert asked(server) == N
