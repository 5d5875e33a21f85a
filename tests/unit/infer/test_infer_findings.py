"""Each wording of inference is said once, and right with numbers at their edges."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from rag_sourcebias.infer.findings import InferCode

ROOT = Path(__file__).parents[3]
COUNTS = (0, 1, 2, 12_345)
USUAL = {
    "method": InferCode.REGRESSION(),
    "statistic": "Spearman",
    "units": "clusters of queries",
    "side": "before",
    "level": 0.95,
    "n_needed": 20,
}
SHARES = ("power", "youden", "reach", "z", "least")
WRONG = (
    r"[{}]|None|\bnan\b|(?<![\w-])-\d|^\s|\s$|  "
    r"|\b1 (queries|observations|pairs|texts|times|items)\b"
)


def fields(code: InferCode) -> list[tuple[str, str]]:
    parsed = Formatter().parse(code.template)
    return [(name, spec or "") for _, name, spec, _ in parsed if name is not None]


@pytest.mark.parametrize("code", InferCode, ids=lambda code: code.name)
def test_a_wording_is_right_at_the_edges(code: InferCode) -> None:
    for count in COUNTS:
        for share in (0.0, -0.4567, 1.0, 1_234.5):
            numbers = {name: share if name in SHARES else count for name, _ in fields(code)}
            numbers |= {name: value for name, value in USUAL.items() if name in numbers}
            text = str(code(**numbers))
            assert re.search(WRONG, text) is None, text


@pytest.mark.parametrize("code", InferCode, ids=lambda code: code.name)
def test_a_number_that_is_missing_is_an_error(code: InferCode) -> None:
    for name, _ in fields(code):
        rest = {other: USUAL.get(other, 1) for other, _ in fields(code) if other != name}
        with pytest.raises(KeyError, match=name):
            code(**rest)


def test_no_two_codes_say_the_same_and_each_is_used() -> None:
    assert len(InferCode.__members__) == len({code.template for code in InferCode})
    text = "\n".join(
        file.read_text(encoding="utf-8")
        for root in ("src", "integrations")
        for file in sorted((ROOT / root).rglob("*.py"))
    )
    assert [code.name for code in InferCode if f"InferCode.{code.name}" not in text] == []
