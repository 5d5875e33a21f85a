"""Evidence in reports: which cases, how texts differ, and none of it where texts are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stored_reports import stored

from rag_sourcebias import load_sample, measure_source_bias
from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.core.finding import AGAINST, MOST, EvidenceText, telling
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.document import differing, side_of
from rag_sourcebias.report.render import without_texts, write_report

KEPT = {"text", "asked", "baseline_text", "other_text"}
TEXTS = ("skew-evidence", "style-evidence", "pairs-full")


def test_the_cases_that_matter_most_come_first_and_some_against() -> None:
    values = np.array([0.1, -0.9, 0.5, 0.0, np.nan, 0.5, *([0.3] * 20), -0.2, -0.1, -0.05])
    names = [f"q{i:02}" for i in range(len(values))]
    found = telling(values, names).tolist()
    assert found[:3] == [2, 5, 6]
    assert len(found) == MOST + AGAINST
    assert found[MOST:] == [1, 26, 27]
    assert telling(-values, names).tolist() == found
    assert telling(np.zeros(3), "abc").tolist() == []


@pytest.mark.parametrize(
    ("first", "second", "marked"),
    [
        ("a small cat", "a big cat", (["small "], ["big "])),
        ("same words", "Same  words", ([], [])),
        ("", "new", ([], ["new"])),
        ("one two three", "Three, two one", ([], [])),
        ("cats - one", "cats one", ([], [])),
    ],
)
def test_words_that_the_other_lacks_are_marked(
    first: str, second: str, marked: tuple[list[str], list[str]]
) -> None:
    sides = differing(first, second)
    assert ["".join(text for text, _ in side) for side in sides] == [first, second]
    found = ["".join(text for text, one in side if one).split() for side in sides]
    assert found == ["".join(side).split() for side in marked]


def test_beside_a_query_its_words_and_numbers_are_marked() -> None:
    sides = differing("In 1914 many old cats died.", "In 1915 kittens passed.", "how many cats?")
    marked = [[text.strip() for text, one in side if one] for side in sides]
    assert marked == [["1914 many", "cats"], ["1915"]]
    assert [one for side in differing("a b", "c d", "e") for _, one in side] == [False, False]


def test_a_text_that_was_cut_says_how_long_it_was() -> None:
    whole = EvidenceText(label="human", doc_id="d", value=None, text="a tide", length=6)
    assert side_of("gone", "human", whole, []).cut == ""
    cut = replace(whole, length=1_200)
    assert side_of("gone", "human", cut, []).cut.endswith("of 1,200 characters.")


def test_a_source_audit_keeps_the_texts_that_were_ranked() -> None:
    data = load_sample()
    ids = [query.query_id for query in data.queries][:12]
    ranked = {q: {f"{q}@human": 2.0, f"{q}@llm:claude": 1.0} for q in ids}
    kept = {(q, f"{q}@{s}"): 1 for q in ids for s in ("human", "llm:claude")}
    qrels = Qrels.from_rows([(q, d, grade) for (q, d), grade in kept.items()])
    run = Run.from_dict(ranked)
    report = measure_source_bias(run, qrels, data.corpus.tags, corpus=data.corpus)
    cases = report.systems[0].evidence
    assert len(cases) == MOST
    for case in cases:
        assert case.first.doc_id == f"{case.item}@human"
        row = data.corpus.tags.row_of[case.second.doc_id]
        assert case.second.text == data.corpus.texts[row][:1500]
        assert (case.first.value, case.second.value) == (1.0, 2.0)
    bare = measure_source_bias(run, qrels, data.corpus.tags).systems[0].evidence
    assert [case.item for case in bare] == [case.item for case in cases]
    assert not any(case.first.text or case.second.text for case in bare)


@pytest.mark.parametrize("name", TEXTS)
def test_without_texts_no_text_is_in_any_file(name: str, tmp_path: Path) -> None:
    report = stored(name)
    quoted = quotations(report)
    assert len(quoted) > 4
    with_them = write_report(report, tmp_path / "all")
    without = write_report(report, tmp_path / "bare", texts=False)
    whole = {kind: file.read_text("utf-8") for kind, file in with_them.items()}
    assert all(any(text in page for text in quoted) for page in (whole["json"], whole["md"]))
    for kind, file in without.items():
        page = file.read_text("utf-8")
        assert [text for text in quoted if text in page] == [], kind
    assert without["html"].stat().st_size < with_them["html"].stat().st_size
    assert quotations(read_report(without["json"])) == []
    assert quotations(without_texts(report)) == []


def quotations(report: object) -> list[str]:
    """Return a few words out of each text that a report holds."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key in KEPT & value.keys():
                words = str(value[key]).split()
                found.extend([" ".join(words[2:6])] * (len(words) > 8))
            value = list(value.values())
        for item in value if isinstance(value, list) else ():
            walk(item)

    walk(report.to_dict())  # type: ignore[attr-defined]
    return found


def test_a_report_of_ten_thousand_queries_has_at_most_five_megabytes(tmp_path: Path) -> None:
    data = load_sample()
    n, rng = 10_000, np.random.default_rng(1)
    ids = [query.query_id for query in data.queries]
    ranked = {
        f"q{i}": {
            f"{ids[i % 160]}@human": float(rng.random()),
            f"{ids[i % 160]}@llm:claude": float(rng.random()),
        }
        for i in range(n)
    }
    rows = [(query, doc, 1) for query, docs in ranked.items() for doc in docs]
    report = measure_source_bias(
        Run.from_dict(ranked), Qrels.from_rows(rows), data.corpus.tags, corpus=data.corpus
    )
    for kind, file in write_report(report, tmp_path).items():
        assert file.stat().st_size < 5e6, (kind, file.stat().st_size)
    assert report.page().first.rows
