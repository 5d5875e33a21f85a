from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report.document import renamed, text_figures, text_frame, text_key, text_notes
from rag_sourcebias.report.figures import draw

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
    frame = text_frame(statistics, original="human")
    assert frame.titles() == ("group", "texts", "words", "BLEU")
    rows = frame.rows()
    assert [row[:2] for row in rows] == [("human", "80"), ("llm", "80")]
    assert rows[0][3] == "–"
    bleu = next(s for s in statistics if s.name == "BLEU")
    low, high = bleu.mean.lower, bleu.mean.upper
    assert rows[1][3] == f"{bleu.average:.2f} [{low:.2f}, {high:.2f}]"
    assert text_frame(()).rows() == ()
    alone = dataclasses.replace(statistics[0], mean=None)
    assert text_frame([alone]).rows()[0][2] == f"{alone.average:.1f}"
    lines = text_frame(renamed(statistics, {"llm": HOSTILE})).to_markdown().splitlines()
    assert len(lines) == 4
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in lines)


def test_a_key_and_notes_hold_of_what_was_measured():
    words = [statistic("human", "words", 0, level=0.9), statistic("llm", "words", 1, level=0.9)]
    assert [str(said) for said in text_key(words)] == [
        "Thin lines reach from the 5th to the 95th percentile of the texts, boxes over the middle "
        "half, the bar in them is the median; the mark is the mean with its 90% interval."
    ]
    assert len(text_key(made(("human", "llm")))) == 2
    alone = [dataclasses.replace(s, mean=None, quantiles=(1, 2, 3, 4, 5)) for s in words]
    assert [str(said)[:4] for said in text_key(alone)] == ["Thin", "Some"]
    assert text_notes(alone) == ()
    notes = text_notes(made(("human", "a", "b"), notes=("cut",)))
    assert ("cut", ()) in notes
    assert (MODE, ()) in notes
    assert text_notes(made(("human", "a"), notes=("cut",))[:2])[0][1] == ()
