"""``monitor``: the commands, on logs that an EventLog wrote."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import COMMAND, ENVIRONMENT, inside, refused, succeed, write_csv
from shifted_logs import EVERY, HUMAN, START, write_log

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.infer.verified import Verification, write_verification
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog


def replayed(*args: str, cwd: Path) -> dict[str, object]:
    code, output, messages = inside("monitor", "replay", *args, "--json", "-", cwd=cwd)
    assert code == 0, messages
    return json.loads(output)


def test_figures_of_a_replay_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    write_log(tmp_path / "log.db")
    args = ("monitor", "replay", "log.db", "--json", "figures.json")
    code, shown, messages = inside(*args, cwd=tmp_path)
    assert code == 0, messages
    assert "1,200 retrievals" in shown
    assert json.loads((tmp_path / "figures.json").read_text()) == replayed("log.db", cwd=tmp_path)
    code, _, messages = inside(*args[:-1], "no/figures.json", cwd=tmp_path)
    assert code == 2
    assert "folder no does not exist" in " ".join(messages.split())


def test_replay_finds_the_shift_and_when_it_was(tmp_path: Path) -> None:
    write_log(tmp_path / "log.db")
    found = replayed("log.db", "--baseline", "reference:200", cwd=tmp_path)
    assert found["retrievals"] == 1_200
    assert found["dropped"] == {}
    (alarm,) = found["alarms"]  # one shift, of both sources
    assert alarm["rule"] == "shift"
    assert {move["group"] for move in alarm["moves"]} == {"human", "llm:x"}
    assert 800 <= (alarm["at"] - START) / EVERY < 880
    assert 775 <= (alarm["since"] - START) / EVERY <= 825
    assert not alarm["lower"] <= alarm["baseline"] <= alarm["upper"]
    before = replayed(
        "log.db",
        "--baseline",
        "shares:human=0.5,llm:x=0.5",
        "--until",
        iso(START + 400 * EVERY),
        cwd=tmp_path,
    )
    assert before["retrievals"] == 400
    assert before["alarms"] == []


def iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()


def write_sheet(path: Path, others: Sequence[str] = ("llm:x",)) -> None:
    """People find 90 of 100 LLM texts tagged so, and 95 of 100 human ones."""
    truth = ["llm:x"] * 100 + ["human"] * 100
    tags = [others[i % len(others)] for i in range(90)] + ["human"] * 105 + ["llm:x"] * 5
    texts = {f"d{i}": f"text {i}" for i in range(200)}
    found = Verification(
        kind="store", detector="d", tags=dict(zip(texts, tags, strict=True)),
        chance=dict.fromkeys(texts, 0.1), truth={}, score=dict.fromkeys(texts, 0.5),
        decided=frozenset(texts), n_drawn=200,
    )  # fmt: skip
    write_verification(path, found, texts)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [
            (r["row_id"], r["text"], t) for r, t in zip(csv.DictReader(file), truth, strict=True)
        ]
    write_csv(path, ("row_id", "text", "source"), rows)


def test_a_sheet_of_verified_documents_gives_the_rates(tmp_path: Path) -> None:
    write_log(tmp_path / "log.db")
    write_sheet(tmp_path / "sheet.csv")
    write_sheet(tmp_path / "two.csv", ("llm:x", "llm:y"))
    replay = ("monitor", "replay", "log.db", "--tag-errors")
    by_hand = succeed(*replay, "llm:x=0.9,0.95", cwd=tmp_path)
    assert "corrected" in by_hand
    assert succeed(*replay, "sheet.csv", cwd=tmp_path) == by_hand
    told = refused(*replay, "two.csv", cwd=tmp_path)
    assert "holds tags of 2 sources other than human" in told


def test_what_is_printed_names_shares_and_alarms(tmp_path: Path) -> None:
    write_log(tmp_path / "log.db")
    text = succeed(
        "monitor", "replay", "log.db", "--baseline", "shares:human=0.5,llm:x=0.5", "--tag-errors",
        "llm:x=0.9,0.95", cwd=tmp_path,
    )  # fmt: skip
    assert "collection=docs: 1,200 retrievals, 12,000 documents, 0 empty" in text
    assert "ALARM" in text
    assert "corrected" in text
    assert "exposure of llm:x 0.500 →" in text
    text = succeed("start", "log.db", cwd=tmp_path)
    assert "1,200 retrievals kept of 1,200 written" in text
    assert "llm:x" in text


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ((), "nothing was recorded: is what the application searches instrumented?"),
        ((DocTags(),), "no document had a source or a style: tag them"),
        ((DocTags(), HUMAN), None),
    ],
)
def test_a_log_without_retrievals_or_tags_says_so(tmp_path: Path, tags, said) -> None:
    with EventLog(tmp_path / "log.db") as log:
        for tag in tags:
            ranked = RankedList(query_id="", doc_ids=("a",))
            log.record(RetrievalEvent(ranked=ranked, tags=(tag,)), at=START)
    text = succeed("start", "log.db", cwd=tmp_path)
    for line in ("nothing was recorded", "no document had a source or a style"):
        assert (line in text) == (said is not None and said.startswith(line))


def test_a_run_is_replayed_with_the_tags_of_its_documents(tmp_path: Path) -> None:
    rows = (f"q{q} Q0 d{d} {d + 1} {10 - d} run\n" for q in range(30) for d in range(10))
    (tmp_path / "x.run").write_text("".join(rows), encoding="utf-8")
    tags = "doc_id\tsource\n" + "".join(
        f"d{d}\t{'human' if d < 5 else 'llm:x'}\n" for d in range(10)
    )
    (tmp_path / "tags.tsv").write_text(tags, encoding="utf-8")
    found = replayed("x.run", "--tags", "tags.tsv", "--baseline", "tags:tags.tsv", cwd=tmp_path)
    (snapshot,) = found["snapshots"]
    weights = 1 / np.log2(np.arange(2, 12))
    (share,) = (
        g["share"]
        for g in snapshot["groups"]
        if (g["group"], g["measure"]) == ("human", "exposure")
    )
    assert share == pytest.approx(weights[:5].sum() / weights.sum())
    own = tags.replace("doc_id\tsource", "docno\tauthor")
    (tmp_path / "own.tsv").write_text(own, encoding="utf-8")
    named = ("--tags", "own.tsv", "--baseline", "tags:own.tsv")
    columns = ("--id", "docno", "--group", "author")
    (same,) = replayed("x.run", *named, *columns, cwd=tmp_path)["snapshots"]
    assert same["groups"] == snapshot["groups"]
    replay = ("monitor", "replay", "x.run")
    (usual,) = replayed("x.run", *named, cwd=tmp_path)["snapshots"]
    assert usual["groups"] == snapshot["groups"]
    (tmp_path / "odd.tsv").write_text(own.replace("docno", "shelf"), encoding="utf-8")
    message = refused(*replay, "--tags", "odd.tsv", *named[2:], cwd=tmp_path)
    assert "recognised as doc_id; its columns are shelf, author" in message
    assert "are columns of a file of tags" in refused(*replay, "--id", "docno", cwd=tmp_path)
    styled = own.replace("author", "source\tvoice").replace("human", "human\tplain")
    (tmp_path / "own.tsv").write_text(styled.replace("llm:x", "llm:x\trich"), encoding="utf-8")
    by = ("--by", "style", "--id", "docno", "--group", "voice")
    (styles,) = replayed("x.run", *named, *by, cwd=tmp_path)["snapshots"]
    assert {g["group"] for g in styles["groups"]} == {"plain", "rich"}


def test_rules_are_written_and_replaced_where_that_is_asked(tmp_path: Path) -> None:
    assert "alerts.yml" in succeed("monitor", "serve", "--alert-rules", "rules", cwd=tmp_path)
    assert (tmp_path / "rules" / "grafana-dashboard.json").is_file()
    succeed("monitor", "serve", "--alert-rules", "rules", "--overwrite", cwd=tmp_path)


@pytest.mark.server
@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
def test_serve_shows_the_log_goes_on_after_a_restart_and_ends_quietly(tmp_path: Path) -> None:
    write_log(tmp_path / "log.db")
    for start in range(2):
        with subprocess.Popen(
            [*COMMAND, "monitor", "serve", "log.db", "--port", "0", "--baseline", "reference:200"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | ENVIRONMENT,
        ) as process:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            url = next(line for line in lines if line.startswith("http://")).split()[0]
            read = 0
            for _ in range(300):
                with urllib.request.urlopen(f"{url}api/overview", timeout=30) as answer:
                    read = json.load(answer)["follower"]["n_read"]
                if read == 1_200:
                    break
            with urllib.request.urlopen(f"{url}api/alarms", timeout=30) as answer:
                alarms = json.load(answer)["alarms"]
            for _ in range(60):  # what is shown may be a second old
                with urllib.request.urlopen(f"{url}metrics", timeout=30) as answer:
                    metrics = answer.read().decode()
                if 'rag_sourcebias_retrievals_total{collection="docs"} 1200.0' in metrics:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT if start else signal.SIGTERM)
            rest = process.stderr.read()
            process.wait(60)
        assert read == 1_200
        assert [alarm["rule"] for alarm in alarms] == ["shift"]
        assert {move["group"] for move in alarms[0]["moves"]} == {"human", "llm:x"}
        assert 'rag_sourcebias_retrievals_total{collection="docs"} 1200.0' in metrics
        if start:
            assert process.returncode == 0
            assert "stopped; tests and alarms are kept in log.db.monitor.json" in rest
    told = refused(
        "monitor", "serve", "log.db", "--port", "0", "--baseline", "reference:300", cwd=tmp_path
    )  # without one it goes on with that of before
    assert "say --start-anew" in told
