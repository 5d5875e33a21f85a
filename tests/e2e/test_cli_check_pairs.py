"""``check-pairs`` as a user runs it: real folders, real files, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import inside, read_csv, succeed
from paired_texts import human_text, paired_dataset

from rag_sourcebias.kinds import read_report
from rag_sourcebias.pairs.report import PairReport
from rag_sourcebias.pairs.writing import write_beir

N = 30


def rewrite(i: int, human: str, other: str) -> str:
    if i == 3:
        return "I'm sorry, but I can't assist with that request."
    return other.replace(f"{1200 + 7 * i} crowns", "9999 crowns") if i == 9 else other


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pairs")
    write_beir(paired_dataset(n=N, rewrite=rewrite), root / "data")
    return root / "data"


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    return tmp_path


def report_of(folder: Path) -> PairReport:
    found = read_report(folder / "report.json")
    assert isinstance(found, PairReport)
    return found


def test_a_folder_is_checked_and_everything_written(folder: Path) -> None:
    told = succeed("check-pairs", "data", "--report", "report", cwd=folder)
    assert "Of 30 pairs, 1 is broken (3.3%)" in told
    assert "✓ one to one: Pairs: 30. Every document is in one." in told
    assert "Searched alone, both corpora are equally hard within ±5.0 on " in told
    report = report_of(folder / "report")
    (part,) = report.sources
    assert part.flagged_ids["refusal"] == ("d3",)
    assert part.worst[0].pair_id == "d3"
    assert {test.system for test in report.sole_corpus} == {"bm25"}
    assert len(report.sole_corpus) == 8
    rows = read_csv(folder / "report" / "pairs-rewriter.csv")
    assert len(rows) == N
    by_id = {row["pair_id"]: row for row in rows}
    assert by_id["d3"]["broken"] == "yes"
    assert (by_id["d9"]["numbers_missing"], by_id["d9"]["numbers_added"]) == ("1263", "9999")
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "<mark>1263</mark>" in html


def test_too_many_broken_pairs_end_with_code_1(folder: Path) -> None:
    arguments = ("check-pairs", "data", "--no-sole-corpus", "--fail-above")
    code, _, told = inside(*arguments, "0.01", cwd=folder)
    assert code == 1
    assert "broken pairs with llm:rewriter: 1 of 30, more than --fail-above 1.0%" in told
    assert inside(*arguments, "0.05", cwd=folder)[0] == 0


def test_thresholds_sources_and_settings_are_used(folder: Path) -> None:
    told = succeed(
        "check-pairs", "data", "--threshold", "numbers_kept=off", "--threshold", "writing=off",
        "--threshold", "length_ratio=0.01,2", "--threshold", "language=on", "--source",
        "llm:rewriter", "--cutoffs", "5", "--margin", "0.4", "--worst", "1", "--report", "r",
        cwd=folder,
    )  # fmt: skip
    report = report_of(folder / "r")
    assert report.thresholds.numbers_kept is None
    assert report.thresholds.length_ratio == (0.01, 2.0)
    assert not report.thresholds.writing
    assert "refusal" not in report.sources[0].flagged_ids
    assert len(report.sources[0].worst) == 1
    assert {test.measure for test in report.sole_corpus} == {"NDCG@5", "MAP@5"}
    assert report.sole_corpus[0].margin == 0.4
    assert "equally hard within ±40.0 on all 2 measures" in told


def append(path: Path, row: dict[str, str]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def test_odd_corpora(folder: Path) -> None:
    corpus = folder / "data" / "corpus"
    append(corpus / "human.jsonl", {"_id": "שלום 😀", "title": "", "text": human_text(99)})
    append(corpus / "rewriter.jsonl", {"_id": "שלום 😀", "title": "", "text": "<b>\u202e 😀 7"})
    append(corpus / "human.jsonl", {"_id": "alone", "title": "", "text": human_text(77)})
    told = succeed("check-pairs", "data", "--report", "r", cwd=folder)
    assert "✗ one to one: Pairs: 31. Originals without a rewrite: 1; " in told
    assert "alone@human" in told
    assert "שלום 😀" in {row["pair_id"] for row in read_csv(folder / "r" / "pairs-rewriter.csv")}
    assert "<b>\u202e" not in (folder / "r" / "report.html").read_text(encoding="utf-8")


@pytest.mark.frameworks
def test_an_encoder_gives_cosines(folder: Path) -> None:
    pytest.importorskip("sentence_transformers")
    from static_model import static_model

    words = sorted({w for i in range(N) for w in human_text(i).split()})
    static_model(folder / "tiny", words)
    succeed("check-pairs", "data", "--encoder", "tiny", "--retriever", "dense:tiny",
            "--cache", "cache", "--report", "r", cwd=folder)  # fmt: skip
    report = report_of(folder / "r")
    assert report.encoder == "tiny"
    assert "cosine" in report.sources[0].histograms
    assert {test.system for test in report.sole_corpus} == {"dense:tiny"}
    assert all(row["cosine"] for row in read_csv(folder / "r" / "pairs-rewriter.csv"))


def test_sound_pairs_are_written_and_audited(folder: Path) -> None:
    words = ("check-pairs", "data", "--no-sole-corpus", "--output", "sound")
    code, _, told = inside(*words, cwd=folder)
    assert code == 0
    assert "sound pairs: sound (29 documents of each source" in told
    assert "Of 29 pairs, none is broken" in succeed("check-pairs", "sound", cwd=folder)
    assert (folder / "sound" / "qrels" / "test.tsv").is_file()
    assert "29" in succeed("audit", "source", "sound", "--retriever", "bm25", cwd=folder)
