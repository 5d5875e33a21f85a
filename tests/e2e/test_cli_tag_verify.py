"""From labelled domains to verified tags and a corrected audit, on the command line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, succeed, write_csv
from run_files import write_run

from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.retrieval.search import BM25Spec

pytest.importorskip("sklearn")

WORDS = {
    "human": ["well", "i", "guess", "we", "saw", "it", "and", "who", "knows", "why", "then", "so"],
    "llm:any": ["furthermore", "this", "comprehensive", "overview", "highlights", "it", "and"],
}
N = 40  # queries, with a document of either source


def text(rng: np.random.Generator, source: str, pure: float = 0.75) -> str:
    other = "llm:any" if source == "human" else "human"
    return " ".join(
        str(rng.choice(WORDS[source if rng.random() < pure else other])) for _ in range(40)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify")
    rng = np.random.default_rng(0)
    for name, pure in (("essays", 0.9), ("news", 0.7)):
        rows = [(text(rng, source, pure), source) for source in WORDS for _ in range(30)]
        write_csv(path / f"{name}.csv", ("text", "source"), rows)
    docs = [(f"{q}{source[0]}", source) for q in range(N) for source in WORDS]
    (path / "wiki.jsonl").write_text(
        "".join(
            json.dumps({"_id": doc, "text": text(rng, source), "year": 2019 + int(doc[:-1]) % 6})
            + "\n"
            for doc, source in docs
        ),
        encoding="utf-8",
    )
    (path / "truth.json").write_text(json.dumps(dict(docs)), encoding="utf-8")
    run, qrels = [], []
    for q in range(N):
        order = rng.permutation([f"{q}h", f"{q}l"]) if q % 3 else [f"{q}h", f"{q}l"]
        run += [f"q{q} Q0 {doc} {i} {9 - i} r" for i, doc in enumerate(order, start=1)]
        qrels += [f"q{q} 0 {doc} 1" for doc in order]
    (path / "r.run").write_text("\n".join(run) + "\n", encoding="utf-8")
    (path / "qrels.txt").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    said = succeed("tag", "fit", "essays.csv", "news.csv", "--output", "detector", cwd=path)
    assert "Each domain left out" in said
    assert "wrong on a domain not seen" in said
    said = succeed("tag", "fit", "essays.csv", "--output", "alone", cwd=path)
    assert "elsewhere unknown: one domain is labelled" in " ".join(said.split())
    return path


def fill(folder: Path, name: str, rows: range) -> None:
    """Do what people do: look at the text, and know."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    manifest = json.loads((folder / f"{name}.manifest.json").read_text(encoding="utf-8"))
    doc_of = {row["row_id"]: row["name"] for row in manifest["rows"]}
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["row_id", "text", "source"]  # nothing of what the detector said
    for i in rows:
        table[i]["source"] = truth[doc_of[table[i]["row_id"]]].replace("llm:any", "llm")
    write_csv(folder / name, list(table[0]), [tuple(row.values()) for row in table])


def test_each_domain_is_left_out_where_there_are_several(folder: Path) -> None:
    record = json.loads((folder / "detector" / "detector.json").read_text(encoding="utf-8"))
    alone = json.loads((folder / "alone" / "detector.json").read_text(encoding="utf-8"))
    assert [row["domain"] for row in record["foreign"]] == ["essays", "news"]
    assert not alone.get("foreign")
    assert record["foreign"][0]["error_of_all"]["n"] == 60


def test_nothing_is_written_before_people_have_looked(folder: Path) -> None:
    store = ("--store", "corpus:wiki.jsonl", "--detector", "detector")
    apply = ("tag", "apply", *store, "--sidecar", "tags.sqlite")
    assert "nothing was written; let people say of some 50" in refused(*apply, cwd=folder)
    assert not (folder / "tags.sqlite").exists()
    succeed("tag", "verify", "sheet.csv", *store, "-n", "60", cwd=folder)
    fill(folder, "sheet.csv", range(49))
    few = refused(*apply, "--verified", "sheet.csv", cwd=folder)
    assert "49 of 60 documents are verified; at least 50 are needed" in few
    fill(folder, "sheet.csv", range(55))
    said = succeed("tag", "verify", "sheet.csv", cwd=folder)
    assert "55 of 60 documents are filled in" in said
    assert "wrong, if all are decided" in said
    said = succeed(*apply, "--verified", "sheet.csv", cwd=folder)
    said = " ".join(said.split())
    assert "how sources are known: declared 55, detected 25" in said  # AUROC above .8: all decided
    assert "(unknown) │ 0 " in said
    other = refused(
        "tag", "apply", "--store", "corpus:wiki.jsonl", "--detector", "alone",
        "--verified", "sheet.csv", "--sidecar", "other.sqlite", cwd=folder,
    )  # fmt: skip
    assert "drawn for another detector" in other
    said = succeed(
        "tag", "apply", *store, "--unverified", "--sidecar", "more.sqlite",
        "--human-before", "2021", cwd=folder,
    )  # fmt: skip
    said = " ".join(said.split())
    assert "provenance 28" in said  # two years of six, of either source
    assert "unverified" in (open_tag_store(folder / "more.sqlite").table().origins or ())


