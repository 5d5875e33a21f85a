"""The command line as a user runs it: a subprocess, real files, real output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import INTERRUPTIBLE, inside, run, succeed
from ranked_pairs import FILES, write_ranked_pairs

from rag_sourcebias.core.data import Qrels
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.pairs.writing import write_beir


@pytest.fixture
def trec(tmp_path: Path) -> Path:
    """Write 40 queries whose human document ranks first on 30 of them."""
    write_ranked_pairs(tmp_path, ["hl"] * 30 + ["lh"] * 10, source="llm:tésté")
    return tmp_path


def test_finished_runs_give_the_three_reports(trec: Path) -> None:
    done = run("audit", "source", *FILES, "--report", "out", cwd=trec)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (trec / "out").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    cells = json.loads((trec / "out" / "report.json").read_text(encoding="utf-8"))["systems"][0][
        "cells"
    ]
    first = next(c for c in cells if c["measure"] == "NDCG@1")
    assert first["relative_delta"] == pytest.approx(100.0)  # (.75 − .25) / .5 · 100
    assert "+100.0" in done.stdout
    succeed("start", "out/report.json", "--report", "again", cwd=trec)
    assert (trec / "again" / "report.md").read_text(encoding="utf-8") == (
        trec / "out" / "report.md"
    ).read_text(encoding="utf-8")


@pytest.mark.frameworks
def test_the_bundled_sample_runs_with_bm25(tmp_path: Path) -> None:
    succeed(
        *("audit", "source", "--sample", "--retriever", "bm25", "--cache", "cache"),
        *("--report", "out", "--cutoffs", "1,5"),
        cwd=tmp_path,
    )
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "bm25" in html
    assert "CC BY 4.0" in html


def write_pairs(folder: Path, n: int) -> None:
    """Write the first pairs of the bundled sample, with the queries they answer."""
    sample = load_sample()
    corpus, queries = sample.corpus.take(np.arange(2 * n)), sample.queries[:n]
    sources = corpus.tags.counts()
    rows = [(q.query_id, f"{q.query_id}@{source}", 1) for q in queries for source in sources]
    write_beir(replace(sample, corpus=corpus, queries=queries, qrels=Qrels.from_rows(rows)), folder)


@pytest.mark.frameworks
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_interruption_keeps_the_cache_and_writes_no_report(tmp_path: Path) -> None:
    write_pairs(tmp_path / "data", 40)
    arguments = [
        *("audit", "source", "data", "--retriever", "dense:all-MiniLM-L6-v2,batch_size=4"),
        *("--cache", "cache", "--report", "out", "--no-sole-corpus", "--no-length-matched"),
    ]
    with subprocess.Popen(
        [*INTERRUPTIBLE, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    ) as process:
        vectors = tmp_path / "cache" / "vectors.sqlite"
        deadline = time.monotonic() + 400  # a busy machine loads the model slowly
        while time.monotonic() < deadline and count(vectors) < 8:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=200)
    kept = count(vectors)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert not (tmp_path / "out").exists()
    assert kept >= 8
    code, _, messages = inside(*arguments, cwd=tmp_path)
    assert code == 0, messages
    assert (tmp_path / "out" / "report.html").exists()


def count(path: Path) -> int:
    """Rows of the vector cache, 0 before it exists."""
    import sqlite3

    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
