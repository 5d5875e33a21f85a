"""What docs/paired-corpora.md and docs/explain.md show works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hashing_encoder import HashingEncoder

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {name: (DOCS / name).read_text("utf-8") for name in ("paired-corpora.md", "explain.md")}


@pytest.mark.frameworks
def test_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    class Chat(FakeListChatModel):
        max_tokens: int = 100
        temperature: float = 1.0

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my-data" / "corpus"
    folder.mkdir(parents=True)
    rows = (f'{{"_id": "d{i}", "text": "Rain fell on town {i}."}}\n' for i in range(3))
    (folder / "human.jsonl").write_text("".join(rows), encoding="utf-8")
    names: dict[str, object] = {
        "chat_model": Chat(responses=["It rained on the town."]),
        "encoder": HashingEncoder(),
    }
    for page, text in PAGES.items():
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(block, page, "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(r"^True 3 ", printed, flags=re.MULTILINE)
    assert re.search(r"^llm:claude ", printed, flags=re.MULTILINE)
    assert (tmp_path / "report" / "report.html").exists()
