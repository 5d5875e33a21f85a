"""Sentences of codes with numbers at their edges, and what is wrong with a wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter
from typing import Any

from rag_sourcebias.core.finding import Code, Finding, Interval

NEGATIVE = Interval(
    estimate=-12.5, lower=-20.0, upper=-5.0, confidence_level=0.95, method="delta", n_labeled=30
)
EDGES: dict[str, tuple[Any, ...]] = {
    "|": (0, 1, 2, 1_234),
    "roughly": (7, 99, 1_701),
    "level": (0.95, 0.995),
    "p": (0.0, 0.0499, 0.05, 1.0),
    "p=": (0.0, 0.0499, 0.05, 1.0),
    "short": ("bm25", "x" * 90),
    "": (0, 1, 2, 1_234),
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


def edges(name: str, spec: str) -> tuple[Any, ...]:
    """Return numbers at the edges of what a specification writes."""
    if "|" in spec:
        return EDGES["|"]
    if name in ("n_needed", "n_least"):
        return EDGES["roughly"]
    if not spec and not re.fullmatch(r"n|n_\w+|cutoff|rank|margin", name):
        return NAMES
    return EDGES.get(spec, NUMBERS)


def findings(code: Code) -> Iterator[Finding]:
    """Yield a code with each of its numbers at each edge, the others as they usually are."""
    specs = specifications(code)
    usual = {name: edges(name, spec)[-2] for name, spec in specs.items()}
    for name, spec in specs.items():
        for value in edges(name, spec):
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
    "not a sentence": r"None|nan|[{}]|  |\s[.,;:]|\.\.| $|^ ",
    "a hyphen for a minus": r"(?<![\w)])-\d",
    "a plural of one": r"(?<![\d,.])1 (queries|pairs|tests|judgments|documents|comparisons|ties)\b",
    "a singular of many": r"(?<![\d.])(0|2|1,234) (query|pair|test|document|comparison|tie)\b",
    "a verb of one": r"(?<![\d,.])1 \w+ (are|have|were)\b",
}
