"""A verdict says in its sentence what points the other way by an interval that excludes 0."""

from __future__ import annotations

from dataclasses import replace

import pytest
from intervals import between

from rag_sourcebias import audit
from rag_sourcebias.source.findings import (
    ExposureShare,
    SettingSkew,
    SkewResults,
    SourceCode,
    comparisons,
    doubts,
    plain_verdict,
    verdict_sentences,
)


@pytest.fixture(scope="module")
def report() -> SkewResults:
    """A ranking that favours LLM text in nine queries of ten."""
    rows = {f"q{i}": [f"l{i}", f"h{i}"] if i % 10 else [f"h{i}", f"l{i}"] for i in range(40)}
    tags = {doc: {"h": "human", "l": "llm"}[doc[0]] for row in rows.values() for doc in row}
    return audit(rows, {"qrels": rows, "tags": tags}, cutoffs=(1,), browsing=("top-1", "top-2"))


def with_parts(report: SkewResults, **parts: object) -> SkewResults:
    return replace(report, systems=(replace(report.systems[0], **parts),))


def setting(lower: float, upper: float) -> dict[str, object]:
    found = between(lower, upper)
    strip = SettingSkew(other="llm", setting="k1=9, b=0", value=found.estimate, interval=found)
    return {"strip": (strip,)}


def shown(lower: float, upper: float, browsing: str = "top-2") -> dict[str, object]:
    found = between(lower, upper)
    share = 0.5 + found.estimate
    share_of = ExposureShare(
        source="llm", browsing=browsing, share=share, corpus_share=0.5, difference=found
    )
    less = ExposureShare(
        source="llm", browsing="top-1", share=0.4, corpus_share=0.5, difference=between(-0.2, -0.1)
    )
    return {"exposure": (less, share_of)}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (setting(3.0, 20.0), "k1=9, b=0"),
        (setting(-1.0, 20.0), ""),  # reaches 0
        (setting(-20.0, -3.0), ""),  # the same way
        (shown(-0.2, -0.1), "exposure on top-2"),
        (shown(-0.2, 0.1), ""),  # of what is seen the most counts, not the first rank
        (setting(3.0, 20.0) | shown(-0.2, -0.1), "k1=9, b=0, exposure on top-2"),
    ],
)
def test_what_excludes_0_the_other_way_is_named(
    report: SkewResults, parts: dict[str, object], expected: str
) -> None:
    changed = with_parts(report, **parts)
    (comparison,) = comparisons(changed)
    assert ", ".join(comparison.contrary) == expected
    plain = plain_verdict(changed, comparison)
    told = next(iter(verdict_sentences(changed, comparison)))
    if expected:
        assert (plain.code, told.code) == (
            SourceCode.PLAIN_FAVOURS_OTHER_BUT,
            SourceCode.FAVOURS_OTHER_BUT,
        )
        assert f"other way: {expected}" in str(plain)
        assert str(told).endswith(f"exclude 0: {expected}.")
    else:
        assert (plain.code, told.code) == (
            SourceCode.PLAIN_FAVOURS_OTHER,
            SourceCode.FAVOURS_OTHER,
        )


def test_of_several_comparisons_it_is_counted(report: SkewResults) -> None:
    changed = with_parts(report, **setting(3.0, 20.0))
    two = replace(changed, systems=(*changed.systems, replace(report.systems[0], name="other")))
    for each, expected in ((two, [(1, 2)]), (changed, [])):
        found = [
            (one.numbers["n"], one.numbers["n_all"])
            for one in doubts(each, comparisons(each))
            if one.code is SourceCode.CONTRARY
        ]
        assert found == expected
