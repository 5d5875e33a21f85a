"""Which numbers of a text stand in its rewrite, whatever way they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from rag_sourcebias.corpora.check_number_words import months, spelled_numbers

__all__ = ["Number", "compare_numbers", "numbers_of"]


class Number(NamedTuple):
    """A number as it was written, and what it says.

    Parameters
    ----------
    text : str
        As written, such as "1,000 km".
    value : str
        Decimal without grouping, sign and trailing zeros, such as "1000".
    unit : str
        Out of a fixed list ("%", "km", "$", "month", …), or empty.
    """

    text: str
    value: str
    unit: str


_SCALES = {
    "thousand": 3, "k": 3, "million": 6, "mn": 6, "mln": 6, "billion": 9, "bn": 9,
    "trillion": 12, "tn": 12,
}  # fmt: skip
# Each unit with the ways it is written. "M", "B" and "T" alone are scales (see _scale).
_WRITTEN = {
    "%": "%|percent|per cent|percentage points|pct",
    "$": "$|usd|us$|dollar|dollars", "€": "€|eur|euro|euros", "£": "£|gbp|pound sterling",
    "¥": "¥|jpy|yen|rmb|cny|yuan", "₹": "₹|inr|rupees",
    "km": "km|kilometer|kilometers|kilometre|kilometres", "cm": "cm|centimeters|centimetres",
    "mm": "mm|millimeters|millimetres", "m": "m|meter|meters|metre|metres",
    "mi": "mi|mile|miles", "ft": "ft|foot|feet", "in": "inch|inches",
    "kg": "kg|kilogram|kilograms", "mg": "mg|milligrams", "g": "g|gram|grams",
    "lb": "lb|lbs|pound|pounds", "t": "tonne|tonnes", "l": "l|liter|liters|litre|litres",
    "ml": "ml|milliliters|millilitres", "km/h": "km/h|kph|kmh", "mph": "mph|miles per hour",
    "°C": "°c|degrees celsius", "°F": "°f|degrees fahrenheit",
    "kb": "kb", "mb": "mb|megabytes", "gb": "gb|gigabytes", "tb": "tb|terabytes",
    "hz": "hz|hertz", "mhz": "mhz|megahertz", "ghz": "ghz|gigahertz",
    "w": "w|watt|watts", "kw": "kw|kilowatts", "mw": "mw|megawatts", "kwh": "kwh",
    "hp": "hp|bhp|horsepower",
    "v": "v|volts", "mah": "mah", "s": "sec|second|seconds", "min": "min|mins|minute|minutes",
    "h": "hr|hrs|hour|hours", "day": "day|days", "week": "week|weeks", "mo": "months",
    "year": "year|years",
}  # fmt: skip
_UNITS = {written: unit for unit, forms in _WRITTEN.items() for written in forms.split("|")}
_LONGEST_FIRST = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_GROUP = "[,\u00a0\u2009\u202f'’]"
_MONEY = re.compile(r"(?:US\$|[$€£¥₹]|\b(?:RMB|USD|EUR|GBP|CNY|JPY|INR))(?=\s?\Z)")
_LOOK_BACK = 5
# A digit is looked for first: all that can precede it is looked at afterwards, which is faster.
_NUMBER = re.compile(
    rf"""(?<!\d)(?P<digits> \d{{1,3}}(?:{_GROUP}\d{{3}})+(?!\d)(?:\.\d+)? |
        \d{{1,3}}(?:\.\d{{3}}){{2,}}(?!\d) | \d+(?:[.,]\d+)? )
    (?: (?:st|nd|rd|th|s|D|G)\b | \+?
        (?P<scale> [\s-]?(?i:thousand|million|billion|trillion|mn|mln|bn|tn)\b |
            (?:MM|[kKMBT])\b )?
        (?P<unit> [\s-]?(?i:{_LONGEST_FIRST})(?![^\W_]) )? )""",
    re.VERBOSE,
)
_PART_OF_WORD = re.compile(r"(?:[^\W\d_]|\d\.)\Z")
# "2. Next" at the head of a line counts the items of a list, "[7]" points to a footnote.
_NO_NUMBERS = re.compile(r"^[ \t*#-]*\d{1,2}[.)](?=\s)|\[\d{1,3}\]|\bhttps?://\S+", re.MULTILINE)
_ISO_DATE = re.compile(r"\b((?:1[5-9]|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b")


def numbers_of(text: str) -> list[Number]:
    """Numbers written in digits, dates and names of months included.

    1,000, 1 000 (narrow space) and 1000 are the same number; so are 1.5 million and 1,500,000,
    5 % and "5 percent", 26th and 26. Signs are dropped, as "10-15" is a range and "−5" a negative
    number. Digits inside a name (MI300X, SU7) belong to the
    name, those of links, footnotes and list items do not count.
    """
    found = []
    text = _NO_NUMBERS.sub("", text)
    for match in _ISO_DATE.finditer(text):
        year, month, day = match.groups()
        found += [Number(year, year, ""), Number(day, str(int(day)), "")]
        found.append(Number(match.group(), str(int(month)), "month"))
    text = _ISO_DATE.sub(" ", text) if found else text
    found += _in_digits(text)
    found += [Number(written, str(value), "month") for written, value in months(text)]
    return found


def _in_digits(text: str) -> Iterator[Number]:
    for match in _NUMBER.finditer(text):
        scale, unit = match["scale"], match["unit"]
        before = text[max(match.start() - _LOOK_BACK, 0) : match.start()]
        money = _MONEY.search(before) if before else None
        if before and money is None and _PART_OF_WORD.search(before):
            continue
        if money and unit in ("m", "M"):
            scale, unit = "million", None  # £5m
        value = _value(match["digits"]) * 10 ** _scale(scale)
        name = (money.group() if money else unit or "").strip().removeprefix("-").lower()
        written = (before[money.start() :] if money else "") + match.group()
        yield Number(written.strip(), _plain(value), _UNITS[name] if name else "")


def _value(digits: str) -> Decimal:
    parts = re.split(r"[.,\u00a0\u2009\u202f'’]", digits)
    if len(parts) == 1:
        return Decimal(digits)
    separators = re.findall(r"[^\d]", digits)
    # A last part of three digits after anything but one dot is a group of thousands.
    decimal = len(parts[-1]) != 3 or separators == ["."] or separators[-1] != separators[0]
    return Decimal(f"{''.join(parts[:-1])}.{parts[-1]}" if decimal else "".join(parts))


def _scale(written: str | None) -> int:
    if not written:
        return 0
    name = written.strip().removeprefix("-")
    return {"M": 6, "MM": 6, "B": 9, "T": 12, "K": 3}.get(name) or _SCALES[name.lower()]


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def compare_numbers(original: str, rewrite: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Count the distinct numbers of the original, and name those missing and those added.

    A number is kept where the rewrite has its value, in digits or spelled out, with the same
    unit or with none on one side: "630 km" is not kept by "630 miles". Numbers spelled out in
    the original need not be kept ("one of the", "second to none").
    """
    wanted, offered = numbers_of(original), numbers_of(rewrite)
    missing = _without(wanted, offered, rewrite) if wanted else ()
    added = _without(offered, wanted, original) if offered else ()
    return len({(n.value, n.unit) for n in wanted}), missing, added


def _without(wanted: list[Number], offered: list[Number], text: str) -> tuple[str, ...]:
    """Return those wanted that are not offered, each value once, as they were written."""
    units: dict[str, set[str]] = {}
    for number in offered:
        units.setdefault(number.value, set()).add(number.unit)
    lost: dict[tuple[str, str], str] = {}
    for number in wanted:
        there = units.get(number.value)
        if there is None or not (number.unit == "" or "" in there or number.unit in there):
            lost.setdefault((number.value, number.unit), number.text)
    if lost:
        spelled = spelled_numbers(text)
        lost = {
            key: written
            for key, written in lost.items()
            if key[1] == "month" or key[0] not in spelled
        }
    return tuple(lost.values())
