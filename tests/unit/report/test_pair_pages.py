"""Pages of the check of a paired corpus."""

from __future__ import annotations

import dataclasses
import functools
import io
import re
from html import unescape

import pytest
from hashing_encoder import HashingEncoder
from outputs import to_html, to_markdown
from paired_texts import WordSpec, human_text, paired_dataset
from rich.console import Console
from test_report_pages import HOSTILE, Page

from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import PairCheckConfig
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.pairs.page import marked
from rag_sourcebias.report.render import print_report, visible_report, without_texts

FAST = PairCheckConfig()
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
        n=25, sources=("llm:alpha", "llm:b"), rewrite=lambda i, _h, o: None if i == 3 else o
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
    return dataclasses.replace(found, encoder=HOSTILE)


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
    document = visible_report(report).page()
    told = (*document.first.lines(), *document.headline, *document.warnings)
    for text in (plain(page_of(name)), plain(markdown_of(report)), printed(report)):
        said = " ".join(text.replace("&amp;", "&").replace("&#34;", '"').split())
        for finding in told:
            assert " ".join(str(finding).split()) in said.replace("&gt;", ">")
    for table in re.findall(r"(?:^\|.*\n)+", markdown_of(report), flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_page_and_markdown_show_the_tables_of_the_report(name) -> None:
    report = visible_report(report_of(name))
    html = " ".join(unescape(page_of(name)).split())
    markdown = " ".join(markdown_of(report).replace("\\", "").split())
    shown = [frame for frame in report.frames.values() if len(frame)]
    assert len(shown) >= 8
    for frame in shown:
        for cell in {cell for row in frame.rows() for cell in row}:
            text = " ".join(cell.split())
            assert text in html
            assert text.replace("\\", "") in markdown


def test_a_terminal_names_the_worst_pairs_and_their_flags() -> None:
    report, text = report_of("full"), printed(report_of("full"))
    shown = [pair for pair in report.sources[0].worst if f" {pair.pair_id} " in text]
    assert shown == list(report.sources[0].worst[:3])
    assert all(", ".join(pair.flags) in text for pair in shown)


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


def test_without_texts_flags_and_values_are_left() -> None:
    bare = without_texts(report_of("full"))
    (part,), (whole,) = bare.sources, report_of("full").sources
    assert [pair.flags for pair in part.worst] == [pair.flags for pair in whole.worst]
    assert not len(bare.table("facts"))
    text = to_markdown(bare)
    assert "crowns" in to_markdown(report_of("full"))
    assert not re.search("crowns|Novak|1263", text)
    assert "refusal, unrelated, length, numbers, names" in text


def test_the_verdict_follows_the_criteria_and_the_share_of_broken_pairs() -> None:
    verdicts = {name: report_of(name).page().first.verdict.code for name in REPORTS}
    assert verdicts["full"] is PairsCode.MANY_BROKEN
    assert verdicts["several"] is PairsCode.UNFIT
    assert verdicts["clean"] is PairsCode.UNCHECKED
    assert report_of("full").verdict == "broken_pairs"
    assert report_of("several").verdict == "criteria_not_met"
    assert report_of("clean").verdict == "not_all_checked"
    good = check_paired_corpus(paired_dataset(n=25), config=FAST)
    assert good.page().first.verdict.code is PairsCode.FIT
    assert good.verdict == "sound"
    one = check_paired_corpus(
        paired_dataset(n=25, texts=[("copy", human_text(80), human_text(80))]).corpus, config=FAST
    )
    assert one.page().first.answer == PairsCode.BROKEN(pairs=26, broken=1, share=1 / 26)
