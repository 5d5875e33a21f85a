from __future__ import annotations

import pytest

from rag_sourcebias.measure.texts import language_of
from rag_sourcebias.pairs.checks import (
    copied_share,
    is_refusal,
    kept_to_the_end,
    leftover,
    repeated_share,
    stops_open,
    units,
)
from rag_sourcebias.pairs.numbers import (
    CapitalCounts,
    compare_names,
    compare_numbers,
    numbers_of,
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1,000 people", "1000 people"),
        ("1\u202f000 people", "1,000 people"),
        ("1.5 million copies", "1,500,000 copies"),
        ("a fine of $101M", "a fine of $101 million"),
        ("$23.5MM", "$23.5 million"),
        ("5% of sales", "5 percent of sales"),
        ("50 per cent", "50 %"),
        ("RMB469,800", "RMB 469,800"),
        ("on December 13, 2023", "on 13 Dec 2023"),
        ("on 2023-12-13", "December 13, 2023"),
        ("the 26th", "the 26"),
        ("630 km", "630 kilometres"),
        ("21 people", "twenty-one people"),
        ("3 million", "three million"),
        ("12 eggs", "a dozen eggs"),
        ("10 years", "a decade"),
        ("20+ million", "over 20 million"),
        ("1.50 m", "1.5 m"),
        ("1.000.000", "1,000,000"),
        ("widely read[6]", "widely read"),
        ("see https://example.org/a?t=328 now", "see the link now"),
        ("three parts", "1. One\n2. Two\n3. Three"),
        ("the MI300X", "the chip"),
    ],
)
def test_the_same_numbers_in_other_words(first: str, second: str) -> None:
    assert compare_numbers(first, second)[1:] == ((), ())


@pytest.mark.parametrize(
    ("first", "second", "missing", "added"),
    [
        ("it cost 5 euros in 2019", "it cost 5 euros", ("2019",), ()),
        ("range of 630 km", "range of 630 miles", ("630 km",), ("630 miles",)),
        ("up 5%", "up 6%", ("5%",), ("6%",)),
        ("in April 2019", "in 2019", ("April",), ()),
        ("a 1.5 million fine", "a 1.5 billion fine", ("1.5 million",), ("1.5 billion",)),
        ("$5m", "$5", ("$5m",), ("$5",)),
        ("one of the best", "1 of the 10 best", (), ("10",)),
    ],
)
def test_numbers_that_changed(first: str, second: str, missing: tuple, added: tuple) -> None:
    assert compare_numbers(first, second)[1:] == (missing, added)


def test_numbers_are_read_with_their_units() -> None:
    read = [(n.value, n.unit) for n in numbers_of("5230 x 1800mm, −5 °C, £5m, 5 m, 3D, 7th, SU7")]
    assert read == [
        ("5230", ""), ("1800", "mm"), ("5", "°C"), ("5000000", "£"), ("5", "m"), ("3", ""),
        ("7", ""),
    ]  # fmt: skip


def names(original: str, rewrite: str, *others: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    counts = CapitalCounts([original, rewrite, *others])
    return compare_names(original, rewrite, counts)[1:]


def test_names_lost_and_swapped() -> None:
    original = "The robot was built by Boston Dynamics near Waltham."
    assert names(original, "The robot was built by boston dynamics in Waltham.") == ((), ())
    assert names(original, "The robot was built by Boston Dynamics.") == (("Waltham",), ())
    lost, added = names(original, "The robot was built by Unitree Labs near Waltham.")
    assert lost == ("Boston", "Dynamics")
    assert added == ("Unitree", "Labs")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("He is from England.", "He is an English man."),
        ("He met Chinese guests.", "He met guests from China."),
        ("Sold by the European Union.", "Sold by the EU."),
        ("It was made with OpenAI's GPUs.", "It was made with a GPU of OpenAI."),
        ("Seen in Türkiye.", "Seen in Turkiye."),
        ("Seen on Tik Tok.", "Seen on TikTok."),
    ],
)
def test_the_same_name_in_another_form(first: str, second: str) -> None:
    assert names(first, second)[0] == ()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat sat on the mat and it was not the only one that did so.", "en"),
        ("Die Katze saß auf der Matte und sie war nicht die einzige, die das tat.", "de"),
        ("Le chat était sur le tapis et il ne voulait pas se lever pour les enfants.", "fr"),
        ("El gato estaba en la alfombra y no quería levantarse por los niños de la casa.", "es"),
        ("Кот сидел на ковре и не хотел вставать, потому что он был очень старый.", "ru"),
        ("猫坐在垫子上，它不想起来。", "zh"),
        ("猫はマットの上に座っていて、起きたくなかった。", "ja"),
        ("고양이는 매트 위에 앉아 있었다.", "ko"),
        ("كان القط جالسا على السجادة", "Arabic"),
        ("Sony WH-1000XM5 Bluetooth", ""),
        ("12 34 !!", ""),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert language_of(text, units(text)) == language


def test_copies_and_repetition() -> None:
    words = [f"w{i}" for i in range(50)]
    assert copied_share(words, words) == 1
    changed = [*words[:20], "other", *words[21:]]
    assert copied_share(words, changed) == pytest.approx(41 / 46)  # five runs hold the change
    assert copied_share(words, words[::-1]) == 0
    assert copied_share(["a", "b"], ["a", "b"]) == 1
    assert copied_share(["a", "b"], []) == 0
    assert repeated_share(words) == 0
    assert repeated_share(words[:5] * 4) == pytest.approx(1 - 5 / 17)
    assert units("Die Katze, 猫坐 1") == ["die", "katze", "猫", "坐", "1"]


def test_refusals_and_what_stands_around_a_text() -> None:
    original = "The mayor said the bridge is closed."
    assert is_refusal(original, "I'm sorry, but I can't assist with that request.")
    assert not is_refusal(original, "I can't swim, said the mayor, whose bridge is closed.")
    assert "here" in leftover(original, "Sure, here's a rewrite of the text:\n\nThe bridge shut.")
    assert leftover(original, "The bridge shut.\nI hope this helps!") == "I hope this helps!"
    assert leftover(original, "[INST] The bridge shut.") == "[INST]"
    assert leftover(original, "The bridge shut.") == ""
    assert leftover("We fix it. I hope this helps!", "It is fixed. I hope this helps!") == ""


def test_endings() -> None:
    original = "The bridge is closed. Traffic is slow."
    assert stops_open(original, "The bridge is closed. Traffic is")
    assert stops_open(original, "The bridge is closed,")
    assert not stops_open(original, 'The bridge is closed. "Traffic is slow."')
    assert not stops_open(original, "the bridge is closed. traffic so slow 😭 cant wait")
    assert not stops_open("A headline without a stop", "The bridge is closed. A headline too")
    first = [f"early{i}"[::-1] for i in range(30)]
    last = [f"final{i}"[::-1] for i in range(10)]
    assert kept_to_the_end(first + last, first + last) == 1
    assert kept_to_the_end(first + last, first) == 0
    assert kept_to_the_end(["short", "text"], []) == 1
