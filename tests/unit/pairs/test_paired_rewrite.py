"""The paired corpus builder: layout and ends of documents."""

from __future__ import annotations

import json
import re
import threading
import time
from hashlib import blake2b
from pathlib import Path

import pytest

from rag_sourcebias.core.completions import Completion, CompletionError
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.intake.beir import read_beir, source_of_stem
from rag_sourcebias.llm.ask import Prices, RetryPolicy
from rag_sourcebias.pairs.rewrites import (
    REWRITE,
    STYLES,
    read_manifest,
    source_tag,
    stem_of,
)
from rag_sourcebias.pairs.rewriting import (
    build_paired_corpus,
    estimate_paired_corpus,
)

ONCE = RetryPolicy(attempts=1)


class Writer:
    """A deterministic model: what it writes depends on the prompt alone."""

    max_concurrency = 8

    @property
    def settings(self) -> dict[str, str]:
        return {"model": "writer"}

    def __init__(self, name: str = "writer", *, log: Path | None = None, delay: float = 0.0):
        self.name = name
        self.fingerprint = f"fake:{name}"
        self.prompts: list[str] = []
        self.special: dict[str, Completion | CompletionError] = {}
        self._log = log
        self._delay = delay
        self._lock = threading.Lock()

    def complete(self, prompt, *, max_tokens, temperature, seed):
        with self._lock:
            self.prompts.append(prompt)
        digest = blake2b(f"{prompt}{temperature}{seed}".encode(), digest_size=4).hexdigest()
        time.sleep(self._delay * (int(digest[:2], 16) / 255))
        for text, answer in self.special.items():
            if prompt.endswith(text):
                if isinstance(answer, CompletionError):
                    raise answer
                return answer
        if self._log is not None:
            with self._log.open("a") as stream:
                stream.write(f"{digest}\n")
        sure = "Sure, here's a possible rewrite of the text:\n\n" if digest[0] in "0123" else ""
        return Completion(
            text=f"{sure}Rewrite {digest} é.", prompt_tokens=len(prompt) // 4, completion_tokens=5
        )

    def label_logprobs(self, prompt, labels):
        raise NotImplementedError


