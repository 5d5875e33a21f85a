from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.measure.texts import jaccard, overlap
from rag_sourcebias.pairs.checks import check_pairs
from rag_sourcebias.pairs.data import BROKEN, PAIR_FLAGS, PairThresholds
from rag_sourcebias.pairs.findings import PairsCode, reasons_of


def sample() -> tuple[list[str], list[str], list[str]]:
    """Pairs of the bundled sample: ids, human texts, rewrites."""
    corpus = load_sample().corpus
    tags = corpus.tags
    sides: dict[str, dict[int, str]] = {}
    for text, source, pair in zip(corpus.texts, tags.source_codes, tags.pair_codes, strict=True):
        sides.setdefault(tags.sources[source], {})[int(pair)] = text
    human = sides.pop("human")
    (other,) = sides.values()
    rows = sorted(human)
    return [tags.pair_ids[i] for i in rows], [human[i] for i in rows], [other[i] for i in rows]


class BagOfWords:
    """An encoder whose vectors count long words, by a hash that does not change."""

    name = "bag"
    fingerprint = "bag-1"
    settings: Mapping[str, str] = {}

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 512), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in filter(lambda word: len(word) > 5, text.lower().split()):
                row[sum(map(ord, word)) * 31 % 512] += 1
        return rows

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError("both sides of a pair are documents")


def test_real_rewrites_pass_and_planted_faults_are_named() -> None:
    ids, human, other = sample()
    clean = check_pairs(human, other, pair_ids=ids)
    assert clean.broken.mean() < 0.05
    assert clean.flagged.mean() < 0.15
    spoiled = list(other)
    spoiled[0] = human[0]
    spoiled[1] = "I'm sorry, but I can't assist with that request."
    spoiled[2] = ""
    spoiled[3] = other[40]
    spoiled[4] = other[4][: len(other[4]) // 2].rsplit(" ", 1)[0]
    spoiled[5] = other[5] + " and so on and on it goes" * 30
    spoiled[6] = "Der Text ist nicht mehr da und es gibt auch keine andere Fassung von ihm."
    checks = check_pairs(human, spoiled, pair_ids=ids)
    flags = ("copy", "refusal", "empty", "unrelated", "truncated", "loop", "language")
    assert [bool(checks.flag(flag)[row]) for row, flag in enumerate(flags)] == [True] * 7
    why = [
        reasons_of(checks.pair(row), checks.thresholds, checks.by_chance)
        for row in range(len(checks))
    ]
    assert [reason.code for reason in why[0]] == [PairsCode.COPY]
    assert [reason.code for reason in why[2]] == [PairsCode.EMPTY]
    assert (
        PairsCode.UNLIKE_WORDS(overlap=checks.values["overlap"][3], chance=checks.by_chance)
        in (why[3])
    )
    assert PairsCode.LANGUAGE(original="en", written="de") in why[6]
    worst = checks.worst(len(ids))
    assert set(range(7)) <= set(worst[: int(checks.broken.sum())].tolist())
    assert len(worst) == checks.flagged.sum()
    assert checks.worst(3).tolist() == worst[:3].tolist()
    assert [len(reasons) for reasons in why] == checks.flags.sum(axis=1).tolist()


def test_values_are_those_of_each_pair() -> None:
    ids, human, other = sample()
    checks = check_pairs(human, other, pair_ids=ids)
    rows = range(0, len(ids), 20)
    values = checks.values
    assert [values["jaccard"][i] for i in rows] == [jaccard(human[i], other[i]) for i in rows]
    assert [values["overlap"][i] for i in rows] == [overlap(other[i], human[i]) for i in rows]
    assert np.isnan(values["cosine"]).all()
    summary = checks.summary()
    assert summary.n_pairs == len(ids) == len(checks)
    assert summary.n_flagged == checks.flagged.sum()
    assert summary.flagged == {name: int(checks.flag(name).sum()) for name in PAIR_FLAGS}
    assert "cosine" not in summary.quantiles
    assert summary.quantiles["overlap"][1] == np.median(values["overlap"])
    turned = check_pairs(human[::-1], other[::-1], pair_ids=ids[::-1])
    np.testing.assert_array_equal(turned.values["numbers_kept"], values["numbers_kept"][::-1])
    assert turned.facts["names_missing"] == checks.facts["names_missing"][::-1]


def test_an_encoder_tells_what_is_unrelated() -> None:
    ids, human, other = sample()
    mixed = [*other[:5], *other[6:10], other[5], *other[10:]]  # rows 5 to 9 are one off
    checks = check_pairs(human, mixed, pair_ids=ids, encoder=BagOfWords())
    vectors = BagOfWords().encode_documents([human[0], mixed[0]]).astype(float)
    first, second = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert checks.values["cosine"][0] == pytest.approx(first @ second)
    assert checks.by_chance is not None
    assert checks.flag("unrelated")[5:10].sum() >= 4
    assert np.delete(checks.flag("unrelated"), range(5, 10)).mean() < 0.05
    strict = PairThresholds(chance=None, cosine=0.999)
    assert (
        check_pairs(human, mixed, pair_ids=ids, encoder=BagOfWords(), thresholds=strict)
        .flag("unrelated")
        .all()
    )


def test_what_a_model_says_is_a_leftover_even_without_a_text() -> None:
    said = "Sure, here is the rewritten text:"
    checks = check_pairs(
        ["Water is wet."] * 2, [said, f"{said}\n\nWet is water."], pair_ids=["a", "b"]
    )
    assert checks.leftovers == (said, said)


def test_thresholds_switch_checks_off() -> None:
    off = PairThresholds(
        length_ratio=None, copied=None, repeated=None, end_kept=None, chance=None,
        numbers_kept=None, names_kept=None, language=False, writing=False,
    )  # fmt: skip
    checks = check_pairs(["In 2019 Rome fell."], ["x"], pair_ids=["a"], thresholds=off)
    assert not checks.flagged.any()
    assert checks.facts["numbers_missing"] == (("2019",),)
    ids, human, other = sample()
    longer = check_pairs(
        human, other, pair_ids=ids, thresholds=PairThresholds(length_ratio=(0.0, 0.5))
    )
    np.testing.assert_array_equal(longer.flag("length"), longer.values["length_ratio"] > 0.5)


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match=r"threshold copied=2 is outside \[0, 1\]"):
        PairThresholds(copied=2)
    with pytest.raises(DataError, match=r"threshold cosine=3 is outside \[-1, 1\]"):
        PairThresholds(cosine=3)
    with pytest.raises(DataError, match=r"length_ratio=\(2, 1\) must be two numbers from 0"):
        PairThresholds(length_ratio=(2, 1))
    assert set(BROKEN) < set(PAIR_FLAGS)


@pytest.mark.parametrize("filler", ["\n", " \n", "*", "a ", "1,", "-", "Ab ", "! "])
def test_degenerate_texts_come_to_an_end(filler: str) -> None:
    human = "The bridge over the river was closed on Monday. Traffic was slow."
    # what goes over the text again and again would not come to an end here
    checks = check_pairs([human], [f"The bridge. {filler * 40_000} end"], pair_ids=["a"])
    assert checks.flags.shape == (1, len(PAIR_FLAGS))
