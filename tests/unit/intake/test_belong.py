"""Ids that do not meet are refused in every verb with the cause; ids that meet in part are told."""

import hashlib
import json
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import refused, succeed

import rag_sourcebias as rsb
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.belong import BelongCode, cause

N = 30
Names = Callable[[int], str]


def decomposed(i: int) -> str:
    return unicodedata.normalize("NFD", f"é{i}")


def hashed(i: int) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


#: How two files call the same thing, by what the difference is.
KINDS: dict[str, tuple[Names, Names, BelongCode]] = {
    "leading zeros": (lambda i: f"{i}x", lambda i: f"{i:03}x", BelongCode.ZEROS),
    "read as fractions": (lambda i: f"{i}.0", str, BelongCode.DECIMAL),
    "case": (lambda i: f"MED-{i}", lambda i: f"med-{i}", BelongCode.CASE),
    "Unicode form": (lambda i: f"é{i}", decomposed, BelongCode.FORM),
    "prefix": (lambda i: f"beir-{i}x", lambda i: f"{i}x", BelongCode.AFFIX),
    "suffix": (lambda i: f"{i}x", lambda i: f"{i}x-doc", BelongCode.AFFIX),
    "chunk": (lambda i: f"d{i}e#chunk{i % 3}", lambda i: f"d{i}e", BelongCode.CHUNK),
    "part": (lambda i: f"d{i}e", lambda i: f"d{i}e/{i % 4}", BelongCode.CHUNK),
    "escapes": (lambda i: f"a%2F{i}x", lambda i: f"a/{i}x", BelongCode.ESCAPES),
    "marks": (lambda i: f"a_{i}x", lambda i: f"a-{i}x", BelongCode.MARKS),
    "path": (lambda i: f"data/{i % 3}/x{i}y.txt", lambda i: f"x{i}y", BelongCode.PATH),
    "number": (lambda i: f"query{i}", lambda i: f"q{i}", BelongCode.PREFIX),
    "several": (lambda i: f"Doc_{i:03}x", lambda i: f"doc-{i}x", BelongCode.SEVERAL),
    "other data": (hashed, lambda i: f"WT{i}", BelongCode.STRANGE),
}
#: Documents by people have numbers below N, their rewrites those from N on.
DOCUMENTS = range(2 * N)


def write(folder: Path, *, run: Names, queries: Names, documents: Names) -> None:
    """Write a run and a corpus with names of their own, and judgments, tags and labels."""

    def lines(name: str, *text: str) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(text) + "\n", encoding="utf-8")

    pairs = [(i % N, i) for i in DOCUMENTS]
    lines("a.run", *(f"{run(q)} Q0 {run(d)} 1 {d} a" for q, d in pairs))
    lines("qrels.txt", *(f"{queries(q)} 0 {documents(d)} 1" for q, d in pairs))
    tags = (f"{documents(d)}\t{'human' if d < N else 'llm:x'}" for d in DOCUMENTS)
    lines("tags.tsv", "doc_id\tsource", *tags)
    labels = (f"{queries(q)}\t{documents(d)}\t.2\t.8" for q, d in pairs)
    lines("labels.tsv", "query_id\tdoc_id\tp0\tp1", *labels)
    rows = [
        {
            "_id": run(d),
            "text": f"text {d % N}",
            "metadata": {"source": "human" if d < N else "llm:x", "pair_id": str(d % N)},
        }
        for d in DOCUMENTS
    ]
    asked = [{"_id": run(q), "text": f"text {q}"} for q in range(N)]
    judged = (f"{queries(q)}\t{documents(d)}\t1" for q, d in pairs)
    lines("data/corpus.jsonl", *map(json.dumps, rows))
    lines("data/queries.jsonl", *map(json.dumps, asked))
    lines("data/qrels/test.tsv", "query-id\tcorpus-id\tscore", *judged)


VERBS: dict[str, tuple[str, ...]] = {
    "audit": ("audit", "source", "--run", "a.run", "--qrels", "qrels.txt", "--tags", "tags.tsv"),
    "audit a folder": ("audit", "source", "data"),
    "interval": ("interval", "--run", "a.run", "--qrels", "qrels.txt", "--labels", "labels.tsv"),
    "explain": ("explain", "data", "--encoder", "none"),
    "check-pairs": ("check-pairs", "data"),
    "debias": ("debias", "data", "--method", "calibrate", "--encoder", "x", "--output", "y.json"),
}


