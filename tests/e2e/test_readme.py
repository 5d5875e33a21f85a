"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hashing_encoder import HashingEncoder
from typer.main import get_command

from rag_sourcebias.cli import app
from rag_sourcebias.observe.log.reading import iter_events

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def applications() -> dict[str, object]:
    """What the reader of the README has already: a retriever of tagged documents."""
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings

    store = InMemoryVectorStore(EncoderEmbeddings(HashingEncoder()))
    store.add_documents(
        [
            Document(
                id=f"{n}@{source}", page_content=f"{source} {n}", metadata={"rsb_source": source}
            )
            for n in "ab"
            for source in ("human", "llm:claude")
        ]
    )
    return {"retriever": store.as_retriever()}


@pytest.mark.frameworks
def test_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = applications()
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    names["retriever"].invoke("is pew research trustworthy")
    names["handle"].close()  # the README's application goes on; this one ends
    assert names["log"].close()
    assert "of 160 pairs, bm25 ranks the human version" in capsys.readouterr().out
    assert len(list(iter_events(tmp_path / "retrievals.db"))) == 1


def commands() -> list[list[str]]:
    text = "\n".join(re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL))
    lines = re.findall(r"\$ ((?:.*\\\n)*.*)", text)
    return [shlex.split(line.replace("\\\n", " ")) for line in lines]


NAMES = "|".join(get_command(app).commands)
TABLE = [
    shlex.split(line)
    for row in re.findall(r"^\|[^|]+\| (`[^|]*) \|", README, flags=re.MULTILINE)
    for line in re.findall(rf"`((?:{NAMES})[^`]*)`", row)
]


@pytest.mark.parametrize("command", TABLE, ids=" ".join)
def test_commands_of_the_table_exist(command: list[str]) -> None:
    assert TABLE
    found, rest = get_command(app), command
    while rest and rest[0] in getattr(found, "commands", {}):
        found, rest = found.commands[rest[0]], rest[1:]
    known = {name for option in found.params for name in option.opts}
    assert not hasattr(found, "commands")
    assert {word for word in rest if word.startswith("--")} <= known


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [c[1] for c in commands() if c[0] == "make"]
    assert set(targets) == {"demo", "test"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
