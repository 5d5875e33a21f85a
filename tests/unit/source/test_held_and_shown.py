"""What an application holds and shows, without judgments: shares, intervals, twins, the sheet."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import read_csv, write_csv
from scipy.stats import binom

import rag_sourcebias as rsb
from rag_sourcebias.core.data import Corpus, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.application import FinishedRun
from rag_sourcebias.source.shown import ShownCode, ShownReport, audit_shown


def corpus_of(sources: Mapping[str, int]) -> Corpus:
    """Return texts of each source, in order."""
    rows = [
        (f"{name}{n}", rsb.DocTags(source=name or None, pair_id=str(n)))
        for name, count in sources.items()
        for n in range(count)
    ]
    return Corpus(texts=tuple(doc for doc, _ in rows), tags=TagTable.from_tags(rows))


def found(corpus: Corpus, lists: Sequence[Sequence[str]], **settings: int) -> ShownReport:
    ranked = [rsb.RankedList(query_id=f"q{n}", doc_ids=tuple(docs)) for n, docs in enumerate(lists)]
    queries = [Query(query_id=f"q{n}", text=f"question {n}") for n in range(len(lists))]
    run = Run.from_lists(ranked, name="mine")
    return audit_shown(FinishedRun(run), corpus, queries, **settings)


def test_shares_are_what_a_count_gives() -> None:
    rng = np.random.default_rng(0)
    corpus = corpus_of({"human": 6, "llm:a": 3, "": 3})
    lists = [list(rng.permutation(corpus.doc_ids)[:4]) for _ in range(40)]
    report = found(corpus, lists, cutoff=3)
    sources = {doc: corpus.tags.get(doc).source or "" for doc in corpus.doc_ids}
    for share in report.shares:
        counted = [sum(sources[doc] == share.source for doc in docs[:3]) / 3 for docs in lists]
        held = sum(source == share.source for source in sources.values()) / 12
        assert share.held == pytest.approx(held)
        assert share.shown == pytest.approx(np.mean(counted))
        assert share.difference is not None
        assert share.difference.estimate == pytest.approx(np.mean(counted) - held)
        assert share.difference.confidence_level == pytest.approx(1 - 0.05 / 3)
    assert [share.documents for share in report.shares] == [6, 3, 3]
    assert any("No source is known for 3 of 12" in text for text in report.warnings)


def told_apart(lean: float, draws: int, n: int) -> int:
    """Count draws in which a source is said to be shown more or less than it is held."""
    rng = np.random.default_rng(int(100 * lean) + n)
    corpus = corpus_of({"human": 60, "llm:a": 40})
    weights = np.where([doc.startswith("h") for doc in corpus.doc_ids], 1 + lean, 1.0)
    told = 0
    for _ in range(draws):
        keys = rng.exponential(size=(n, 100)) / weights
        tops = np.argsort(keys, axis=1)[:, :5]
        report = found(corpus, [[corpus.doc_ids[row] for row in top] for top in tops])
        told += report.verdict != "cannot_tell"
    return told


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
def test_a_ranker_that_is_blind_is_rarely_said_to_lean(n: int) -> None:
    draws = 300
    assert told_apart(0.0, draws, n) <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.slow
def test_one_that_leans_is_found() -> None:
    """The control: human text is shown some 17 points more than it is held."""
    assert told_apart(1.5, 40, 60) >= 36


def test_versions_of_one_text_are_compared_where_one_is_shown() -> None:
    corpus = corpus_of({"human": 30, "llm:a": 30})
    lists = [[f"human{n}", f"llm:a{n}"] if n % 3 else [f"llm:a{n}", f"human{n}"] for n in range(30)]
    [twins] = found(corpus, lists).twins
    assert twins.n_pairs == 30
    assert twins.win_rate is not None
    assert twins.win_rate.estimate == pytest.approx(1 / 3)


def test_a_third_version_that_is_shown_counts_for_no_other_pair() -> None:
    corpus = corpus_of({"human": 30, "llm:a": 30, "llm:b": 30})
    lists = [[f"llm:b{n}", f"human{n}", f"llm:a{n}"] for n in range(30)]
    [twins] = found(corpus, lists, cutoff=1).twins
    assert (twins.other, twins.n_pairs) == ("llm:b", 30)


def test_parts_of_one_text_are_no_versions_of_it() -> None:
    """The other text is whole on both sides, and the control."""
    pairs = {f"{source}{n}": "ab"[n] for source in ("human", "llm:a") for n in (0, 1)}
    pairs["human2"] = "a"
    tags = {doc: rsb.DocTags(source=doc[:-1], pair_id=pair) for doc, pair in pairs.items()}
    corpus = Corpus(texts=tuple(pairs), tags=TagTable.from_tags(tags.items()))
    report = found(corpus, [["human0", "llm:a0", "human1", "llm:a1"]] * 30)
    assert [twin.n_pairs for twin in report.twins] == [30]
    assert ShownCode.PARTS(n=1) in report.findings


def test_copies_are_counted_and_shares_by_group_where_they_differ() -> None:
    corpus = corpus_of({"human": 30, "llm:a": 30})
    own = [" ".join(f"{word}{n}" for word in "abcdefghijklmno") for n in range(60)]
    copied = own[:40] + [f"{own[40]} more{n}" for n in range(20)]  # of which LLM text has 20
    lists = [[f"human{n}", f"llm:a{10 + n % 20}", f"llm:a{10 + (n + 1) % 20}"] for n in range(30)]
    report = found(replace(corpus, texts=tuple(copied)), lists)
    said = {finding.code: finding.numbers for finding in report.copies}
    assert [said[ShownCode.COPIES][name] for name in ("n", "groups")] == [20, 1]
    assert said[ShownCode.COPIED_TWINS]["n"] == 20
    by_group = said[ShownCode.BY_GROUP]
    # the 20 count as one document, and the two that each question shows as one
    assert (by_group["source"], by_group["held"], by_group["shown"]) == ("human", 30 / 41, 0.5)
    assert set(map(str, report.copies)) <= set(map(str, report.page().first.doubts))
    # the control
    assert found(replace(corpus, texts=tuple(own)), lists).copies == ()


def test_a_folder_with_blanks_stands_quoted_in_the_command(tmp_path: Path) -> None:
    sample = rsb.load_sample().corpus
    report = rsb.audit("bm25", store=sample, questions=["rivers"], sheet=tmp_path / "a b")
    step = report.page().first.next
    assert step is not None
    assert str(tmp_path / "a b" / "tags.csv") in shlex.split(step.command)


def test_sentences_are_those_of_the_table() -> None:
    corpus = corpus_of({"human": 30, "llm:a": 10})
    report = found(corpus, [[f"human{n}", "llm:a0"] for n in range(30)], cutoff=2)
    text = str(report)
    assert "Human text is 75.0% of 40 documents and gets 50.0% of the first 2" in text
    assert "It is shown less than it is held" in text
    assert report.verdicts == {"human": "less", "llm:a": "more"}


def test_few_questions_give_no_interval_and_no_verdict() -> None:
    corpus = corpus_of({"human": 3, "llm:a": 3})
    report = found(corpus, [["human0"], ["human1"]])
    assert report.verdict == "cannot_tell"
    assert "With 2 questions no interval is given; ask at least 20" in str(report)


def test_a_store_without_tags_says_how_to_tag_it() -> None:
    report = found(corpus_of({"": 5}), [["0"] for _ in range(20)])
    assert "tag apply --help" in str(report)
    assert report.frames["shares"].columns["source"] == ["untagged"]
    alone = found(corpus_of({"human": 5}), [["human0"] for _ in range(20)])
    assert "nothing to compare" in str(alone)
    assert "of the first 1 that mine shows" in str(alone)  # it never shows five


def test_a_report_is_read_back(tmp_path: Path) -> None:
    report = found(corpus_of({"human": 3, "llm:a": 3}), [["human0"]] * 20)
    back = rsb.read_report(report.save(tmp_path) / "report.json")
    assert back.to_dict() == report.to_dict()
    assert str(back) == str(report)


def test_a_sheet_is_blind_and_comes_back(tmp_path: Path) -> None:
    sample = rsb.load_sample()
    questions = [query.text for query in sample.queries[:60]]
    folder = tmp_path / "sheet"
    report = rsb.audit("bm25", store=sample.corpus, questions=questions, sheet=folder)
    rows = read_csv(folder / "sheet.csv")
    assert len(rows) == 150
    assert not any("human" in row["doc_id"] or "claude" in row["doc_id"] for row in rows)
    assert report.page().first.next is not None
    assert str(folder / "tags.csv") in report.page().first.next.command
    source = {row["doc_id"]: row["source"] for row in read_csv(folder / "tags.csv")}
    for number, row in enumerate(rows):
        row["grade"] = "" if number % 10 == 0 else str(int(source[row["doc_id"]] == "human"))
    write_csv(folder / "sheet.csv", list(rows[0]), [list(row.values()) for row in rows])
    judged = rsb.read_qrels(folder / "sheet.csv")
    assert len(judged.grades) == 135
    assert judged.grades.sum() == sum(row["grade"] == "1" for row in rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"questions": []}, "no question to ask"),
        ({"data": "sample", "questions": ["a"]}, "give one"),
        ({"store": None, "questions": ["a"]}, "go with store="),
        ({"store": {}, "questions": ["a"]}, "hold"),
        ({"store": "nowhere:x", "questions": ["a"]}, "is unknown; there are"),
        ({"retriever": lambda _: ["?"], "questions": ["a"]}, "none of the 1 documents"),
    ],
)
def test_what_cannot_be_asked_is_refused(settings: dict[str, object], message: str) -> None:
    given = {"retriever": "bm25", "store": {"a": "a text", "b": "another"}} | settings
    with pytest.raises(DataError, match=message):
        rsb.audit(**given)
