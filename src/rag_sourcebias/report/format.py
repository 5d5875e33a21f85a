"""How numbers and sources are written in every report output.

Scores are shown ×100 with one decimal and Relative Δ as a signed number with one decimal, as in
Tables 2, 4 and 5 of Dai et al. (KDD 2024). Negative numbers carry U+2212, not a hyphen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_sourcebias.core.findings import ChangeCode, VerdictChange
from rag_sourcebias.core.interval import Interval

MISSING = "–"
_MINUS = "\u2212"

CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
VARIANTS = {
    "mixed": "",
    "exact": "exact search",
    "length-matched": "length-matched",
}


def number(value: float | None, *, digits: int = 1, signed: bool = False) -> str:
    """Return ``value`` with ``digits`` decimals, or "–"; what rounds to 0 carries no sign."""
    if value is None:
        return MISSING
    text = f"{abs(value):.{digits}f}"
    if not any(c in "123456789" for c in text):
        return text
    if value < 0:
        return _MINUS + text
    return "+" + text if signed else text


def score(value: float) -> str:
    """Return a mean in [0, 1] as it is printed in the field: ×100, one decimal."""
    return number(100 * value)


def share(value: float) -> str:
    """Return a share in [0, 1] as a percentage with one decimal."""
    return f"{number(100 * value)}%"


def delta(value: float | None) -> str:
    """Return a Relative Δ in percent points, signed, or the word "undefined"."""
    return "undefined" if value is None else number(value, signed=True)


def roughly(value: int) -> str:
    """Return an estimated number with two digits that count, such as ``1,700``."""
    unit = 10 ** max(len(str(value)) - 2, 0)
    return f"{-(-value // unit) * unit:,}"


def interval(value: Interval | None, *, scale: float = 1.0, digits: int = 1) -> str:
    """Return the two ends of an interval, such as ``[−96.1, −2.0]``; turned by a scale below 0."""
    if value is None:
        return MISSING
    ends = sorted((scale * value.lower, scale * value.upper))
    low, high = (number(end, digits=digits) for end in ends)
    return f"[{low}, {high}]"


def estimate(
    value: Interval | None, *, scale: float = 1.0, digits: int = 1, signed: bool = False
) -> str:
    """Return an estimate with its interval, such as ``−49.6 [−96.6, −2.6]``."""
    if value is None:
        return MISSING
    middle = number(scale * value.estimate, digits=digits, signed=signed)
    return f"{middle} {interval(value, scale=scale, digits=digits)}"


def ends_about_zero(value: Interval, *, digits: int) -> str:
    """Return the ends with as many decimals as it takes to see on which side of 0 they lie."""
    finest = digits + 3
    while digits < finest and any(
        end != 0 and round(abs(end), digits) == 0 for end in (value.lower, value.upper)
    ):
        digits += 1
    return interval(value, digits=digits)


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals, ``< 0.001`` below that.

    A value that three decimals would round onto 0.050 keeps a fourth, so that no table shows the
    usual threshold without telling on which side of it the value lies.
    """
    if value is None:
        return MISSING
    if value < 0.001:
        return "< 0.001"
    text = f"{value:.3f}"
    return f"{value:.4f}" if text == "0.050" and value != 0.05 else text


def p_clause(value: float | None, *, name: str = "p") -> str:
    """Return ``p = 0.012`` or ``p < 0.001``."""
    if value is None:
        return f"no {name}-value" if name == "p" else f"no {name}"
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def count(value: int | None) -> str:
    """Return a whole number with thousands separators."""
    return MISSING if value is None else f"{value:,}"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Return a number of things, such as ``1 test``, ``36 tests`` or ``2 queries``."""
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"


def capital(text: str) -> str:
    """Return a text with its first letter as a sentence begins."""
    return text[:1].upper() + text[1:]


def settings(found: Mapping[str, object]) -> str:
    """Return settings in one line, such as ``k1 = 0.9; b = 0.4``."""
    return "; ".join(f"{name} = {value}" for name, value in found.items()) or MISSING


def join(parts: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``; nothing of nothing."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_CHANGES = {
    ChangeCode.UNEQUAL_COUNTS: "its test measured unequal numbers of relevant documents as well, "
    "so its report allows no verdict; run the audit again",
    ChangeCode.STYLE_RULE: "it named every style that differs from the original by a twentieth of "
    "the places, and did not ask first whether all are alike within a margin",
    ChangeCode.AUC: "it judged an adjustment by the AUC over all systems, and did not store that "
    "within systems; run the audit again",
    ChangeCode.INTERVAL: "its intervals changed their method with how many queries differ; compare "
    "again for those of today",
}


def changed(found: Iterable[VerdictChange]) -> tuple[str, ...]:
    """Say which verdicts of version 0.1 would differ now, and why."""
    by_code: dict[ChangeCode, list[str]] = {}
    for change in found:
        numbers = (f"{name} {value:.3g}" for name, value in change.numbers.items())
        told = f"{change.subject}: {change.was}, now {change.now} ({', '.join(numbers)})"
        by_code.setdefault(change.code, []).append(told.replace(" -", f" {_MINUS}"))
    return tuple(
        f"version 0.1 wrote this report, and {counted(len(told), 'verdict')} would differ now: "
        f"{_CHANGES[code]}. {'; '.join(told)}"
        for code, told in by_code.items()
    )


def level(confidence_level: float) -> str:
    """Return a confidence level such as ``95%`` or ``99.5%``."""
    return f"{100 * confidence_level:.6g}%"


def source_name(source: str) -> str:
    """Return a source as prose: ``human-written``, ``LLM-written (llama-2)``, ``untagged``."""
    if source == "":
        return "untagged"
    if source == "human":
        return "human-written"
    if source == "llm":
        return "LLM-written"
    if source.startswith("llm:"):
        return f"LLM-written ({source[4:]})"
    return source


def short_names(sources: Iterable[str]) -> dict[str, str]:
    """Return the shortest unambiguous name of each source: ``human``, ``LLM``, ``LLM gpt-4``."""
    known = list(dict.fromkeys(sources))
    several = sum(s == "llm" or s.startswith("llm:") for s in known) > 1
    names = {}
    for source in known:
        if source == "":
            names[source] = "untagged"
        elif source.startswith("llm:"):
            names[source] = f"LLM {source[4:]}" if several else "LLM"
        else:
            names[source] = "LLM" if source == "llm" else source
    return names


def shorten(text: str, width: int) -> str:
    """Return ``text`` cut in the middle to ``width`` characters, the end of a name tells most."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to a width, but never so that two of them look the same."""
    short = [shorten(name, width) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    return [f"{place}. {shorten(name, width - 4)}" for place, name in enumerate(names, 1)]


def split_measure(measure: str) -> tuple[str, int | None]:
    """Split ``"NDCG@5"`` into ``("NDCG", 5)``; the cutoff is None where there is none."""
    name, _, cutoff = measure.partition("@")
    return name, int(cutoff) if cutoff.isdigit() else None
