"""Every sentence of a code: said once, and right with numbers at their edges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from rag_sourcebias.core.data import RunCode
from rag_sourcebias.core.finding import Code, Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.intake.belong import BelongCode
from rag_sourcebias.intake.tables import TableCode
from rag_sourcebias.measure.texts import CopyCode, DataCode
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.report.document import TextCode
from rag_sourcebias.report.legacy import LegacyCode
from rag_sourcebias.retrieval.findings import RetrievalCode
from rag_sourcebias.source.findings import SourceCode
from rag_sourcebias.source.shown import ShownCode

ROOT = Path(__file__).parents[3]
CODES: tuple[type[Code], ...] = (
    *(BelongCode, CopyCode, DataCode, InferCode, LegacyCode, PairsCode, RetrievalCode),
    *(RunCode, ShownCode, SourceCode, TableCode, TextCode),
)
EVERY = [code for codes in CODES for code in codes]
NEGATIVE = Interval(
    estimate=-12.5, lower=-20.0, upper=-5.0, confidence_level=0.95, method="delta", n_labeled=30
)
COUNTS = (0, 1, 2, 1_234)
EDGES: dict[str, tuple[Any, ...]] = {
    "roughly": (7, 99, 1_701),
    "g": (0.0, 0.999, 1_234.5),
    "level": (0.95, 0.995),
    "p": (0.0, 0.0499, 0.05, 1.0),
    "p=": (0.0, 0.0499, 0.05, 1.0),
    "short": ("bm25", "x" * 90),
    "": COUNTS,
}
#: Sentences of numbers that are never 0 or 1.
MANY = {
    InferCode.REWRITERS_SAMPLED,
    InferCode.REWRITERS_FIXED,
    InferCode.DOCUMENTS_VERIFIED,
    BelongCode.LEFT_OUT,
}
NAMES = ("human", "llm:gpt-4")
NUMBERS = (0.0, -12.5, 0.999, 1_234.5, None, NEGATIVE)
#: What these numbers look like, by their specification; others are only asked to be there.
WRITTEN = {
    ("", 1_234): "1,234",
    ("|", 1_234): "1,234",
    ("roughly", 1_701): "1,800",
    ("level", 0.995): "99.5%",
    ("p=", 0.0): "< 0.001",
    ("p=", 0.0499): "= 0.0499",
    ("signed", -12.5): "−12.5",
    ("signed", 1_234.5): "+1,234.5",
    ("signed", NEGATIVE): "−12.5 [−20.0, −5.0]",
    ("score", 0.999): "99.9",
    ("percent", 0.999): "99.9%",
    ("2", -12.5): "−12.50",
}


def specifications(code: Code) -> dict[str, str]:
    """Return how the template of a code writes each number that it names."""
    fields = Formatter().parse(code.template)
    return {name: spec or "" for _, name, spec, _ in fields if name is not None}


def edges(code: Code, name: str, spec: str) -> tuple[Any, ...]:
    """Return numbers at the edges of what a specification writes."""
    if code in MANY and not spec:
        return COUNTS[2:]
    if "|" in spec:
        return COUNTS
    if name in ("n_needed", "n_least"):
        return EDGES["roughly"]
    if not spec and not re.fullmatch(r"n|n_\w+|cutoff|rank|margin", name):
        return NAMES
    return EDGES.get(spec, NUMBERS)


def findings(code: Code) -> Iterator[Finding]:
    """Yield a code with each of its numbers at each edge, the others as they usually are."""
    specs = specifications(code)
    usual = {name: edges(code, name, spec)[-2] for name, spec in specs.items()}
    for name, spec in specs.items():
        for value in edges(code, name, spec):
            yield code(**{**usual, name: value})
    if not specs:
        yield code()


def faults(finding: Finding) -> list[str]:
    """Return what is wrong with a sentence."""
    text = str(finding)
    found = [what for what, pattern in _WRONG.items() if re.search(pattern, text)]
    for name, spec in specifications(finding.code).items():
        value = finding.numbers[name]
        form = "|" if "|" in spec else spec
        if not isinstance(value, str) and WRITTEN.get((form, value), "") not in text:
            found.append(f"{name} is not written as {WRITTEN[form, value]}")
        if isinstance(value, str) and value[:15] not in text:
            found.append(f"{name} is missing")
        if "|" in spec:
            singular, plural = spec.split("|")
            expected = f"{value:,} {singular if value == 1 else plural}"
            if expected not in text or singular == plural:
                found.append(f"{name} is not {expected!r}")
    return found


_WRONG = {
    "not a sentence": r"None|\bnan\b|[{}]|  |\s[.,;:]|\.\.| $|^ ",
    "a hyphen for a minus": r"(?<![\w)])-\d",
    "a plural of one": r"(?<![\d,.])1 (queries|pairs|tests|judgments|documents|comparisons|ties)\b",
    "a singular of many": r"(?<![\d.])(0|2|1,234) (query|pair|test|document|comparison|tie)\b",
    "a verb of one": r"(?<![\d,.])(?<!of )1 \w+ (are|have|were)\b",
}


@pytest.mark.parametrize("code", EVERY, ids=str)
def test_a_sentence_is_right_at_the_edges(code: Code) -> None:
    for finding in findings(code):
        assert faults(finding) == [], str(finding)


@pytest.mark.parametrize("code", EVERY, ids=str)
def test_a_number_that_is_missing_is_an_error(code: Code) -> None:
    finding = next(findings(code))
    for name in specifications(code):
        numbers = {key: value for key, value in finding.numbers.items() if key != name}
        with pytest.raises(KeyError, match=name):
            code(**numbers)


class WrongCode(Code, home="wrong"):
    """Templates as they must not be."""

    PLURAL = "{n} queries are few."
    SINGULAR = "{n} query is few."
    SAME = "{n:query|query} of the run."
    HYPHEN = "The change is -{delta:2}."
    BLANKS = "The change  is {delta:signed}."
    UNSIGNED = "The interval is {delta:ends:signed}, from [−12.5, 3.0]."
    BRACE = "{{n}} queries."
    END = "{n:query|queries} .."


@pytest.mark.parametrize("code", WrongCode, ids=lambda code: code.name)
def test_a_wrong_template_is_found(code: WrongCode) -> None:
    if code is WrongCode.UNSIGNED:
        assert str(code(delta=NEGATIVE)) == "The interval is [−20.0, −5.0], from [−12.5, 3.0]."
        return
    assert any(faults(finding) for finding in findings(code))


@pytest.mark.parametrize("codes", CODES, ids=lambda codes: codes.__name__)
def test_no_two_codes_say_the_same(codes: type[Code]) -> None:
    templates = [code.template for code in codes.__members__.values()]
    assert len(set(templates)) == len(templates) == len(codes)


# codes of pairs and of sources are also looked up by the name of a flag or a verdict
BY_NAME = (PairsCode, SourceCode)


@pytest.mark.parametrize("codes", [codes for codes in CODES if codes not in BY_NAME])
def test_every_code_is_used(codes: type[Code]) -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8")
        for root in ("src", "integrations")
        for file in sorted((ROOT / root).rglob("*.py"))
    )
    unused = [code.name for code in codes if f"{codes.__name__}.{code.name}" not in text]
    assert unused == []
