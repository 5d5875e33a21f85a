"""Numbers and months that are spelled out, in English."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["MONTH_NUMBERS", "months", "spelled_numbers"]

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {
    **{word: value for value, word in enumerate(_ONES.split())},
    **{word: value for value, word in enumerate(_ORDINALS.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    **{word[:-1] + "ieth": 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    "once": 1, "single": 1, "twice": 2, "double": 2, "both": 2, "pair": 2, "couple": 2,
    "triple": 3, "dozen": 12, "a": 1, "an": 1, "decade": 10, "century": 100,
}  # fmt: skip
_LARGE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_LARGE |= {f"{word}th": value for word, value in _LARGE.items()}
_WORD = re.compile(r"[a-z]+|[.;:!?]")

_MONTHS = "january february march april may june july august september october november december"
#: Names of months and their short forms, with the number of the month from 1.
MONTH_NUMBERS = {form: i for i, m in enumerate(_MONTHS.split(), start=1) for form in (m, m[:3])} | {
    "sept": 9
}
_ALONE = frozenset(month for month in MONTH_NUMBERS if len(month) > 3) - {"march"}
_MONTH = re.compile("|".join(sorted(MONTH_NUMBERS, key=len, reverse=True)))
_DAY_BEFORE = re.compile(r"\d(?:st|nd|rd|th)?(?: of)?\s\Z")
_DAY_AFTER = re.compile(r"\.?,?\s\d")
_LOOK_BACK = 6


def months(text: str) -> Iterator[tuple[str, int]]:
    """Names of months as written, with their number from 1.

    Short forms, "may" and "march" count only beside a number; before them it has to be a capital.
    """
    for match in _MONTH.finditer(text.lower()):
        start, end, name = match.start(), match.end(), match.group()
        written = text[start:end]
        if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
            continue
        before = text[max(start - _LOOK_BACK, 0) : start]
        dated = written[0].isupper() and _DAY_BEFORE.search(before)
        if name in _ALONE or dated or _DAY_AFTER.match(text, end):
            yield written, MONTH_NUMBERS[name]


def spelled_numbers(text: str) -> set[str]:
    """Values that words of a text could stand for, such as "21" and "3000000".

    Generous on purpose ("a" counts as 1): it excuses numbers written in digits elsewhere and
    never asks for any.
    """
    values, sum_, total = set(), 0, 0
    counting = False
    for word in _WORD.findall(text.lower()):
        small, large = _SMALL.get(word), _LARGE.get(word)
        if large is not None:
            total += max(sum_, 1) * large
            sum_ = 0
            values |= {str(total), str(large)}
        elif small is not None:
            # twenty + one is 21; one + twenty are two numbers
            continues = counting and sum_ >= 20 and sum_ % 10 == 0 and 0 < small < 10
            sum_ = sum_ + small if continues else small
            values |= {str(small), str(sum_), str(total + sum_)}
        elif word != "and" or not counting:
            sum_, total, counting = 0, 0, False
            continue
        counting = True
    return values
