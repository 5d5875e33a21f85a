"""The example applications of the README run, and see what a bare application retrieves."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("langchain_chroma", "llama_index.vector_stores.chroma", "sentence_transformers"):
    pytest.importorskip(package)

pytestmark = pytest.mark.frameworks

FOLDER = Path(__file__).parents[2] / "benchmarks" / "rag"


def check(printed: str) -> None:
    assert "6 retrievals observed, 0 events dropped" in printed
    rows = re.findall(r"^(\S+) +50\.0% +([\d.]+)% +([\d.]+)%$", printed, flags=re.MULTILINE)
    assert [source for source, _, _ in rows] == ["human", "llm:claude"]
    assert sum(float(share) for _, share, _ in rows) == pytest.approx(100, abs=0.2)
    assert sum(float(first) for _, _, first in rows) == pytest.approx(100, abs=0.2)


def test_the_example_with_langchain_answers_and_prints_the_skew_it_observed() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "langchain_chroma.py"), "--pairs", "6", "--answers", "1"],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("Q: is pew research trustworthy\nA: ")
    check(done.stdout)


def test_the_example_with_llama_index_prints_the_skew_it_observed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has loaded what takes a process of its own longest."""
    script = FOLDER / "llama_index_chroma.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--pairs", "6", "--answers", "0"])
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("\n6 retrievals")
    check(printed)