@pytest.mark.parametrize("which", ["queries", "documents"])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_that_do_not_meet_are_refused_with_the_cause(
    kind: str, which: str, tmp_path: Path
) -> None:
    ours, theirs, code = KINDS[kind]
    write(
        tmp_path,
        run=ours,
        queries=theirs if which == "queries" else ours,
        documents=theirs if which == "documents" else ours,
    )
    expected = "of different data" if code is BelongCode.STRANGE else f"differ in {code()}; write"
    verbs = VERBS | ({} if which == "queries" else {"monitor": ("monitor", "replay", "a.run",
        "--tags", "tags.tsv")})  # fmt: skip
    for verb, command in verbs.items():
        message = refused(*command, cwd=tmp_path)
        assert f"no {which.replace('ies', 'y').removesuffix('s')} in common" in message, verb
        assert expected in message, verb
    run = {ours(q): [ours(q), ours(q + N)] for q in range(N)}
    judged = tmp_path / "qrels.txt", tmp_path / "tags.tsv"
    with pytest.raises(DataError, match="in common") as refusal:
        rsb.audit(run, {"qrels": judged[0], "tags": judged[1]})
    assert expected in str(refusal.value)


def test_the_remedy_names_the_file_and_both_spellings(tmp_path: Path) -> None:
    write(tmp_path, run=str, queries=lambda i: f"{i:03}", documents=str)
    message = refused(*VERBS["audit"], cwd=tmp_path)
    assert message.endswith("write '0' for '000' in the judgments, and 30 of 30 meet")


def test_queries_and_documents_that_changed_places() -> None:
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(9)}
    crossed = {f"d{i}": {f"q{i}": 1} for i in range(9)}
    tags = {f"q{i}": "human" for i in range(9)}
    with pytest.raises(DataError, match="exchange the two columns"):
        rsb.audit(run, {"qrels": crossed, "tags": tags})


def test_what_a_run_lacks_stands_on_the_first_screen(tmp_path: Path) -> None:
    write(tmp_path, run=str, queries=lambda i: f"{i:03}" if i < 9 else str(i), documents=str)
    tags = (tmp_path / "tags.tsv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "tags.tsv").write_text("\n".join(tags[:-3]), encoding="utf-8")
    with (tmp_path / "a.run").open("a") as file:
        file.write("9 Q0 9 2 0 a\n")
    first = succeed(*VERBS["audit"], cwd=tmp_path).partition("The verdict rests on")[0]
    for sentence in (
        "a returned nothing for 9 of 30 judged queries, such as “000”; each scores 0 and counts.",
        "9 of 30 queries of a have no judgments, such as “0”; they are left out.",
        "9 queries of a would have judgments but for leading zeros: is “0” the same as “000”?",
        "3 of 60 results of a are documents without a source tag, such as “57”.",
        "a repeats a document of the same query 1 times; the first one counts.",
    ):
        assert sentence in first


def test_documents_without_a_tag_may_be_chunks_of_tagged_ones() -> None:
    run = {f"q{i}": [f"h{i}", f"l{i}", f"x{i}#chunk1"] for i in range(20)}
    tags = {
        f"{s}{i}": k for i in range(20) for s, k in (("h", "human"), ("l", "llm:a"), ("x", "human"))
    }
    report = rsb.audit(run, {"qrels": {q: docs[:2] for q, docs in run.items()}, "tags": tags})
    assert "20 documents of results would have a tag but for the number of a chunk" in str(report)


def test_ids_that_mean_different_things_are_not_made_alike() -> None:
    """Human and LLM documents with the same numbers: what stands before them tells them apart."""
    ours = [f"{kind}{i}" for kind in "hl" for i in range(20)]
    theirs = [f"{kind}{i}" for kind in "ab" for i in range(20)]
    assert cause(ours, theirs) is None


def test_many_ids_take_seconds() -> None:
    begun = time.perf_counter()
    assert cause([hashed(i) for i in range(50_000)], [f"WT{i}" for i in range(50_000)]) is None
    assert time.perf_counter() - begun < 20
