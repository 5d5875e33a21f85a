from __future__ import annotations

import dataclasses
import io
import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report.figures import draw
from rag_sourcebias.report.legacy_render import print_blocks, table
from rag_sourcebias.report.text_stats import (
    renamed,
    text_figures,
    text_means,
    text_table,
)
from rag_sourcebias.reports import to_html, to_markdown
from rag_sourcebias.source.report import SkewReport

SVG = "{http://www.w3.org/2000/svg}"
SIMILARITIES = ("BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap")
MODE = InferCode.METEOR_STEMS()
HOSTILE = "<b>$x^2$</b>|\"'&"


def statistic(group, name, seed, *, n=80, notes=(), level=0.95, scale=1.0):
    rng = np.random.default_rng(seed)
    values = rng.gamma(9, 12 * scale, n) if name == "words" else rng.beta(6, 5, n)
    half = 2 * values.std() / np.sqrt(n)
    mean = float(values.mean())
    return TextStatistic(
        group=group,
        name=name,
        n=n,
        mean=Interval(
            estimate=mean,
            lower=mean - half,
            upper=mean + half,
            confidence_level=level,
            method=InferCode.T(),
            n_labeled=n,
            notes=(*notes, MODE) if name == "METEOR" else notes,
        ),
        average=mean,
        quantiles=tuple(np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()),
    )


def made(groups, *, original="human", names=SIMILARITIES, **changes):
    found = []
    for place, group in enumerate(groups):
        found.append(statistic(group, "words", place, **changes))
        if group != original:
            found += [statistic(group, name, place, **changes) for name in names]
    return tuple(found)


STYLES = ("human", *map(str, range(9)))
LONG = tuple(f"Style {i}: energetic, motivational and positive manner {i}" for i in range(9))
TWINS = tuple("llama-2-7b-chat-" + "x" * i + "-with-a-long-middle-that-is-cut-out" for i in (9, 11))


def drawn(groups, *, original="human", **changes):
    figures = text_figures(made(groups, original=original, **changes), original=original)
    return {caption: draw(picture, uid="texts") for caption, picture in figures}


def words_of(svg):
    return ["".join(e.itertext()) for e in ET.fromstring(svg).iter(f"{SVG}text")]


CASES = {
    "styles": (STYLES, "human"),
    "long": (("human", *LONG), "human"),
    "answers": (("fid", "gpt35", "newbing"), None),
    "two": (("human", "LLM"), "human"),
    "alike": (("human", *TWINS), "human"),
    "unicode": (("humain", "スタイル", HOSTILE, "🙂"), "humain"),
}


@pytest.fixture(scope="module", params=CASES)
def pictures(request):
    groups, original = CASES[request.param]
    return drawn(groups, original=original), groups, original


def test_there_is_a_picture_per_statistic_with_every_group(pictures):
    found, groups, original = pictures
    assert list(found) == ["words per text", *SIMILARITIES]
    for caption, svg in found.items():
        # Only words are measured of the original itself.
        shown = [g for g in groups if caption == "words per text" or g != original]
        root = ET.fromstring(svg)
        assert root[0].text == caption
        assert all(group in root[1].text for group in shown)
        labels = [t for t in words_of(svg) if not re.fullmatch(r"[\d.]+", t)]
        numbered = [g for g in shown if re.fullmatch(r"[\d.]+", g)]
        assert len(set(labels)) == len(labels) == len(shown) - len(numbered)


# Tables and words


def test_table():
    statistics = made(("llm", "human"), names=("BLEU",))
    content = text_table(statistics, original="human")
    assert content.columns == ("group", "texts", "words", "BLEU")
    assert [row[:2] for row in content.rows] == [("human", "80"), ("llm", "80")]
    assert content.rows[0][3] == "–"
    bleu = next(s for s in statistics if s.name == "BLEU")
    low, high = bleu.mean.lower, bleu.mean.upper
    assert content.rows[1][3] == f"{bleu.average:.2f} [{low:.2f}, {high:.2f}]"
    assert text_table(()).rows == ()
    without = text_table([dataclasses.replace(statistics[0], mean=None)])
    assert without.rows[0][2].endswith("(no interval)")
    lines = table(text_table(renamed(statistics, {"llm": HOSTILE}))).splitlines()
    assert len(lines) == 4
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in lines)


def printed(statistics, width=80):
    out = io.StringIO()
    print_blocks(text_means(statistics, original="human"), Console(file=out, width=width))
    return out.getvalue()


def test_terminal_table_fits_eighty_columns():
    text = printed(made(("human", *LONG)))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "overlap" in text
    assert "[b]x" in printed(made(("human", "[b]x")))
    assert printed(()) == ""


# In the report of sources


@pytest.fixture(scope="module")
def with_texts(full_report):
    return dataclasses.replace(full_report, text_statistics=made(("human", "llm:llama-2")))


def test_the_source_report_has_a_section_of_texts(with_texts, full_report):
    page = to_html(with_texts)
    assert 'id="texts"' in page
    assert "What the texts look like" in page
    assert "WordNet" in page
    text = to_markdown(with_texts)
    assert "## What the texts look like" in text
    assert "| llm:llama-2 | 80 |" in text
    for plain in (to_html(full_report), to_markdown(full_report)):
        assert "What the texts look like" not in plain


def test_json_keeps_text_statistics_and_reads_reports_without_them(with_texts):
    plain = json.loads(json.dumps(with_texts.to_dict()))
    assert SkewReport.from_dict(plain).text_statistics == with_texts.text_statistics
    del plain["text_statistics"]
    assert SkewReport.from_dict(plain).text_statistics == ()
