"""Pages of the check of a paired corpus."""

from __future__ import annotations

import dataclasses
import io
import re

from outputs import to_html, to_markdown
from paired_texts import WordSpec, human_text, paired_dataset
from rich.console import Console
from stored_reports import stored

from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import PairCheckConfig
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.pairs.page import marked
from rag_sourcebias.report.render import print_report, without_texts

HOSTILE = "<script>alert(1)</script>|[x](javascript:y)\"'&`"
FAST = PairCheckConfig()


def hostile():
    odd = f"{HOSTILE} 17 \u202e שלום 😀\u0000"
    data = paired_dataset(
        n=25, sources=(f"llm:{HOSTILE}",), texts=[(odd, odd, odd.replace("17", f"18 {HOSTILE}"))]
    )
    found = check_paired_corpus(
        dataclasses.replace(data, name=HOSTILE), retrievers=[WordSpec(HOSTILE)], config=FAST
    )
    return dataclasses.replace(found, encoder=HOSTILE)


def printed(report, width=4000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_a_terminal_names_the_worst_pairs_and_their_flags() -> None:
    report, text = stored("pairs-full"), printed(stored("pairs-full"))
    shown = [pair for pair in report.sources[0].worst if f" {pair.pair_id} " in text]
    assert shown == list(report.sources[0].worst[:3])
    assert all(", ".join(pair.flags) in text for pair in shown)


def test_lost_and_added_facts_are_marked_side_by_side() -> None:
    report, html = stored("pairs-full"), to_html(stored("pairs-full"))
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
    bare = without_texts(stored("pairs-full"))
    (part,), (whole,) = bare.sources, stored("pairs-full").sources
    assert [pair.flags for pair in part.worst] == [pair.flags for pair in whole.worst]
    assert not len(bare.table("facts"))
    text = to_markdown(bare)
    assert "crowns" in to_markdown(stored("pairs-full"))
    assert not re.search("crowns|Novak|1263", text)
    assert "refusal, unrelated, length, numbers, names" in text


def test_the_verdict_follows_the_criteria_and_the_share_of_broken_pairs() -> None:
    for name, code, verdict in (
        ("full", PairsCode.MANY_BROKEN, "broken_pairs"),
        ("several", PairsCode.UNFIT, "criteria_not_met"),
        ("clean", PairsCode.UNCHECKED, "not_all_checked"),
    ):
        report = stored(f"pairs-{name}")
        assert (report.page().first.verdict.code, report.verdict) == (code, verdict)
    good = check_paired_corpus(paired_dataset(n=25), config=FAST)
    assert good.page().first.verdict.code is PairsCode.FIT
    assert good.verdict == "sound"
    one = check_paired_corpus(
        paired_dataset(n=25, texts=[("copy", human_text(80), human_text(80))]).corpus, config=FAST
    )
    assert one.page().first.answer == PairsCode.BROKEN(pairs=26, broken=1, share=1 / 26)
