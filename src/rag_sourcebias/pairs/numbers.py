"""Numbers and names of a text, and which of them its rewrite keeps."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import takewhile
from typing import NamedTuple

from rag_sourcebias.measure.texts import FUNCTION_WORDS

# Numbers and months that are spelled out, in English.


_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {
    **{
        word: value
        for words in (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen "
            "fourteen fifteen sixteen seventeen eighteen nineteen",
            "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh "
            "twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth",
        )
        for value, word in enumerate(words.split())
    },
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    **{word[:-1] + "ieth": 10 * value for value, word in enumerate(_TENS.split(), start=2)},
    "once": 1, "single": 1, "twice": 2, "double": 2, "both": 2, "pair": 2, "couple": 2,
    "triple": 3, "dozen": 12, "a": 1, "an": 1, "decade": 10, "century": 100,
}  # fmt: skip
_LARGE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_LARGE |= {f"{word}th": value for word, value in _LARGE.items()}
_WORD = re.compile(r"[a-z]+|[.;:!?]")

#: Names of months and their short forms, with the number of the month from 1.
MONTH_NUMBERS = {
    form: number
    for number, month in enumerate(
        (
            "january", "february", "march", "april", "may", "june", "july", "august", "september",
            "october", "november", "december",
        ),
        start=1,
    )
    for form in (month, month[:3])
} | {"sept": 9}  # fmt: skip
_ALONE = frozenset(month for month in MONTH_NUMBERS if len(month) > 3) - {"march"}
_MONTH = re.compile("|".join(sorted(MONTH_NUMBERS, key=len, reverse=True)))
_DAY_BEFORE = re.compile(r"\d(?:st|nd|rd|th)?(?: of)?\s\Z")
_DAY_AFTER = re.compile(r"\.?,?\s\d")
_WORDS_BACK = 6


def months(text: str) -> Iterator[tuple[str, int]]:
    """Names of months as written, with their number from 1.

    Short forms, "may" and "march" count only beside a number; before them it has to be a capital.
    """
    for match in _MONTH.finditer(text.lower()):
        start, end, name = match.start(), match.end(), match.group()
        written = text[start:end]
        if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
            continue
        dated = written[0].isupper() and _DAY_BEFORE.search(
            text[max(start - _WORDS_BACK, 0) : start]
        )
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


# Which numbers of a text stand in its rewrite, whatever way they are written.


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


# Powers of ten; "M", "B" and "T" alone are none but in capitals.
_SCALES = {
    "": 0, "K": 3, "M": 6, "MM": 6, "B": 9, "T": 12,
    "thousand": 3, "k": 3, "million": 6, "mn": 6, "mln": 6, "billion": 9, "bn": 9,
    "trillion": 12, "tn": 12,
}  # fmt: skip
# Each unit with the ways it is written. "M", "B" and "T" alone are scales.
_UNITS = {
    written: unit
    for unit, forms in {
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
    }.items()
    for written in forms.split("|")
}  # fmt: skip
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
        found += [
            Number(year, year, ""),
            Number(day, str(int(day)), ""),
            Number(match.group(), str(int(month)), "month"),
        ]
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
        scale = (scale or "").strip().removeprefix("-")
        power = _SCALES[scale if scale in _SCALES else scale.lower()]
        name = (money.group() if money else unit or "").strip().removeprefix("-").lower()
        written = (before[money.start() :] if money else "") + match.group()
        value = format(_value(match["digits"]) * 10**power, "f")
        if "." in value:
            value = value.rstrip("0").rstrip(".") or "0"
        yield Number(written.strip(), value, _UNITS[name] if name else "")


def _value(digits: str) -> Decimal:
    parts = re.split(r"[.,\u00a0\u2009\u202f'’]", digits)
    if len(parts) == 1:
        return Decimal(digits)
    separators = re.findall(r"[^\d]", digits)
    # A last part of three digits after anything but one dot is a group of thousands.
    decimal = len(parts[-1]) != 3 or separators == ["."] or separators[-1] != separators[0]
    return Decimal(f"{''.join(parts[:-1])}.{parts[-1]}" if decimal else "".join(parts))


def compare_numbers(original: str, rewrite: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Count the distinct numbers of the original, and name those missing and those added.

    A number is kept where the rewrite has its value, in digits or spelled out, with the same
    unit or with none on one side: "630 km" is not kept by "630 miles". Numbers spelled out in
    the original need not be kept ("one of the", "second to none").
    """
    wanted, offered = numbers_of(original), numbers_of(rewrite)
    return (
        len({(n.value, n.unit) for n in wanted}),
        _without(wanted, offered, rewrite) if wanted else (),
        _without(offered, wanted, original) if offered else (),
    )


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


# Which names of a text stand in its rewrite, from how words are capitalised.
# No model: a word is a name where a capital is not explained by its place. What cannot be told
# from capitals cannot be checked: names in scripts without capitals, in German (every noun has
# one) and names that are also common words.


