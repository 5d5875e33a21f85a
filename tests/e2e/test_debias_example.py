"""The example that debiases a running application: from pairs to a switch and back."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

for package in ("langchain_chroma", "sentence_transformers"):
    pytest.importorskip(package)

pytestmark = pytest.mark.frameworks

EXAMPLE = Path(__file__).parents[2] / "benchmarks" / "rag" / "debias_chroma.py"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run it in this process: to load a model library anew takes longer than all else."""

    def inside(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *options])
        monkeypatch.syspath_prepend(EXAMPLE.parent)
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        return capsys.readouterr().out

    return inside


def test_from_pairs_to_a_switched_application_and_back(run, tmp_path: Path) -> None:
    printed = run("--pairs", "80", "--report", str(tmp_path / "report"))
    assert printed.count("40 retrievals observed, 0 events dropped") == 2
    assert "40 pairs" in printed
    assert "The mean direction is taken instead." in printed  # they are too few for four
    assert "160 stored vectors projected, none encoded again" in printed
    assert "Only the old one answered: True. 40 queries compared: " in printed
    assert re.search(r"switch changed the passages of [1-9]\d* of 40 questions", printed)
    assert printed.endswith("After the roll-back they are as before: True.\n")
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["kind"] == "debias"
    before, after = report["datasets"][0]["outcomes"]
    assert (before["n_seen"], after["n_seen"]) == (0, 0)  # judged on other pairs than it saw
