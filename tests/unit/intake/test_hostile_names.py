"""Names that drive a terminal or break a picture are refused by every reader, with the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rag_sourcebias.core.codec import jsonl_text, write_atomic
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.answers import read_answer_texts
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.intake.files import read_jsonl
from rag_sourcebias.intake.judged import read_judged_items
from rag_sourcebias.intake.rankings import read_run
from rag_sourcebias.intake.styled import read_styled_texts
from rag_sourcebias.pairs.rewrites import source_tag
from rag_sourcebias.tagging.command import read_labelled
from rag_sourcebias.tagging.rules import read_rules

BAD = {
    "escape": "\x1b[31mred",
    "null": "a\x00b",
    "line": "a\nb",
    "bidi": "a\u202eb",
    "half": "a\ud800b",
    "no character": "a\ufffeb",
    "c1": "a\x9bb",
}
GOOD = ["größe", "模型 α", "می‌خواهم", "a$b$_c^<b>&"]


def lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tags(folder: Path, **tag: str) -> None:
    rows = [{"doc_id": "a", "source": "human"}, {"doc_id": "b", "source": "llm:x", **tag}]
    read_tags(lines(folder / "f.jsonl", rows))


def run(folder: Path, name: str) -> None:
    (folder / "f.run").write_text(f"q Q0 d 1 1 {name}\n", encoding="utf-8")
    read_run(folder / "f.run")


def beir(folder: Path, stem: str, row: dict[str, object]) -> Path:
    (folder / "corpus").mkdir()
    for name in ("human", stem):
        rows = [{"_id": "d1", "text": "x", **(row if name != "human" else {})}]
        lines(folder / "corpus" / f"{name}.jsonl", rows)
    lines(folder / "queries.jsonl", [{"_id": "q", "text": "x"}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q\td1\t1\n", encoding="utf-8")
    return folder


def plain(folder: Path, metadata: dict[str, str]) -> Path:
    row = {"_id": "d1", "text": "x", "metadata": metadata}
    lines(folder / "corpus.jsonl", [{"_id": "d0", "text": "x"}, row])
    lines(folder / "queries.jsonl", [{"_id": "q", "text": "x"}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q\td1\t1\n", encoding="utf-8")
    return folder


def styles(folder: Path, name: str) -> None:
    row = {"query_id": "q", "query": "x", "human": "x", "doc_styles": {name: "y"}}
    read_styled_texts(lines(folder / "f.jsonl", [row]))


def answers(folder: Path, name: str) -> None:
    row = {"question_id": "1", "system": name, "answer": "x", "reference": "x", "correct": True}
    read_answer_texts(lines(folder / "f.jsonl", [row]))


def items(folder: Path, **column: str) -> None:
    read_judged_items(lines(folder / "f.jsonl", [{"id": 1, "human": 1, "judge": 1, **column}]))


def labelled(folder: Path, name: str) -> None:
    file = lines(folder / "f.jsonl", [{"id": 1, "text": "x", "style": name}])
    read_labelled(file, target="style")


def rules(folder: Path, **tag: str) -> None:
    told = {"rules": [{"when": {"id": "a"}, "set": tag}]}
    (folder / "f.yaml").write_text(json.dumps(told), encoding="utf-8")
    read_rules(folder / "f.yaml")


READERS: dict[str, tuple[Callable[[Path, str], object], str]] = {
    "tags, source": (lambda d, n: tags(d, source=f"llm:{n}"), r"f\.jsonl:2: source name 'llm:"),
    "tags, style": (lambda d, n: tags(d, style=n), r"f\.jsonl:2: style name '"),
    "run": (run, r"f\.run:1: system '"),
    "corpus, style": (
        lambda d, n: read_beir(beir(d, "rw", {"metadata": {"style": n}})),
        r"rw\.jsonl:1: style name '",
    ),
    "corpus, file": (lambda d, n: read_beir(beir(d, n, {})), r"\.jsonl: source 'llm:"),
    "plain corpus, source": (
        lambda d, n: read_beir(plain(d, {"source": f"llm:{n}"})),
        r"corpus\.jsonl:2: source name 'llm:",
    ),
    "plain corpus, style": (
        lambda d, n: read_beir(plain(d, {"style": n})), r"corpus\.jsonl:2: style name '"
    ),
    "styles": (styles, r"f\.jsonl:1: style '"),
    "answers": (answers, r"f\.jsonl:1: system '"),
    "items, group": (lambda d, n: items(d, group=n), r"f\.jsonl:1: group '"),
    "labelled documents": (labelled, r"f\.jsonl:1: style '"),
    "rules, source": (lambda d, n: rules(d, source=f"llm:{n}"), r"f\.yaml:1.*source of a rule '"),
    "model that rewrites": (lambda _, n: source_tag(n, "rewrite"), r"model name '"),
}  # fmt: skip
#: What a form of file cannot hold: a reader refuses it before it is a name.
BEFORE = {
    ("run", "half"), ("run", "line"), ("corpus, file", "null"), ("corpus, file", "half"),
    ("rules, source", "half"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "kind"), [(r, k) for r in READERS for k in BAD if (r, k) not in BEFORE]
)
def test_a_hostile_name_is_refused_with_its_place(tmp_path: Path, reader: str, kind: str) -> None:
    read, place = READERS[reader]
    with pytest.raises(DataError) as caught:
        read(tmp_path, BAD[kind])
    message = str(caught.value)
    assert re.search(place, message)
    assert message.isprintable()
    shown = json.dumps(BAD[kind])[1:-1].replace(r"\n", r"\u000a")
    assert shown in message
    assert f"U+{re.search(r'u([0-9a-f]{4})', shown)[1].upper()}" in message


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("reader", READERS)
def test_names_of_other_scripts_and_markup_are_read(tmp_path: Path, reader: str, name: str) -> None:
    READERS[reader][0](tmp_path, name.replace(" ", "_") if reader == "run" else name)


def test_what_a_model_answered_is_kept_whatever_it_holds(tmp_path: Path) -> None:
    text = "".join(BAD.values())
    write_atomic(tmp_path / "raw.jsonl", jsonl_text([{"text": text}]))
    assert not re.search("[\x1b\u202e]", (tmp_path / "raw.jsonl").read_text(encoding="utf-8"))
    assert [row for _, row in read_jsonl(tmp_path / "raw.jsonl")] == [{"text": text}]