_TOKEN = re.compile(r"([\W_]*)([^\W_]+(?:['’][^\W\d_]+)?)")
# After these a capital says nothing. A full stop may also end "Mr.", which costs little.
_BREAK = re.compile(r"[.!?:;\n•*\"“”«»()\[\]]|^\s*$|\s[-–—]\s")
_NO_NAMES = (
    frozenset(FUNCTION_WORDS["en"].split())
    | frozenset(["i", "im", "mr", "mrs", "ms", "dr", "st", "prof", "ok", "vs", "etc", "am", "pm"])
    | frozenset(MONTH_NUMBERS)
)
# England, English; China, Chinese; Mexico, Mexican; Japan, Japanese.
_PEOPLE = frozenset(["an", "ans", "ian", "ians", "ean", "ese", "ish", "ic"])
_PLACES = frozenset(["", "a", "o", "e", "y", "ia", "en", "and", "ain", "land", "ark", "us"])
_MIN_STEM = 4
_MAX_ENDING = 3


def _form(word: str) -> str:
    """Case, accents and a possessive taken off."""
    word = re.sub(r"['’]s?$", "", word.lower())
    if not word.isascii():
        word = "".join(
            c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)
        )
    return word


def _tokens(text: str) -> list[tuple[str, str, bool]]:
    """Words as written, their forms, and whether a sentence could begin with them."""
    return [
        (
            word,
            word.lower() if word.isascii() and word.isalnum() else _form(word),
            # Between most words there is one space, which the pattern need not look at.
            i == 0 or (before not in {" ", "-"} and bool(_BREAK.search(before))),
        )
        for i, (before, word) in enumerate(_TOKEN.findall(text))
    ]


class CapitalCounts:
    """How often every word is written with a capital where it need not be, over many texts.

    Parameters
    ----------
    texts : iterable of str
        Both sides of all pairs: whether "Apple" at the head of a sentence is a name is told by
        how "apple" is written inside sentences.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._capital: Counter[str] = Counter()
        self._small: Counter[str] = Counter()
        for text in texts:
            tokens = _tokens(text)
            self._small.update(form for word, form, _ in tokens if word.islower())
            self._capital.update(
                form for word, form, starts in tokens if not starts and not word.islower()
            )

    def names(self, text: str) -> tuple[list[tuple[str, ...]], list[str]]:
        """Runs of name words, as written, and the forms of all words of the text."""
        runs: list[list[str]] = [[]]
        tokens = _tokens(text)
        for word, form, starts in tokens:
            named = self._is_name(word, form, starts=starts)
            if starts or not named:
                runs.append([])
            if named:
                runs[-1].append(word)
        return [tuple(run) for run in runs if run], [form for _, form, _ in tokens]

    def _is_name(self, word: str, form: str, *, starts: bool) -> bool:
        if (
            word.islower()
            or not word[0].isalpha()
            or len(form) < 2
            or form in _NO_NAMES
            or "'" in form
            or "’" in form
        ):  # I'm, Don't
            return False
        capital, small = self._capital[form], self._small[form]
        inner = any(c.isupper() for c in word[1:]) or not word.isalpha()
        return capital + (starts and inner) > small


def compare_names(
    original: str, rewrite: str, counts: CapitalCounts
) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Count the distinct name words of the original, and name those missing and those added.

    A name word is kept in whatever case it is written, with another ending ("Germany",
    "German"), as an acronym of words that stand there or spelled out from one, and run together
    ("Tik Tok", "TikTok").
    """
    runs, forms = counts.names(original)
    other_runs, other_forms = counts.names(rewrite)
    return (
        len({_form(word) for run in runs for word in run}),
        _names_without(runs, other_forms),
        _names_without(other_runs, forms),
    )


def _names_without(runs: list[tuple[str, ...]], forms: list[str]) -> tuple[str, ...]:
    there = set(forms)
    lost = {_form(w): w for run in runs for w in run if _form(w) not in there}
    if not lost:
        return ()
    initials = "".join(form[0] for form in forms)
    squeezed = "".join(forms)
    excused = {
        form
        for form, word in lost.items()
        if (sum(c.isupper() for c in word) > 1 and form in initials)
        or (len(form) > _MIN_STEM and form in squeezed)
        or any(_same_stem(form, other) for other in there)
    }
    for run in runs:
        parts = [_form(word) for word in run]
        if len(run) > 1 and {"".join(parts), "".join(part[0] for part in parts)} & there:
            excused.update(map(_form, run))
    return tuple(re.sub(r"['’]s$", "", word) for form, word in lost.items() if form not in excused)


def _same_stem(first: str, second: str) -> bool:
    """One is the other with an ending, or the two are a country and its people."""
    both = first, second
    shorter, longer = sorted(both, key=len)
    if longer == shorter + "s":
        return True
    if first[:_MIN_STEM] != second[:_MIN_STEM] or len(shorter) < _MIN_STEM:
        return False
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*both, strict=False)))
    if common == len(shorter):
        return len(longer) - common <= _MAX_ENDING
    ends = {first[common:], second[common:]}
    return bool(ends & _PEOPLE) and ends <= _PEOPLE | _PLACES