def write_folder(root: Path, n: int = 30, layout: str = "corpus/human.jsonl") -> Path:
    (root / "qrels").mkdir(parents=True)
    (root / layout).parent.mkdir(exist_ok=True)
    rows = [
        {"_id": f"d{i}", "title": f"Title {i}", "text": f"Text {i} with naïve words."}
        for i in range(n)
    ]
    (root / layout).write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": f"q{i}", "text": f"QUERY{i}", "extra": i} for i in range(n // 2)]
    (root / "queries.jsonl").write_text("".join(json.dumps(row) + " \n" for row in queries))
    lines = [f"q{i}\td{i}\t1\r\nq{i}\td{i + 1}\t2\n" for i in range(n // 2)]
    (root / "qrels" / "test.tsv").write_bytes(
        ("query-id\tcorpus-id\tscore\n" + "".join(lines)).encode()
    )
    return root


def files(folder: Path) -> dict[str, bytes]:
    """Everything a folder holds but the cache of answers, without the day of the run."""
    return {
        str(p.relative_to(folder)): re.sub(rb'"date": "[0-9-]+"', b"", p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file() and "answers.sqlite" not in p.name
    }


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_folder_is_a_paired_corpus_that_an_audit_reads(tmp_path: Path) -> None:
    source, writer = write_folder(tmp_path / "in"), Writer()
    assert isinstance(writer, Completer)
    told: list[tuple[int, int]] = []
    report = build_paired_corpus(
        source,
        writer,
        tmp_path / "out",
        prices=Prices(prompt=1.0, completion=2.0),
        on_progress=lambda done, total: told.append((done, total)),
    )
    out = files(tmp_path / "out")
    assert set(out) == {
        *("corpus/human.jsonl", "corpus/writer.jsonl", "raw/writer.jsonl"),
        *("queries.jsonl", "qrels/test.tsv", "manifest.json"),
    }
    for name in ("queries.jsonl", "qrels/test.tsv"):
        assert out[name] == (source / name).read_bytes()
    data, human = read_beir(tmp_path / "out"), read_beir(source)
    assert data.corpus.tags.counts() == {"human": 30, "llm:writer": 30}
    assert len(data.qrels.grades) == 2 * len(human.qrels.grades)
    texts = dict(data.corpus)
    assert texts["d3@human"] == "Title 3 Text 3 with naïve words."
    assert texts["d3@llm:writer"].startswith("Title 3 Rewrite ")
    assert data.corpus.tags.get("d3@llm:writer").pair_id == "d3"
    assert told == [(i, 30) for i in range(1, 31)]
    raw = rows_of(tmp_path / "out" / "raw" / "writer.jsonl")
    assert [row["_id"] for row in raw] == [f"d{i}" for i in range(30)]
    assert sum("Sure, here's" in row["raw"] for row in raw) > 0
    assert b"Sure" not in out["corpus/writer.jsonl"]
    [entry] = report.manifest.sources
    assert report.manifest == read_manifest(tmp_path / "out")
    assert (entry.done, entry.finished) == (30, True)
    assert entry.cleaned == {"preamble": sum("Sure, here's" in row["raw"] for row in raw)}
    assert entry.completion_tokens == report.completion_tokens == 150
    assert entry.cost == pytest.approx((entry.prompt_tokens + 300) / 1e6)
    assert report.cost == entry.cost
    assert (entry.template, entry.digest) == (REWRITE.template, REWRITE.digest)
    assert report.complete


def test_the_model_sees_the_prompt_and_the_text_and_nothing_else(tmp_path: Path) -> None:
    writer = Writer()
    build_paired_corpus(write_folder(tmp_path / "in", 8), writer, tmp_path / "out")
    expected = {f"Please rewrite the following text: Text {i} with naïve words." for i in range(8)}
    assert set(writer.prompts) == expected
    assert len(writer.prompts) == 8


def test_every_document_ends_with_a_rewrite_or_a_reason(tmp_path: Path) -> None:
    source, writer = write_folder(tmp_path / "in", 12), Writer()
    human = source / "corpus" / "human.jsonl"
    human.write_text(human.read_text().replace("Text 5 with na\\u00efve words.", " \\n "))
    cut = Completion(text="Rewrite of", finish_reason="length", completion_tokens=9)
    writer.special = {
        "Text 0 with naïve words.": Completion(text="I cannot assist with that."),
        "Text 1 with naïve words.": cut,
        "Text 2 with naïve words.": CompletionError("too long", reason="rejected"),
        "Text 3 with naïve words.": CompletionError("no answer", reason="timeout"),
        "Text 4 with naïve words.": Completion(text="half \ud83d of it"),
    }
    out = tmp_path / "out"
    report = build_paired_corpus(source, writer, out, retry=ONCE)
    [entry] = report.manifest.sources
    assert entry.skipped == {"no text": 1, "not unicode": 1, "refusal": 1, "truncated": 1}
    assert entry.failed == {"rejected": 1, "timeout": 1}
    assert entry.done == 6
    assert not report.complete
    raw = {row["_id"]: row for row in rows_of(out / "raw" / "writer.jsonl")}
    assert len(raw) == 12
    assert (raw["d1"]["status"], raw["d1"]["text"]) == ("skipped", None)
    assert raw["d1"]["raw"] == "Rewrite of"
    assert raw["d3"] == {
        "_id": "d3",
        "status": "failed",
        "reason": "timeout",
        "error": "no answer",
    }
    kept = [row["_id"] for row in rows_of(out / "corpus" / "writer.jsonl")]
    assert kept == [f"d{i}" for i in range(6, 12)]
    assert read_beir(out).corpus.tags.counts() == {"human": 12, "llm:writer": 6}

    # A later run asks for what failed, and only for that.
    again = Writer()
    report = build_paired_corpus(source, again, out)
    [entry] = report.manifest.sources
    assert sorted(p[-25:-18] for p in again.prompts) == [" Text 2", " Text 3"]
    assert (entry.done, entry.failed) == (8, {})
    assert report.from_cache == 9
    # Finished: nothing is asked, nor looked up.
    assert build_paired_corpus(source, Writer(), out).requests == 0


def test_order_and_bytes_do_not_depend_on_concurrency(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "in")
    for name, concurrency in (("one", 1), ("many", 8)):
        writer = Writer(delay=0.01)
        writer.max_concurrency = concurrency
        build_paired_corpus(source, writer, tmp_path / name, prompts=STYLES[:2])
    assert files(tmp_path / "one") == files(tmp_path / "many")


def test_more_models_and_styles_may_be_added_to_a_folder(tmp_path: Path) -> None:
    source, out = write_folder(tmp_path / "in", 6), tmp_path / "out"
    build_paired_corpus(source, Writer(), out)
    before = files(out)
    build_paired_corpus(source, Writer("org/big: 1"), out, prompts=[REWRITE, STYLES[3]])
    after = files(out)
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: data for name, data in before.items() if name != "manifest.json"
    }
    data = read_beir(out)
    assert data.corpus.tags.counts() == {
        "human": 6,
        "llm:org/big: 1": 6,
        "llm:org/big: 1+style-3": 6,
        "llm:writer": 6,
    }
    assert data.corpus.tags.get("d0@llm:org/big: 1+style-3").style == "3"
    assert [s.source for s in read_manifest(out).sources] == [
        *("llm:writer", "llm:org/big: 1", "llm:org/big: 1+style-3")
    ]


def test_a_folder_made_otherwise_is_not_mixed(tmp_path: Path) -> None:
    source, out = write_folder(tmp_path / "in", 6), tmp_path / "out"
    build_paired_corpus(source, Writer(), out)
    before = files(out)
    assert not estimate_paired_corpus(source, Writer(), out).refused
    assert not estimate_paired_corpus(source, Writer(), out, temperature=0.5, model="warm").refused
    assert not estimate_paired_corpus(source, Writer(), tmp_path / "new").refused
    warmer = estimate_paired_corpus(source, Writer(), out, temperature=0.5)
    assert "'llm:writer' made with temperature 0.0 (now 0.5)" in warmer.refused
    fewer = estimate_paired_corpus(source, Writer(), out, limit=3)
    assert "made from other documents" in fewer.refused
    (out / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="is not the JSON of a manifest"):
        build_paired_corpus(source, Writer(), out)
    assert {**files(out), "manifest.json": b""} == {**before, "manifest.json": b""}


def test_a_plain_folder_needs_to_be_told_that_it_is_human(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "in", 6, layout="corpus.jsonl")
    with (source / "corpus.jsonl").open("a") as stream:
        row = {"_id": "x", "text": "Of a model.", "metadata": {"source": "llm:x"}}
        stream.write(json.dumps(row) + "\n")
    with pytest.raises(MissingTagsError, match="untagged='human'"):
        build_paired_corpus(source, Writer(), tmp_path / "out")
    report = build_paired_corpus(source, Writer(), tmp_path / "out", untagged="human")
    assert report.manifest.human.n_documents == 6


def test_a_source_in_the_metadata_is_a_tag_only_where_it_names_people_or_a_model(
    tmp_path: Path,
) -> None:
    source = write_folder(tmp_path / "in", 4, layout="corpus.jsonl")
    told = ("human", "llm:x", "pubmed", "")
    rows = [
        {**row, "metadata": {"source": s}}
        for row, s in zip(rows_of(source / "corpus.jsonl"), told, strict=True)
    ]
    (source / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(MissingTagsError, match="'d2' has no source"):
        build_paired_corpus(source, Writer(), tmp_path / "out")
    writer = Writer()
    build_paired_corpus(source, writer, tmp_path / "out", untagged="human")
    assert sorted(prompt[-25:-18] for prompt in writer.prompts) == [" Text 0", " Text 2", " Text 3"]


def test_a_folder_without_queries_gives_pairs_without_them(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "in", 4)
    (source / "qrels" / "test.tsv").unlink()
    with pytest.raises(DataError, match=r"no qrels/<split>.tsv; give both or neither"):
        build_paired_corpus(source, Writer(), tmp_path / "half")
    (source / "queries.jsonl").unlink()
    build_paired_corpus(source, Writer(), tmp_path / "out")
    assert set(files(tmp_path / "out")) == {
        *("corpus/human.jsonl", "corpus/writer.jsonl", "raw/writer.jsonl", "manifest.json")
    }
    with pytest.raises(DataError, match="nothing does not exist; expected a folder with corpus"):
        build_paired_corpus(tmp_path / "nothing", Writer(), tmp_path / "out2")


def test_a_folder_of_someone_else_is_not_written_to(tmp_path: Path) -> None:
    source, other = write_folder(tmp_path / "in", 4), write_folder(tmp_path / "other", 8)
    before = files(other)
    with pytest.raises(DataError, match=r"holds corpus, qrels, queries.jsonl but no manifest"):
        build_paired_corpus(source, Writer(), other)
    assert files(other) == before
    # What a run leaves that was killed before the manifest was written is no obstacle.
    (tmp_path / "out" / "corpus").mkdir(parents=True)
    (tmp_path / "out" / ".manifest.json.0a1b2c3d.tmp").write_text("{")
    assert build_paired_corpus(source, Writer(), tmp_path / "out").complete
    assert not list((tmp_path / "out").glob(".*.tmp"))


def test_a_limit_takes_the_judgments_of_what_it_takes(tmp_path: Path) -> None:
    source, out = write_folder(tmp_path / "in"), tmp_path / "out"
    build_paired_corpus(source, Writer(), out, limit=3)
    assert (out / "qrels" / "test.tsv").read_text().splitlines() == [
        *("query-id\tcorpus-id\tscore", "q0\td0\t1", "q0\td1\t2", "q1\td1\t1", "q1\td2\t2"),
        "q2\td2\t1",
    ]
    assert [q.query_id for q in read_beir(out).queries] == ["q0", "q1", "q2"]
    with pytest.raises(DataError, match="limit must be at least 1"):
        build_paired_corpus(source, Writer(), tmp_path / "no", limit=0)


def test_the_estimate_asks_nothing_and_knows_the_cache(tmp_path: Path) -> None:
    source, out, writer = write_folder(tmp_path / "in", 10), tmp_path / "out", Writer()
    prices = Prices(prompt=1.0, completion=10.0, currency="EUR")
    found = estimate_paired_corpus(
        source, writer, out, prompts=[REWRITE, STYLES[1]], max_tokens=50, prices=prices
    )
    assert (found.n_documents, found.requests, found.cached) == (10, 20, 0)
    assert found.most_completion_tokens == 1000
    text = "Text 0 with naïve words."
    assert found.completion_tokens == 20 * len(text) / 4
    prompts = len(REWRITE.fill(text)) + len(STYLES[1].fill(text))
    assert found.prompt_tokens == round(10 * prompts / 4)
    assert found.cost == pytest.approx((found.prompt_tokens + 10 * found.completion_tokens) / 1e6)
    assert found.currency == "EUR"
    assert not out.exists()
    assert writer.prompts == []
    build_paired_corpus(source, writer, out, max_tokens=50)
    found = estimate_paired_corpus(source, writer, out, prompts=[REWRITE, STYLES[1]], max_tokens=50)
    assert (found.requests, found.cached, found.cost) == (20, 10, None)


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "org/x", ".hidden", "human", "a:b?*|", "llm:x", "é%2F"],
    ids=["plain", "slash", "dot", "human", "reserved", "colon", "percent"],
)
def test_a_file_name_reads_back_as_its_source(model: str) -> None:
    source = source_tag(model, "rewrite")
    stem = stem_of(source)
    assert source_of_stem(stem) == source
    assert not set(stem) & set('/\\:*?"<>|')
    assert not stem.startswith(".")
