"""From what a judge wrote to a grade or a distribution over grades.

Forgiving about form (Markdown, quotes, a word before the grade, per cent), strict about meaning:
an answer that names no grade, several grades, a grade outside the scale, or probabilities that do
not add up is not guessed at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["is_refusal", "read_distribution", "read_grade"]


_REFUSAL = re.compile(
    r"^\W*(i\s*['’]?\s*a?m (really |very |so )?(sorry|unable|not able)|sorry\b"
    r"|(unfortunately,? )?i "
    r"(can\s?not|can\s?['’]?t|could not|couldn['’]?t|won['’]?t|will not|must decline|do not feel)"
    r"|as an? (ai|artificial|large|language)\b|i apologi[sz]e)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\W*(?:(?:the|final|my|overall|relevance|correctness|answer|grade|score|rating|label|"
    r"assessment|judg[e]?ment|is|of|would be|passage|document)\b[\s:=*_\"'`-]*)*",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(-|–|/|to\b|or\b|and\b|out of\b)\s*[\[(]?\w", re.IGNORECASE)
_TOLERANCE = 0.05  # rounding to one decimal of four numbers
_PAIR = re.compile(r"[\"'\[(]*([^\s\"'\[\](){},:=]+)[\"'\])]*\s*[:=]\s*[\"']?([-+.\deE]+\s*%?)")


def is_refusal(text: str) -> bool:
    """Whether a text begins as models do that decline.

    Examples
    --------
    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("2")
    (True, False)
    """
    return _REFUSAL.search(text) is not None


def read_grade(text: str, labels: Sequence[str]) -> int | None:
    """Return the index of the label that a text names, None if it names none or several.

    Examples
    --------
    >>> labels = ("0", "1", "2", "3")
    >>> [read_grade(text, labels) for text in ("**Relevance: [2]**", "3, as 1 is wrong", "2.5")]
    [2, 3, None]
    """
    cores = [_core(label) for label in labels]
    # a grade that stands first is the answer; what follows may mention others
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    first = re.compile(
        rf"[\W_]*?({_alternatives(cores)})(?=$|[\])*_\"'`.,;:!]*(\s|$))", re.IGNORECASE
    ).match(text, begin)
    if first and not text[: first.start(1)].endswith(("-", "–", ".", "/")):
        after = text[first.end() :].lstrip()
        if not _RANGE.match(after):
            return cores.index(first[1].casefold())
    pattern = rf"(?<![\w.\-/–])({_alternatives(cores)})(?![\w/%–]|-\w|\.\d)"
    named = {match.casefold() for match in re.findall(pattern, text, re.I)}
    if len(named) != 1 or _has_other_number(text, cores):
        return None
    return cores.index(named.pop())


def read_distribution(text: str, labels: Sequence[str]) -> FloatArray | None:
    """Return the probabilities that a text gives to the labels, None if it cannot be read.

    Accepted are a JSON object, or lines like ``2: 40 %``, with labels as keys and probabilities
    or percentages that sum to 1 (within 0.05; then rescaled) as values; labels that are left out
    have probability 0. A text that names exactly one grade counts as certainty.

    Returns
    -------
    float64 array of shape (len(labels),) or None
    """
    cores = [_core(label) for label in labels]
    pairs = _json_pairs(text)
    if pairs is None:
        pairs = dict(_PAIR.findall(text)) if len(_PAIR.findall(text)) > 1 else None
    if pairs is None:
        grade = read_grade(text, labels)
        return None if grade is None else np.eye(len(labels))[grade]
    probs = np.zeros(len(labels))
    seen: set[int] = set()
    for key, value in pairs.items():
        core, number = _core(str(key)), _probability(value)
        if core not in cores or number is None or cores.index(core) in seen:
            return None
        seen.add(cores.index(core))
        probs[cores.index(core)] = number
    total = float(probs.sum())
    if abs(total / 100 - 1) <= _TOLERANCE:
        probs, total = probs / 100, total / 100
    return probs / total if abs(total - 1) <= _TOLERANCE else None


def _json_pairs(text: str) -> Mapping[str, Any] | None:
    """Return the first JSON object of a text, None if there is none."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            found, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        inner = next(iter(found.values()), None) if len(found) == 1 else None
        return inner if isinstance(inner, dict) else dict(found)
    return None


def _probability(value: Any) -> float | None:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value >= 0 and math.isfinite(value) else None


def _core(label: str) -> str:
    return label.strip(" \t\n[]()\"'").casefold()


def _alternatives(cores: Sequence[str]) -> str:
    return "|".join(re.escape(core) for core in sorted(cores, key=len, reverse=True))


def _has_other_number(text: str, cores: Sequence[str]) -> bool:
    """Whether labels are numbers and the text holds a number that is none of them."""
    if not all(core.isdigit() for core in cores):
        return False
    return any(number not in cores for number in re.findall(r"-?\d+(?:\.\d+)?", text))
