"""Which names of a text stand in its rewrite, from how words are capitalised.

No model: a word is a name where a capital is not explained by its place. What cannot be told from
capitals cannot be checked: names in scripts without capitals, in German (every noun has one) and
names that are also common words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

from rag_sourcebias.corpora.check_language import FUNCTION_WORDS
from rag_sourcebias.corpora.check_number_words import MONTH_NUMBERS

__all__ = ["CapitalCounts", "compare_names"]

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
        decomposed = unicodedata.normalize("NFKD", word)
        word = "".join(c for c in decomposed if not unicodedata.combining(c))
    return word


def _tokens(text: str) -> list[tuple[str, str, bool]]:
    """Words as written, their forms, and whether a sentence could begin with them."""
    found = []
    for i, (before, word) in enumerate(_TOKEN.findall(text)):
        # Between most words there is one space, which the pattern need not look at.
        starts = i == 0 or (before not in {" ", "-"} and bool(_BREAK.search(before)))
        form = word.lower() if word.isascii() and word.isalnum() else _form(word)
        found.append((word, form, starts))
    return found


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
        runs: list[tuple[str, ...]] = []
        run: list[str] = []
        tokens = _tokens(text)
        for word, form, starts in tokens:
            named = self._is_name(word, form, starts=starts)
            if run and (starts or not named):
                runs.append(tuple(run))
                run = []
            if named:
                run.append(word)
        if run:
            runs.append(tuple(run))
        return runs, [form for _, form, _ in tokens]

    def _is_name(self, word: str, form: str, *, starts: bool) -> bool:
        if word.islower() or not word[0].isalpha() or len(form) < 2 or form in _NO_NAMES:
            return False
        if "'" in form or "’" in form:  # I'm, Don't
            return False
        capital, small = self._capital[form], self._small[form]
        inner = any(c.isupper() for c in word[1:]) or not word.isalpha()
        if starts and not inner:
            return capital > small
        return capital + starts > small


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
    wanted = {_form(word) for run in runs for word in run}
    return len(wanted), _without(runs, other_forms), _without(other_runs, forms)


def _without(runs: list[tuple[str, ...]], forms: list[str]) -> tuple[str, ...]:
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
        together = {"".join(parts), "".join(part[0] for part in parts)}
        if len(run) > 1 and together & there:
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
