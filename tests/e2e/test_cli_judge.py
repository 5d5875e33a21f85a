"""Judging from the command line: real requests to a local server, real files."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    ENVIRONMENT,
    INTERRUPTIBLE,
    inside,
    read_csv,
    succeed,
    write_csv,
)
from model_server import LocalServer, Reply, chat_reply, serving

pytest.importorskip("openai")

from rag_sourcebias.intake.judged import read_label_distributions

pytestmark = pytest.mark.server

N = 60


def answer(path: str, body: dict, seen: int) -> Reply:
    """Judge by whether the answer names Paris; some answers make the server or the model fail."""
    text = body["messages"][0]["content"].split("Answer:")[-1].split("Passage:")[-1]
    if "SLOW" in text:
        time.sleep(0.15)
    if "TOO LONG" in text:
        return 400, {}, json.dumps({"error": {"message": "context length exceeded"}}).encode()
    if "GARBAGE" in text:
        return chat_reply("who knows")
    if "REFUSE" in text:
        return chat_reply("I'm sorry, but I can't help with that.")
    right = "Paris" in text
    logprobs = {"1": -0.1, "0": -2.5} if right else {"1": -2.5, "0": -0.1}
    return chat_reply("1" if right else "0", logprobs=logprobs if "logprobs" in body else None)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with serving(answer) as found:
        yield found


def model(server: LocalServer) -> tuple[str, ...]:
    return ("--model", "openai:m", "--base-url", server.url, "--cache", "cache")


def answers(folder: Path, *, special: dict[int, str] | None = None, slow: bool = False) -> None:
    rows = []
    for k in range(N):
        text = "It is Paris." if k % 3 else "Lyon, je crois – «né»"
        text = (special or {}).get(k, f"{text} {'SLOW' if slow else ''} {k}")
        human = int(k % 3 > 0) if k < 30 else ""
        rows.append((f"q{k}", f"Capital of France ({k})?", "Paris", text, f"s{k % 2}", human))
    header = ("id", "question", "reference", "response", "system", "human")
    write_csv(folder / "answers.csv", header, rows)


def test_answers_are_judged_failures_counted_and_an_interval_follows(
    tmp_path: Path, server: LocalServer
) -> None:
    answers(tmp_path, special={5: "GARBAGE", 6: "REFUSE", 7: "TOO LONG"})
    asked = ("judge", "grade", "answers.csv", *model(server), "--mode", "votes", "--votes", "3")
    text = succeed(*asked, "--group", "system", "-o", "judged.csv", cwd=tmp_path)
    for status, n in (("ok", 57), ("garbage", 1), ("refused", 1), ("rejected", 1)):
        assert f"{n} {status}: " in text
    assert "1 garbage: answered without a readable grade, first q5 answer: " in text
    rows = read_csv(tmp_path / "judged.csv")
    assert list(rows[0]) == ["id", "human", "group", "judge", "status", "mass", "reason"]
    assert [r["judge"] for r in rows[:8]] == ["0", "1", "1", "0", "1", "", "", ""]
    assert [r["status"] for r in rows[5:8]] == ["garbage", "refused", "rejected"]
    assert "context length" in rows[7]["reason"]
    assert len(read_label_distributions(tmp_path / "judged.labels.csv")) == 57
    line = succeed("interval", "judged.csv", cwd=tmp_path)
    assert "score, s0: 0.6" in line
    assert "15 labelled + 15 judged" in line
    assert "no value for 3 of 60 items, first 'q5'" in line


def test_the_same_command_asks_nothing_twice(tmp_path: Path, server: LocalServer) -> None:
    answers(tmp_path)
    asked = ("judge", "grade", "answers.csv", *model(server), "-o", "judged.csv")
    plan = succeed(*asked, "--dry-run", "--price-in", "100", "--price-out", "0", cwd=tmp_path)
    assert "60 items, 60 requests, 0 answered already" in plan
    assert "about 0." in plan
    assert not server.prompts
    first = succeed(*asked, "--limit", "20", cwd=tmp_path)
    assert "20 requests (0 from the cache" in first
    second = succeed(*asked, cwd=tmp_path)
    assert "60 requests (20 from the cache" in second
    assert sum(server.prompts.values()) == 60
    assert "60 answered already" in succeed(*asked, "--dry-run", cwd=tmp_path)


def test_a_run_stops_when_the_money_is_spent_and_goes_on_later(
    tmp_path: Path, server: LocalServer
) -> None:
    answers(tmp_path)
    asked = ("judge", "grade", "answers.csv", *model(server), "-o", "judged.csv")
    # 10 tokens read and 2 written per answer: 0.012 each at these prices
    prices = ("--price-in", "1000", "--price-out", "1000", "--concurrency", "2")
    code, text, _ = inside(*asked, *prices, "--max-cost", "0.12", cwd=tmp_path)
    assert code == 1
    assert 10 <= sum(server.prompts.values()) <= 12
    flat = " ".join(text.split())
    assert "not_asked: the run stopped before, first " in flat
    assert "--max-cost 0.12 USD is spent" in flat
    statuses = [r["status"] for r in read_csv(tmp_path / "judged.csv")]
    assert statuses.count("ok") == sum(server.prompts.values())
    succeed(*asked, cwd=tmp_path)
    assert {r["status"] for r in read_csv(tmp_path / "judged.csv")} == {"ok"}


def test_a_password_in_the_address_is_shown_and_stored_nowhere(
    tmp_path: Path, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, special={7: "TOO LONG"})
    secrets = ("pa55-w0rd", base64.b64encode(b"me:pa55-w0rd").decode(), "sk-s3cret")
    monkeypatch.setenv("OPENAI_API_KEY", secrets[2])
    asked = ("-v", "judge", "grade", "answers.csv", "--model", "openai:m", "--cache", "cache")
    address = ("--base-url", server.url.replace("//", f"//me:{secrets[0]}@"))
    shown = [inside(*asked, *address, "-o", "judged.csv", cwd=tmp_path)]
    assert server.authorizations == {f"Basic {secrets[1]}"}
    for end in ("?key=sk-s3cret", ":x/v1", "1", "@"):
        wrong = ("--base-url", address[1].removesuffix("/v1") + end, "--dry-run")
        shown.append(inside(*asked, *wrong, "-o", "other.csv", cwd=tmp_path))
    assert [code for code, *_ in shown] == [0, 2, 2, 2, 2]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.name for file in files} >= {"completions.sqlite", "judged.csv"}
    told = [file.read_bytes() for file in files] + [str(one).encode() for one in shown]
    assert not [text for text in told for secret in secrets if secret.encode() in text]
    assert any(server.url.encode() in text for text in told)


def pairs(folder: Path) -> None:
    (folder / "a.run").write_text(
        "\n".join(f"q{q} Q0 d{q}-{r} {r} {9 - r} a" for q in range(4) for r in (1, 2, 3)),
        encoding="utf-8",
    )
    (folder / "queries.tsv").write_text("".join(f"q{q}\tquery {q}\n" for q in range(4)))
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
        for q in range(4):
            for r in (1, 2, 3, 4):
                text = "TOO LONG" if (q, r) == (3, 2) else "Paris ü" if r == 1 else "Lyon"
                file.write(json.dumps({"_id": f"d{q}-{r}", "title": "t", "text": text}) + "\n")
    (folder / "human.qrels").write_text("q0 0 d0-1 1\nq0 0 d0-4 0\n", encoding="utf-8")


PAIRS = ("--run", "a.run", "--queries", "queries.tsv", "--documents", "docs.jsonl")


def test_pairs_of_a_run_and_of_judgments_get_distributions(
    tmp_path: Path, server: LocalServer
) -> None:
    pairs(tmp_path)
    (tmp_path / "prompt.txt").write_text("Q: {query}\nPassage: {passage}\n", encoding="utf-8")
    own = ("--prompt", "prompt.txt", "--grade-names", "0,1")
    asked = ("judge", "grade", *PAIRS, *model(server), *own, "--depth", "2")
    text = succeed(*asked, "--qrels", "human.qrels", "-o", "labels.tsv", cwd=tmp_path)
    assert "9 items" in text  # 4 × 2 of the run, and d0-4
    labels = read_label_distributions(tmp_path / "labels.tsv")
    assert len(labels) == 8  # one failed
    best = {
        (labels.query_ids[q], labels.doc_ids[d])
        for q, d, p in zip(labels.query_codes, labels.doc_codes, labels.probs, strict=True)
        if p[1] > 0.5
    }
    assert best == {(f"q{q}", f"d{q}-1") for q in range(4)}
    status = (tmp_path / "labels.status.tsv").read_text(encoding="utf-8").splitlines()
    assert len(status) == 10
    assert [line.split("\t")[:4] for line in status if "rejected" in line] == [
        ["q3", "d3-2", "", "rejected"]
    ]


def test_audit_prints_findings_and_labelled_items_tell_drift(tmp_path: Path) -> None:
    rows = [(f"i{k}", int(k % 3 > 0), (k % 3 > 0) * 0.8 + k % 7 * 0.02) for k in range(60)]
    write_csv(tmp_path / "items.csv", ("id", "human", "judge"), rows)
    text = succeed("judge", "audit", "items.csv", cwd=tmp_path)
    for word in ("labelled items: 60", "Pearson", "κ", "judge − human", "calibration"):
        assert word in text
    found = json.loads(succeed("judge", "audit", "items.csv", "--json", "-", cwd=tmp_path))
    assert found["n"] == 60
    same = succeed("judge", "audit", "items.csv", "--against", "items.csv", cwd=tmp_path)
    assert "stable" in same
    moved = [(name, y, f + (0.1 if y else 0.3)) for name, y, f in rows]
    write_csv(tmp_path / "now.csv", ("id", "human", "judge"), moved)
    again = ("judge", "audit", "now.csv", "--against", "items.csv")
    code, output, _ = inside(*again, cwd=tmp_path)
    assert code == 1
    assert "100% changed" in output
    assert "the judge has drifted" in output


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_interruption_keeps_the_answers_and_writes_nothing(
    tmp_path: Path, server: LocalServer
) -> None:
    answers(tmp_path, slow=True)
    asked = ("judge", "grade", "answers.csv", *model(server), "--concurrency", "2")
    with subprocess.Popen(
        [*INTERRUPTIBLE, *asked, "-o", "judged.csv"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    ) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sum(server.prompts.values()) < 6:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=30)
    assert process.returncode == 130, messages
    assert "interrupted" in messages
    assert "Traceback" not in messages
    assert not (tmp_path / "judged.csv").exists()
    before = sum(server.prompts.values())
    assert before < N
    succeed(*asked, "-o", "judged.csv", cwd=tmp_path)
    # nothing that had been answered was asked again, but for what was on its way
    assert N <= sum(server.prompts.values()) <= N + 2
