"""The example applications of the README run, and see what a bare application retrieves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("langchain_chroma", "llama_index.vector_stores.chroma", "sentence_transformers"):
    pytest.importorskip(package)

pytestmark = pytest.mark.frameworks

FOLDER = Path(__file__).parents[2] / "benchmarks" / "rag"


def run(name: str, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), "--pairs", "6", *options],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("name", "answers", "start"),
    [
        ("langchain_chroma.py", "1", "Q: is pew research trustworthy\nA: "),
        ("llama_index_chroma.py", "0", "\n6 retrievals"),  # the language model takes its time
    ],
)
def test_an_example_prints_the_skew_it_observed(name: str, answers: str, start: str) -> None:
    printed = run(name, "--answers", answers)
    assert printed.startswith(start)
    assert "6 retrievals observed, 0 events dropped" in printed
    rows = re.findall(r"^(\S+) +50\.0% +([\d.]+)% +([\d.]+)%$", printed, flags=re.MULTILINE)
    assert [source for source, _, _ in rows] == ["human", "llm:claude"]
    assert sum(float(share) for _, share, _ in rows) == pytest.approx(100, abs=0.2)
    assert sum(float(first) for _, _, first in rows) == pytest.approx(100, abs=0.2)
