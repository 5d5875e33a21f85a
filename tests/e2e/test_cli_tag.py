"""Tagging from the command line, on a real Chroma database on disk."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ENVIRONMENT, INTERRUPTIBLE, inside, write_csv
from command_line import refused as refused_in
from command_line import succeed as succeed_in

pytest.importorskip("chromadb")

from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias_integrations.chroma.collections import open_client

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]
RULES = """rules:
  - name: bots
    when:
      metadata: {author: bot}
    set: {source: "llm:x", style: news}
  - name: people
    when: {metadata: {author: [Ann, Ben]}}
    set: {source: human}
"""
AUTHORS = ("bot", "Ann", "Ben", "nobody")


def fill(folder: Path, name: str = "wiki", n: int = 40, *, text: str = "text") -> Any:
    collection = open_client(folder / "db").create_collection(name, embedding_function=None)
    for start in range(0, n, 5_000):
        rows = range(start, min(n, start + 5_000))
        collection.add(
            ids=[f"d{i}" for i in rows],
            embeddings=np.array([[i, 1.0, -i] for i in rows], dtype=np.float32),
            documents=[f"{text} {i} é" for i in rows],
            metadatas=[{"author": AUTHORS[i % 4], "source": f"https://a.b/{i}"} for i in rows],
        )
    return collection


def content(collection: Any) -> dict[str, Any]:
    found = collection.get(include=["embeddings", "documents", "metadatas"])
    return {
        doc_id: (vector.tolist(), text, metadata)
        for doc_id, vector, text, metadata in zip(
            found["ids"], found["embeddings"], found["documents"], found["metadatas"], strict=True
        )
    }


@pytest.fixture
def wiki(tmp_path: Path) -> Any:
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "other.yaml").write_text(RULES.replace("llm:x", "llm:y"), encoding="utf-8")
    return fill(tmp_path)


def placed(args: tuple[str, ...], cwd: Path) -> tuple[str, ...]:
    """Chroma tells databases of one process apart by the text of their path."""
    return tuple(re.sub(r"^chroma:(\./)?db$", f"chroma:{cwd}/db", arg) for arg in args)


def succeed(*args: str, cwd: Path) -> str:
    return succeed_in(*placed(args, cwd), cwd=cwd)


def refused(*args: str, cwd: Path) -> str:
    return refused_in(*placed(args, cwd), cwd=cwd)


APPLY = ("tag", "apply", "--store", "chroma:db", "--rules", "rules.yaml")
REPORT = ("start", "chroma:db")


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(tmp_path: Path, wiki: Any) -> None:
    before = content(wiki)
    text = succeed(*APPLY, "--id-pattern", "auto", "--dry-run", cwd=tmp_path)
    assert "┃ documents ┃ would be written ┃ unchanged ┃" in text
    assert "│ 40 │ 40 │ 0 │ 10 │ 0 │" in text
    assert "│ human │ 20 │ 50.0% │" in text
    assert "│ llm:x │ 10 │ 25.0% │" in text
    assert "│ (unknown) │ 10 │ 25.0% │" in text
    assert "│ d0 │ llm:x │ news │ │ declared │ │" in text  # an example
    assert "│ d3 │ (unknown) │" in text
    assert "nothing was written" in text
    assert content(wiki) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["db", "other.yaml", "rules.yaml"]


def test_tags_are_written_reported_and_left_alone_the_second_time(
    tmp_path: Path, wiki: Any
) -> None:
    before = content(wiki)
    assert "│ 40 │ 40 │ 0 │ 10 │ 0 │" in succeed(*APPLY, cwd=tmp_path)
    after = content(wiki)
    for doc_id, (vector, text, metadata) in before.items():
        now = after[doc_id]
        assert now[:2] == (vector, text)
        assert {k: v for k, v in now[2].items() if not k.startswith("rsb_")} == metadata
    assert after["d0"][2]["rsb_source"] == "llm:x"
    assert "rsb_source" not in after["d3"][2]
    assert "│ 40 │ 0 │ 40 │ 10 │ 0 │" in succeed(*APPLY, cwd=tmp_path)
    text = succeed(*REPORT, "--json", "tags.json", cwd=tmp_path)
    assert "chroma:wiki: 40 documents" in text
    assert "│ llm:x │ 10 │ 25.0% │" in text
    assert "│ declared │ 30 │ 0 │" in text
    assert "│ (not tagged) │ 0 │ 10 │" in text
    found = json.loads((tmp_path / "tags.json").read_text(encoding="utf-8"))
    assert found["sources"]["human"] == {"documents": 20, "share": 0.5}
    assert found["untagged"] == {"documents": 10, "share": 0.25}


def test_other_rules_need_overwrite_and_leave_a_backup(tmp_path: Path, wiki: Any) -> None:
    succeed(*APPLY, cwd=tmp_path)
    before = content(wiki)
    other = (*APPLY[:-1], "other.yaml")
    message = refused(*other, cwd=tmp_path)
    assert "'d0' carries tags of" in message
    assert "--overwrite" in message
    assert content(wiki) == before
    renamed = RULES.replace("name: bots", "name: robots")
    (tmp_path / "rules.yaml").write_text(renamed, encoding="utf-8")
    assert "│ 40 │ 0 │ 40 │" in succeed(*APPLY, cwd=tmp_path)  # does the same
    text = succeed(*other, "--overwrite", cwd=tmp_path)
    name = re.search(r"kept in (\S+/db\.before-\w{8}\.sqlite)", text)
    assert name is not None
    assert content(wiki)["d0"][2]["rsb_source"] == "llm:y"
    old = succeed(*REPORT, "--sidecar", name[1], cwd=tmp_path)
    assert "│ llm:x │ 10 │ 25.0% │" in old


def test_a_sidecar_leaves_the_store_as_it_is(tmp_path: Path, wiki: Any) -> None:
    before = content(wiki)
    beside = ("--sidecar", "tags.sqlite")
    assert "│ 40 │ 30 │ 10 │ 10 │ 0 │" in succeed(*APPLY, *beside, cwd=tmp_path)
    assert "│ 40 │ 0 │ 40 │ 10 │ 0 │" in succeed(*APPLY, *beside, cwd=tmp_path)
    assert "tags.sqlite holds the tags of 30" in refused(
        *APPLY[:-1], "other.yaml", *beside, cwd=tmp_path
    )
    text = succeed(*APPLY[:-1], "other.yaml", *beside, "--overwrite", cwd=tmp_path)
    assert "kept in tags.sqlite.before-" in text
    assert content(wiki) == before
    assert "no document is tagged" in succeed(*REPORT, cwd=tmp_path)
    wiki.delete(ids=["d0", "d3"])
    code, text, messages = inside(*placed((*REPORT, *beside), tmp_path), cwd=tmp_path)
    assert code == 0
    assert "│ llm:y     │         9 │" in text
    assert "holds tags of 1 documents that the store lacks, first d0" in messages


def test_declared_provenance_comes_before_rules(tmp_path: Path, wiki: Any) -> None:
    declared = {"AI-Disclosure": 'mode=ai-originated, model="gpt-4o"'}
    wiki.update(ids=["d1"], metadatas=[declared])
    succeed(*APPLY, "--provenance", cwd=tmp_path)
    tags = content(wiki)["d1"][2]
    assert (tags["rsb_source"], tags["rsb_origin"]) == ("llm:gpt-4o", "provenance")
    assert "│ provenance │ 1 │ 0 │" in succeed(*REPORT, cwd=tmp_path)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("apply", "--collection", "wikis"), ("'wikis'", "there are wiki")),
        (("apply", "--overwrite", "--backup", "no/o.sqlite"), ("no/o.sqlite", "does not exist")),
        (("apply", "--sidecar", "tags.txt"), ("tags.txt", ".sqlite")),
        (("apply", "--sidecar", "no/tags.sqlite"), ("does not exist",)),
        (("start", "--sidecar", "tags.sqlite"), ("tags.sqlite does not exist", "tag apply")),
        (("start", "--json", "no/x.json"), ("no/x.json", "does not exist")),
        (("start", "chroma:http://127.0.0.1:9"), ("cannot be reached", "chroma run")),
    ],
)
def test_bad_input_is_named_with_a_remedy(
    tmp_path: Path, wiki: Any, args: tuple[str, ...], words: tuple[str, ...]
) -> None:
    before, files = content(wiki), sorted(p.name for p in tmp_path.iterdir())
    if args[0] == "start" and not args[-1].startswith("chroma:"):
        args = (*args, "chroma:db")
    elif args[0] == "apply":
        args = (*args, "--store", "chroma:db", "--rules", "rules.yaml")
    group = () if args[0] == "start" else ("tag",)
    message = refused(*group, *args, cwd=tmp_path)
    for word in words:
        assert word in message
    assert content(wiki) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == files


def test_a_detector_decides_what_the_rules_do_not_know(tmp_path: Path, wiki: Any) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    words = {
        "human": ["well", "i", "guess", "we", "saw", "it", "and", "who", "knows", "why"],
        "llm:x": ["furthermore", "this", "comprehensive", "overview", "highlights", "crucial"],
    }
    texts = {
        source: [" ".join(rng.choice(some, 30)) for _ in range(35)]
        for source, some in words.items()
    }
    labelled = [(text, source) for source, some in texts.items() for text in some[:30]]
    write_csv(tmp_path / "labelled.csv", ("text", "source"), labelled)
    succeed("tag", "fit", "labelled.csv", "--output", "detector", cwd=tmp_path)
    # the rules know nothing of every fourth document; half of these read like a model
    unknown = [f"d{i}" for i in range(3, 40, 4)]
    wiki.update(
        ids=unknown,
        documents=texts["human"][30:] + texts["llm:x"][30:],
        embeddings=[[1.0, 1.0, 1.0]] * 10,
    )
    assert "nobody knows how often" in refused(*APPLY, "--detector", "detector", cwd=tmp_path)
    succeed(*APPLY, "--detector", "detector", "--unverified", cwd=tmp_path)
    tags = {doc_id: metadata for doc_id, (_, _, metadata) in content(wiki).items()}
    assert tags["d0"]["rsb_origin"] == "declared"
    decided = [tags[doc_id] for doc_id in unknown if "rsb_source" in tags[doc_id]]
    assert len(decided) >= 5
    assert {row["rsb_origin"] for row in decided} == {"unverified"}
    truth = dict(zip(unknown, ["human"] * 5 + ["llm:x"] * 5, strict=True))
    assert all(tags[i].get("rsb_source", truth[i]) == truth[i] for i in unknown)


def test_the_rules_in_the_docs_do_what_they_say(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "tagging.md").read_text(encoding="utf-8")
    [rules] = re.findall(r"```yaml\n(.*?)```", guide, flags=re.DOTALL)
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    collection = open_client(tmp_path / "db").create_collection("docs", embedding_function=None)
    documents: dict[str, dict[str, str]] = {
        "a": {"generator": "openai/gpt-4o"},
        "b-rewrite": {"k": "v"},
        "c": {"url": "https://blog.example.org/x", "author": "Ben"},
        "d": {"url": "https://blog.example.org/x", "author": "Cy"},
    }
    collection.add(
        ids=list(documents),
        embeddings=[[1.0]] * 4,
        documents=["text"] * 4,
        metadatas=list(documents.values()),
    )
    commands = [
        shlex.split(line[2:])
        for block in re.findall(r"```console\n(.*?)```", guide, flags=re.DOTALL)
        for line in block.splitlines()
        if "detect" not in line  # neither fitted nor asked for here
    ]
    assert [command[2] for command in commands] == [
        "apply",
        "apply",
        "chroma:./db",
        "apply",
        "chroma:./db",
    ]
    for command in commands:
        succeed(*command[1:], cwd=tmp_path)
    tags = {
        doc_id: {k.removeprefix("rsb_"): v for k, v in metadata.items() if k.startswith("rsb_")}
        for doc_id, (_, _, metadata) in content(collection).items()
    }
    assert tags["a"].items() >= {"source": "llm:gpt-4o", "style": "news"}.items()
    assert tags["b-rewrite"].items() >= {"source": "llm:unnamed", "pair_id": "b"}.items()
    assert tags["c"]["source"] == "human"
    assert "source" not in tags["d"]


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    n = 3_000
    fill(tmp_path, n=n, text="a" * 12 + "!")  # slow for the regex below
    (tmp_path / "rules.yaml").write_text(
        "rules:\n  - {when: {text: {regex: '^(a+)+$'}}, set: {style: odd}}\n"
        "  - {when: {id: {regex: '^d'}}, set: {source: human}}\n",
        encoding="utf-8",
    )
    file, beside = tmp_path / "tags.sqlite", ("--sidecar", "tags.sqlite")
    process = subprocess.Popen(
        [*INTERRUPTIBLE, *APPLY, *beside],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    )
    deadline = time.monotonic() + 60
    while not (file.exists() and len(open_tag_store(file))) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "run the same command again, and it goes on" in " ".join(messages.split())
    done = len(open_tag_store(file))
    assert 0 < done < n
    text = succeed(*APPLY, *beside, cwd=tmp_path)
    assert f"│ 3,000 │ {n - done:,} │ {done:,} │ 0 │ 0 │" in text
