"""Each sentence about pairs: worded once, with numbers at their edges."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.pairs.data import CheckedPair, PairThresholds
from rag_sourcebias.pairs.findings import PairsCode, reasons_of

EDGES = (0, 1, 2, 12_345, -1, 0.125, -0.004, None)
#: Nouns that follow a count, as templates give them.
PLURALS = {
    plural
    for code in PairsCode
    for _, _, spec, _ in Formatter().parse(code.template)
    if spec and "|" in spec
    for plural in spec.split("|")[1:]
}


class WrongCode(Code, home="wrong in a test"):
    """Templates that the rules below reject."""

    WRONG_PLURAL = "{n} pairs"
    WRONG_SINGULAR = "{n} pair"
    OWN_FORMAT = "{n:.1f}"
    UNKNOWN = "{n:percents}"
    BRACE = "{{n}}"


def fields_of(code: Code) -> dict[str, str]:
    return {
        name: spec or ""
        for _, name, spec, _ in Formatter().parse(code.template)
        if name is not None
    }


def problems(code: Code, value: float | None) -> list[str]:
    """Return what is wrong with a sentence in which every number is the same."""
    fields = fields_of(code)
    if isinstance(value, float) and any("|" in spec for spec in fields.values()):
        return []  # counts are whole
    try:
        text = str(code(**dict.fromkeys(fields, value)))
    except (KeyError, TypeError, ValueError) as error:
        return [repr(error)]
    found = re.findall(r"[{}]|None|nan|(?<![\w-])-\d|^\s|\s$|  ", text)
    many = "|".join(map(re.escape, PLURALS))
    single = "|".join(re.escape(noun.removesuffix("s")) for noun in PLURALS if noun.endswith("s"))
    found += re.findall(rf"(?<![\d,.−])1 (?:{many})\b", text)
    found += re.findall(rf"(?:\b0|2|12,345) (?:{single})\b", text)
    return found


@pytest.mark.parametrize("code", PairsCode)
def test_a_sentence_with_any_number(code: PairsCode) -> None:
    assert {value: found for value in EDGES if (found := problems(code, value))} == {}


@pytest.mark.parametrize("code", WrongCode)
def test_a_wrong_template_is_rejected(code: WrongCode) -> None:
    assert any(problems(code, value) for value in EDGES)


@pytest.mark.parametrize("code", [code for code in PairsCode if fields_of(code)])
def test_a_missing_number_is_an_error(code: PairsCode) -> None:
    for left_out in fields_of(code):
        numbers = {name: 1 for name in fields_of(code) if name != left_out}
        with pytest.raises(KeyError, match=left_out):
            code(**numbers)


def test_every_sentence_is_worded_once() -> None:
    assert len({code.template for code in PairsCode}) == len(list(PairsCode))


def test_numbers_are_read_as_they_are() -> None:
    told = PairsCode.BROKEN(broken=1, pairs=1_200, share=1 / 1_200)
    assert str(told) == "Of 1,200 pairs, 1 is broken (0.1%): no rewrite of the whole text."
    assert str(PairsCode.COSINE(cosine=-0.25, threshold=0.5)) == (
        "cosine −0.25, below the threshold of 0.50"
    )
    step = PairsCode.NEXT_AUDIT(data="`x` y")
    assert step.command == "rag-sourcebias audit source `x` y --retriever bm25"


def reason(flag: str, thresholds: PairThresholds | None = None, **found: object) -> Finding:
    chance = found.pop("chance", 0.5)
    pair = CheckedPair(pair_id="d", flags=(flag,), **{"values": {}, **found})  # type: ignore[arg-type]
    (told,) = reasons_of(pair, thresholds or PairThresholds(), chance)  # type: ignore[arg-type]
    return told


def test_a_flag_has_the_reason_that_its_values_give() -> None:
    assert reason("truncated", values={"end_kept": 0.1}).code is PairsCode.CUT_OFF
    assert reason("truncated", values={"end_kept": 0.9}).code is PairsCode.OPEN_END
    off = PairThresholds(end_kept=None)
    assert reason("truncated", off, values={"end_kept": 0.1}).code is PairsCode.OPEN_END
    assert reason("unrelated", values={"overlap": 0.2}).code is PairsCode.UNLIKE_WORDS
    both = {"overlap": 0.2, "cosine": 0.4}
    assert reason("unrelated", values=both).code is PairsCode.UNLIKE_VECTORS
    low = PairThresholds(cosine=0.7)
    assert reason("unrelated", low, values={"cosine": 0.6}).code is PairsCode.COSINE
    assert reason("unrelated", low, values={"cosine": 0.4}, chance=None).code is PairsCode.COSINE
    assert reason("numbers", numbers_missing=("1", "2"), numbers_added=("3",)) == (
        PairsCode.NUMBERS(missing=2, added=1)
    )
    assert reason("names", names_added=("A", "B")) == PairsCode.NAMES(missing=0, added=2)
