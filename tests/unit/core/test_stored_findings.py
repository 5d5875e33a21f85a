"""Findings are stored as code and numbers, and what is damaged is refused in a sentence."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Code, Finding, Interval


class KeptCode(Code, home="kept"):
    """Sentences of this file."""

    CHANGED = "{system} changed by {delta:signed} in {n:query|queries}."
    REFUSED = "No figure for {system}: {why}."
    NOTHING = "Nothing changed at all."


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
    estimate=-1.5,
    lower=-2.0,
    upper=-1.0,
    confidence_level=0.95,
    method=KeptCode.NOTHING(),
    n_labeled=9,
    assumptions=(KeptCode.REFUSED(system="a", why="b"),),
)
CHANGED = KeptCode.CHANGED(
    system="kept.nothing", delta=DELTA, n=np.int64(9), severity="warning", cases=["q1"]
)
NESTED = KeptCode.REFUSED(system="bm25", why=KeptCode.REFUSED(system="dense", why=CHANGED))


def test_findings_are_read_as_they_were_written() -> None:
    report = Report(
        findings=(CHANGED, NESTED, KeptCode.NOTHING()), refusal=NESTED, method=KeptCode.REFUSED
    )
    plain = json.loads(json.dumps(report.to_dict()))
    read = Report.from_dict(plain)
    assert read == report
    assert [hash(found) for found in read.findings] == [hash(found) for found in report.findings]
    assert [str(found) for found in read.findings] == [str(found) for found in report.findings]
    assert plain["method"] == "kept.refused"
    assert plain["findings"][0]["code"] == "kept.changed"
    assert plain["findings"][2] == {"code": "kept.nothing"}
    assert "hanged by" not in json.dumps(plain)
    assert plain["refusal"].keys() == {"code", "numbers"}


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        ("kept.changed", "'kept.changed' is no finding"),
        ({"numbers": {}}, r"is no finding .* - at 'findings\[0\]'$"),
        ({"code": "kept.changed"}, r"is no finding \('system'\)"),
        ({"code": "kept.changed", "numbers": {"system": "bm25"}}, "'delta'"),
        ({"code": "kept.changed", "numbers": [1]}, "is no finding"),
        (
            {"code": "kept.changed", "numbers": {"system": "a", "n": 1, "delta": {"lower": 1}}},
            "missing required field",
        ),
        (
            {"code": "kept.changed", "numbers": {"system": "a", "n": "x", "delta": 1.0}},
            "is no finding",
        ),
        ({"code": "kept.unknown", "numbers": {}}, "another release"),
        ({"code": "away.changed", "numbers": {}}, "another release"),
        ({"code": "kept.refused", "numbers": {"system": "a", "why": {"code": 3}}}, "no finding"),
        (
            {"code": "kept.refused", "numbers": {"severity": "", "system": "a", "why": 1}},
            "severity",
        ),
    ],
)
def test_what_is_no_finding_is_refused(finding: object, why: str) -> None:
    with pytest.raises(DataError, match=why) as error:
        Report.from_dict({"findings": [finding]})
    assert "\n" not in str(error.value)


def test_a_code_of_another_home_is_refused() -> None:
    with pytest.raises(DataError, match=r"^Invalid enum value 'away\.moved' - at 'method'$"):
        Report.from_dict({"method": "away.moved"})


def test_codes_and_findings_are_copied_and_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(NESTED)) == NESTED
    assert copy.deepcopy(NESTED) == NESTED
    assert pickle.loads(pickle.dumps(KeptCode.CHANGED)) is KeptCode.CHANGED
    assert repr(KeptCode.NOTHING()) == "<kept.nothing: Nothing changed at all.>"


def test_findings_differ_by_code_numbers_severity_and_cases() -> None:
    one = KeptCode.REFUSED(system="s", why="w")
    others = (
        KeptCode.NOTHING(),
        KeptCode.REFUSED(system="t", why="w"),
        KeptCode.REFUSED(system="s", why="w", severity="warning"),
        KeptCode.REFUSED(system="s", why="w", cases=["q"]),
        str(one),
    )
    assert one == KeptCode.REFUSED(system="s", why="w")
    assert all(one != other for other in others)


def test_an_error_keeps_its_finding() -> None:
    error = InsufficientDataError(NESTED, n=3)
    assert (error.finding, str(error), error.n) == (NESTED, str(NESTED), 3)
    assert InsufficientDataError("too few").finding is None
