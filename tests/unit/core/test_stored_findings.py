"""Findings are stored as code and numbers, and what is damaged is refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Code, Finding, Interval


class KeptCode(Code, home="kept"):
    """Sentences of this file."""

    CHANGED = "{system} changed by {delta:signed} in {n:query|queries}."
    REFUSED = "No figure for {system}: {why}."


class AwayCode(Code, home="away"):
    """Sentences of another capability."""

    MOVED = "It moved."


@dataclass(frozen=True, kw_only=True)
class Report(Stored):
    """A report with findings, and with a code of its own."""

    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    method: KeptCode = field(default=KeptCode.CHANGED)


DELTA = Interval(
    estimate=-1.5, lower=-2.0, upper=-1.0, confidence_level=0.95, method="delta", n_labeled=9
)
CHANGED = KeptCode.CHANGED(system="bm25", delta=DELTA, n=9, severity="warning", cases=["q1"])


def test_findings_are_read_as_they_were_written() -> None:
    nested = KeptCode.REFUSED(system="bm25", why=CHANGED)
    report = Report(findings=(CHANGED, nested), refusal=nested, method=KeptCode.REFUSED)
    plain = json.loads(json.dumps(report.to_dict()))
    assert Report.from_dict(plain) == report
    assert plain["method"] == "kept.refused"
    assert plain["findings"][0]["code"] == "kept.changed"
    assert "changed by" not in json.dumps(plain)
    assert plain["refusal"].keys() == {"code", "numbers"}


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        ("kept.changed", "holds no finding"),
        ({"numbers": {}}, "holds no finding"),
        ({"code": "kept.changed"}, "holds no finding"),
        ({"code": "kept.changed", "numbers": {"system": "bm25"}}, "'delta'"),
        ({"code": "kept.unknown", "numbers": {}}, "another release"),
        ({"code": "away.changed", "numbers": {}}, "another release"),
        ({"code": "kept.refused", "numbers": {"system": "a", "why": {"code": 3}}}, "no finding"),
        ({"code": "kept.refused", "numbers": {"system": "a", "why": [1]}}, "holds no finding"),
        (
            {"code": "kept.refused", "numbers": {"severity": "", "system": "a", "why": 1}},
            "severity",
        ),
    ],
)
def test_what_is_no_finding_is_refused(finding: object, why: str) -> None:
    with pytest.raises(DataError, match=why):
        Report.from_dict({"findings": [finding]})


def test_a_code_of_another_home_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"'away.moved' is none of \['kept.changed', 'kept.refused'"
    ):
        Report.from_dict({"method": "away.moved"})
