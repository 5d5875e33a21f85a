from __future__ import annotations

import functools
import io
import re
from itertools import zip_longest

import pytest
from debias_reports import (
    debias_dataset,
    debias_report,
    full_report,
    plain_report,
    refused_report,
)
from outputs import to_html, to_markdown
from rich.console import Console
from test_report_pages import Page, assert_sound

from rag_sourcebias.core.finding import p_value
from rag_sourcebias.debias.report import document
from rag_sourcebias.debias.words import (
    delta_ends,
    headline,
    percent_ends,
    search_sentence,
    verdict_text,
    verdicts,
)
from rag_sourcebias.report.document import Listing
from rag_sourcebias.report.legacy import count, estimate, score
from rag_sourcebias.report.render import print_report

SECTIONS = {
    "findings",
    "skew",
    "quality",
    "search",
    "training",
    "methods",
    "reading",
    "caveats",
    "data",
}
LONG = "多言語-エンコーダ/très-long-modèle-ÅÄÖ-" + "x" * 60 + "-$final$"


def named_oddly():
    """Two systems with long names of which the ends differ, on one data set of an odd name."""
    systems = {LONG: (0.0, 0.0), f"{LONG}-v2": (-0.1, 0.0)}
    return debias_report((debias_dataset("Δεδομένα 数据", systems, n=60, seed=2),))


REPORTS = {
    "full": full_report,
    "plain": plain_report,
    "refused": refused_report,
    "odd names": named_oddly,
}


@functools.cache
def report_of(name):
    return REPORTS[name]()


def html_of(report):
    return to_html(report)


def markdown_of(report):
    return to_markdown(report)


@functools.cache
def page_of(name):
    return html_of(report_of(name))


@pytest.fixture(params=list(REPORTS))
def name(request):
    return request.param


def blocks_of(report, section, kind):
    found = {part.id: part.blocks for part in document(report).sections}
    return [block for block in found[section] if isinstance(block, kind)]


def plain(text):
    return text.replace("\\", "").replace("&#39;", "'")


def printed(report, width=4000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_the_page_is_sound_and_loads_nothing(name):
    assert_sound(page_of(name))


def numbers_of(report):
    """Return every number of a report as it should be written."""
    for dataset in report.datasets:
        yield count(dataset.n_pairs)
        for outcome in dataset.outcomes[1:]:
            for s in outcome.skew:
                yield from (delta_ends(s.before), delta_ends(s.after), delta_ends(s.change))
                yield from (p_value(s.p_value), p_value(s.p_adjusted))
            for q in (q for q in outcome.quality if q.test is not None):
                yield from (score(q.before), score(q.after), percent_ends(q), p_value(q.p_value))
    if report.search is not None:
        for point in report.search.points:
            yield from (delta_ends(point.relative_delta), score(point.human_only.estimate))
    for run in report.training:
        yield count(run.n_steps)


def test_every_number_is_shown(name):
    report = report_of(name)
    for text in (plain(page_of(name)).replace("&lt;", "<"), plain(markdown_of(report))):
        assert [n for n in numbers_of(report) if n not in text] == []


def test_all_outputs_say_what_was_found(name):
    report = report_of(name)
    html, markdown, terminal = plain(page_of(name)), plain(markdown_of(report)), printed(report)
    for text in (html, markdown, terminal):
        assert headline(report) in text
        for warning in document(report).warnings:
            assert warning in text
        if report.search is not None:
            assert search_sentence(report.search) in text
    for verdict in verdicts(report):
        assert verdict_text(verdict) in html
        for text in (markdown, terminal):
            assert f"{verdict.system} on {verdict.on}: {verdict_text(verdict)}" in text
    for where, what in (
        row
        for found in blocks_of(report, "caveats", Listing)
        for row in zip_longest(found.of, found.rows, fillvalue="")
    ):
        for text in (html, markdown):
            assert where in text
            assert what in text.replace("&lt;", "<")
    for table in re.findall(r"(?:^\|.*\n)+", markdown_of(report), flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_sections_follow_the_content():
    ids = {name: set(Page(page_of(name)).ids) & SECTIONS for name in REPORTS}
    rest = SECTIONS - {"search", "training"}
    assert ids["full"] == SECTIONS
    assert ids["plain"] == ids["refused"] == ids["odd names"] == rest


def test_every_picture_describes_itself():
    report, text = report_of("full"), page_of("full")
    for title in (
        "Relative Δ before and after on nq-utd",
        "Change of NDCG@10 on outfox",
        "Relative Δ against debias weight",
    ):
        assert f">{title}</title>" in text
    skew = report.datasets[0].outcome("parity offset").skew_at(5)
    before, after = (estimate(found) for found in (skew.before, skew.after))
    assert f"@5: {before} (before), {after} (after, significant)" in text
    assert text.count("</svg>") == 3 + 3 + 1
