"""Sentences about pairs: the reason of a flag."""

from __future__ import annotations

from rag_sourcebias.core.finding import Finding
from rag_sourcebias.pairs.data import CheckedPair, PairThresholds
from rag_sourcebias.pairs.findings import PairsCode, reasons_of


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