def test_tags_that_tell_nothing_and_documents_of_one_kind_are_refused(folder: Path) -> None:
    store = ("--store", "corpus:wiki.jsonl", "--detector", "detector")
    sources = np.random.default_rng(0).choice(["human", "llm"], 60)
    for name, said, expected in (
        ("coin.csv", sources, "the tags tell nothing"),
        ("kind.csv", ["human"] * 60, "60 are by people and 0 by a model; at least 5 of either"),
    ):
        succeed("tag", "verify", name, *store, "-n", "60", cwd=folder)
        with (folder / name).open(encoding="utf-8-sig", newline="") as file:
            table = list(csv.DictReader(file))
        rows = [(r["row_id"], r["text"], s) for r, s in zip(table, said, strict=True)]
        write_csv(folder / name, list(table[0]), rows)
        assert expected in refused("tag", "verify", name, cwd=folder)
        apply = ("tag", "apply", *store, "--verified", name, "--sidecar", "none.sqlite")
        assert expected in refused(*apply, cwd=folder)
        assert not (folder / "none.sqlite").exists()


def test_rows_left_out_or_changed_are_named(folder: Path) -> None:
    store = ("--store", "corpus:wiki.jsonl", "--detector", "detector")
    succeed("tag", "verify", "gap.csv", *store, "-n", "60", cwd=folder)
    fill(folder, "gap.csv", range(1, 60))
    assert "row 'r01' is blank and later ones are filled in" in refused(
        "tag", "verify", "gap.csv", cwd=folder
    )
    fill(folder, "gap.csv", range(60))
    sheet = folder / "gap.csv"
    sheet.write_text(sheet.read_text("utf-8").replace("human", "robot", 1), encoding="utf-8")
    assert "is none of human, llm, llm:<model> and unclear" in refused(
        "tag", "verify", "gap.csv", cwd=folder
    )


def test_an_audit_of_detected_tags_is_corrected(folder: Path) -> None:
    audit = ("audit", "source", "--run", "r.run", "--qrels", "qrels.txt", "--tags", "detected")
    assert "nobody verified them" in refused(*audit, cwd=folder)
    draw = ("--store", "corpus:wiki.jsonl", "--detector", "detector", "-n", "70")
    succeed(
        "tag", "verify", "slots.csv", *draw, "--run", "r.run", "--qrels", "qrels.txt", cwd=folder
    )
    fill(folder, "slots.csv", range(70))
    said = " ".join(
        succeed(*audit, "--verified", "slots.csv", "--report", "out", cwd=folder).split()
    )
    assert "70 verified by people" in said
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    report = report.get("report", report)
    assert report["data"]["origins"] == {"declared": 70, "detected": 10}
    for name in ("store.csv",):
        succeed("tag", "verify", name, *draw, cwd=folder)
        fill(folder, name, range(70))
        assert "says nothing of those that are retrieved" in refused(
            *audit, "--verified", name, cwd=folder
        )


def test_an_audit_of_a_folder_is_corrected_as_that_of_its_run(folder: Path) -> None:
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (folder / "wiki.jsonl").read_text("utf-8").splitlines()]
    tagged = [{**row, "metadata": {"source": truth[row["_id"]]}} for row in rows]
    for name, lines in (
        ("corpus.jsonl", tagged),
        ("queries.jsonl", [{"_id": f"q{q}", "text": rows[2 * q]["text"][:60]} for q in range(N)]),
    ):
        (data / name).write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    judged = "".join(f"q{q}\t{q}{side}\t1\n" for q in range(N) for side in "hl")
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8"
    )
    dataset = read_beir(data)
    found = BM25Spec().build(dataset.corpus).retrieve(dataset.queries, 100)
    write_run(replace(found, name="bm25"), folder / "bm25.run")
    store = ("--store", "corpus:wiki.jsonl", "--detector", "detector", "-n", "70")
    drawn = ("--run", "bm25.run", "--qrels", "qrels.txt")
    succeed("tag", "verify", "own.csv", *store, *drawn, cwd=folder)
    fill(folder, "own.csv", range(70))
    tags = ("--tags", "detected", "--verified", "own.csv")
    cells = []
    for of, name in ((("data", "--retriever", "bm25"), "a"), (drawn, "b")):
        said = succeed("audit", "source", *of, *tags, "--report", name, cwd=folder)
        assert "70 verified by people" in " ".join(said.split())
        assert "the count is not corrected" in " ".join(said.split())
        report = json.loads((folder / name / "report.json").read_text(encoding="utf-8"))
        cells.append(report.get("report", report)["systems"][0]["cells"])
    assert cells[0] == cells[1]
    assert "rag-sourcebias" not in said  # no other command takes a finished run
    plain = ("audit", "source", "data", "--retriever", "bm25")
    assert "takes those that --verified" in refused(*plain, "--tags", "detected", cwd=folder)
    assert "takes those that --verified" in refused(
        *plain, "--tags", "other.tsv", "--verified", "own.csv", cwd=folder
    )
    assert "take tags as they are" in refused(*plain, *tags, "--text-statistics", cwd=folder)
    with (folder / "own.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    people = [(r["row_id"], r["text"], "human" if r["source"] else "") for r in table]
    write_csv(folder / "people.csv", list(table[0]), people)
    manifest = (folder / "own.csv.manifest.json").read_bytes()
    (folder / "people.csv.manifest.json").write_bytes(manifest)
    told = refused("audit", "source", *drawn, *tags[:3], "people.csv", cwd=folder)
    assert "70 are by people and 0 by a model; at least 5 of either" in told
