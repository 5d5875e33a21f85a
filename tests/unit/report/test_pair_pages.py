"""Pages of the check of a paired corpus."""

from __future__ import annotations

import dataclasses
import functools
import io
import re

import pytest
from hashing_encoder import HashingEncoder
from paired_texts import WordSpec, human_text, paired_dataset
from rich.console import Console
from test_report_pages import HOSTILE, Page

from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import PairCheckConfig
from rag_sourcebias.pairs.report import document, first, headline, marked
from rag_sourcebias.report.blocks import Items, p_value, score
from rag_sourcebias.reports import print_report, to_html, to_markdown

FAST = PairCheckConfig(resamples=200)
SECTIONS = {"criteria", "flags", "values", "worst", "sole", "reading", "data"}


def faulty(i, human, other):
    if i % 20 == 3:
        return "I'm sorry, but I can't assist with that request."
    if i % 10 == 5:
        return human.replace("1,", "")
    return other.replace(f"{1200 + 7 * i} crowns", "9999 crowns") if i % 10 == 9 else other


def full():
    return check_paired_corpus(
        paired_dataset(n=60, rewrite=faulty),
        encoder=HashingEncoder(),
        retrievers=[WordSpec()],
        config=FAST,
    )


def several():
    data = paired_dataset(
        n=25, sources=("llm:a", "llm:b"), rewrite=lambda i, _h, o: None if i == 3 else o
    )
    return check_paired_corpus(data, retrievers=[WordSpec("one"), WordSpec("two")], config=FAST)


def clean():
    return check_paired_corpus(paired_dataset(n=25).corpus, config=FAST)


def hostile():
    odd = f"{HOSTILE} 17 \u202e שלום 😀\u0000"
    data = paired_dataset(
        n=25, sources=(f"llm:{HOSTILE}",), texts=[(odd, odd, odd.replace("17", f"18 {HOSTILE}"))]
    )
    found = check_paired_corpus(
        dataclasses.replace(data, name=HOSTILE), retrievers=[WordSpec(HOSTILE)], config=FAST
    )
    return dataclasses.replace(found, warnings=(HOSTILE,), encoder=HOSTILE)


REPORTS = {"full": full, "several": several, "clean": clean, "hostile": hostile}


@functools.cache
def report_of(name):
    return REPORTS[name]()


@functools.cache
def page_of(name):
    return to_html(report_of(name))


@pytest.fixture(params=list(REPORTS))
def name(request):
    return request.param


def markdown_of(report):
    return to_markdown(report)


def blocks_of(report, kind):
    blocks = (block for section in document(report).sections for block in section.blocks)
    return [block for block in blocks if isinstance(block, kind)]


def plain(text):
    return text.replace("\\", "").replace("&#39;", "'").replace("&lt;", "<")


def printed(report, width=4000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_sections_follow_the_content() -> None:
    ids = {name: set(Page(page_of(name)).ids) & SECTIONS for name in REPORTS}
    assert ids["full"] == ids["hostile"] == SECTIONS
    assert ids["several"] == SECTIONS - {"worst"}
    assert ids["clean"] == SECTIONS - {"worst", "sole"}


def test_all_outputs_say_what_was_found(name) -> None:
    report = report_of(name)
    for text in (plain(page_of(name)), plain(markdown_of(report)), printed(report)):
        said = " ".join(text.replace("&amp;", "&").replace("&#34;", '"').split())
        assert " ".join(headline(report).split()) in said
        for warning in report.warnings:
            assert " ".join(warning.split()) in said.replace("&gt;", ">")
    html, markdown = plain(page_of(name)), plain(markdown_of(report))
    for test in report.sole_corpus:
        numbers = (score(test.mean_other), p_value(test.p_equivalent_adjusted))
        assert all(n in text for n in numbers for text in (html, markdown))
    for found in blocks_of(report, Items):
        if "terminal" in found.to:
            for _, sentence in found.rows:
                assert sentence in printed(report)
    for table in re.findall(r"(?:^\|.*\n)+", markdown_of(report), flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_lost_and_added_facts_are_marked_side_by_side() -> None:
    report, html = report_of("full"), page_of("full")
    (pair,) = [p for p in report.sources[0].worst if p.pair_id == "d9"]
    assert (pair.numbers_missing, pair.numbers_added) == (("1263",), ("9999",))
    original, rewrite = html.split("d9</bdi>")[1].split('class="side new"')[:2]
    assert "It cost <mark>1263</mark> crowns" in original
    assert "it cost <mark>9999</mark> crowns" in rewrite
    assert len(re.findall('<article class="twin', html)) == len(report.sources[0].worst)


def test_marks_are_whole_words_the_longest_first() -> None:
    assert marked("New York and New York City, 5 or 55", ["York", "New York City", "5"]) == (
        ("New ", False), ("York", True), (" and ", False), ("New York City", True), (", ", False),
        ("5", True), (" or 55", False),
    )  # fmt: skip
    assert marked("", ["x"]) == ()
    assert marked("a (b) [c]", ["(b)", "", " "]) == (("a ", False), ("(b)", True), (" [c]", False))
    for text in ("שלום 17", "ünï 😀 x", "a\u0000b"):
        assert "".join(piece for piece, _ in marked(text, ["17", "X"])) == text


def test_answer_and_headline_claim_no_more_than_was_counted() -> None:
    broken = report_of("full").sources[0].summary.n_broken
    assert first(report_of("full")).answer.startswith(f"{broken} of 60 pairs")
    assert "All three criteria of a paired corpus are met." in headline(report_of("full"))
    assert "None of 48 pairs with 2 sources is broken." in first(report_of("several")).answer
    several = headline(report_of("several"))
    assert "not met: one to one" in several
    assert "on 0 of 32 measures; none shows a difference" in several
    assert "labels copied" in headline(report_of("clean"))
    one = check_paired_corpus(
        paired_dataset(n=25, texts=[("copy", human_text(80), human_text(80))]).corpus, config=FAST
    )
    assert first(one).answer.startswith("1 of 26 pairs (3.8%) is broken, no rewrite")
