"""``audit source --text-statistics`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import succeed

pytest.importorskip("sacrebleu")
pytest.importorskip("nltk")
pytest.importorskip("rouge_score")


@pytest.mark.frameworks
def test_the_bundled_sample_is_described(tmp_path: Path) -> None:
    printed = succeed(
        *(
            "audit",
            "source",
            "--sample",
            "--retriever",
            "bm25",
            "--cutoffs",
            "1",
            "--no-sole-corpus",
        ),
        *("--no-length-matched", "--text-statistics", "--cache", "cache", "--report", "out"),
        cwd=tmp_path,
    )
    assert "METEOR matches equal words" in printed
    assert "overlap" in printed
    found = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    statistics = {(s["group"], s["name"]): s for s in found["text_statistics"]}
    names = {"words", "BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap"}
    assert {name for group, name in statistics if group != "human"} == names
    assert {name for group, name in statistics if group == "human"} == {"words"}
    assert all(s["n"] == 160 for s in statistics.values())
    assert 'id="texts"' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
