"""The first screen of every kind of report: plain words, and few of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rendering import FOLDER, NAMES

from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.kinds import read_report
from rag_sourcebias.source.page import SkewReport

JARGON = re.compile(
    r"NDCG|MAP@|\bAUC\b|Relative Δ|centred|permut|regress|bootstrap|p-value|\bp [<=]|adjusted|"
    r"interval|signific|Spearman|Friedman|Holm|correlat|standard deviation|cosine similarity|PPI|"
    r"conformal|hypothes|null\b",
    re.IGNORECASE,
)


def said(name: str) -> str:
    """Return what a first screen says, names of users' data left out."""
    first = read_report(FOLDER / f"{name}.json.gz").page().first
    rows = "\n".join(f"{row.name} {row.text} {row.parts}" for row in first.rows)
    return "\n".join((*first.lines(), str(first.caption), str(first.next), rows))


@pytest.mark.parametrize("name", NAMES)
def test_a_first_screen_needs_no_statistics(name: str) -> None:
    assert JARGON.findall(said(name).replace("cosine", "")) == []


def test_jargon_is_seen() -> None:
    report = read_report(FOLDER / "judged-answers.json.gz")
    assert JARGON.search(" ".join(map(str, report.page().sections)))
    for text in ("p < 0.001", "NDCG@5", "95% interval", "bootstrapped", "a permutation test"):
        assert JARGON.search(text), text


def with_code(code: SkewCode) -> SkewReport:
    """Return a report of one system with another verdict."""
    report = read_report(FOLDER / "skew-evidence.json.gz")
    assert isinstance(report, SkewReport)
    system = report.systems[0]
    verdict = replace(system.verdicts[0], code=code, n_needed=400)
    return replace(report, systems=(replace(system, verdicts=(verdict,)),))


def test_the_verdict_says_what_its_code_says() -> None:
    told = {code: str(with_code(code).page().first.verdict) for code in SkewCode}
    assert "favours human text" in told[SkewCode.FAVOURS_BASELINE]
    assert "favours LLM text" in told[SkewCode.FAVOURS_OTHER]
    assert "alike" in told[SkewCode.ALIKE]
    assert told[SkewCode.CANNOT_TELL] == (
        "Cannot tell whether bm25 favours either: 160 queries are too few; about 400 are needed."
    )
    assert told[SkewCode.REFUSED].startswith("No verdict")
    assert not re.search(
        r"alike|no effect|no bias|does not favour|even-handed", told[SkewCode.CANNOT_TELL]
    )


def test_the_count_is_that_of_the_pairs() -> None:
    report = read_report(FOLDER / "skew-evidence.json.gz")
    assert isinstance(report, SkewReport)
    twin = report.systems[0].twins[0]
    ahead, ties = int((twin.other_above < 0.5).sum()), int((twin.other_above == 0.5).sum())
    answer = report.page().first.answer
    assert str(answer) == (
        f"In {ahead} of {twin.n_pairs} pairs, bm25 ranks the human version above the LLM version "
        f"({ties} ties)."
    )
    turned = replace(twin, other_above=1 - twin.other_above)
    system = replace(report.systems[0], twins=(turned,))
    other = replace(report, systems=(system,)).page().first
    assert f"In {ahead} of {twin.n_pairs} pairs, bm25 ranks the LLM version" in str(other.answer)
    assert any("the other way than the count" in str(doubt) for doubt in other.doubts)
