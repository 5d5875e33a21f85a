"""The example that debiases a running application: from pairs to a switch and back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("langchain_chroma", "sentence_transformers"):
    pytest.importorskip(package)

pytestmark = pytest.mark.frameworks

EXAMPLE = Path(__file__).parents[2] / "benchmarks" / "rag" / "debias_chroma.py"


def run(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *options],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_from_pairs_to_a_switched_application_and_back(tmp_path: Path) -> None:
    printed = run("--pairs", "80", "--report", str(tmp_path / "report"))
    assert printed.count("40 retrievals observed, 0 events dropped") == 2
    assert "40 pairs" in printed
    assert "The mean direction is taken instead." in printed  # they are too few for four
    assert "160 stored vectors projected, none encoded again" in printed
    assert "Only the old one answered: True. 40 queries compared." in printed
    assert re.search(r"switch changed the passages of [1-9]\d* of 40 questions", printed)
    assert printed.endswith("After the roll-back they are as before: True.\n")
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["kind"] == "debias"
    before, after = report["datasets"][0]["outcomes"]
    assert (before["n_seen"], after["n_seen"]) == (0, 0)  # judged on other pairs than it saw


def test_help() -> None:
    printed = run("--help")
    assert "--report" in printed
    assert "--data" in printed
