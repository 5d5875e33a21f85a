"""How sources and models are called on the page, and how changes are written."""

from __future__ import annotations

import math

from rag_sourcebias.report.format import interval, number, short_names, shorten, source_name
from rag_sourcebias.types.explain_report import ExplainReport, ModelPerplexity
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "base_of",
    "called",
    "encoder_name",
    "factor_name",
    "length_change",
    "model_name",
    "names_of",
    "of_source",
    "percent_ends",
    "score_digits",
    "scored_ends",
    "share_ends",
    "shown_ends",
    "telling_digits",
]

_LONGEST = 60
_PERPLEXITY = "perplexity, "
_FACTORS = {
    "log length ratio": "length",
    "query words": "words of queries",
    "source direction": "position along the source direction",
}


def names_of(report: ExplainReport) -> dict[str, str]:
    """Return the shortest unambiguous name of every source, the baseline's among them."""
    return short_names((report.config.baseline_source, *(s.source for s in report.sources)))


def base_of(report: ExplainReport) -> str:
    """Return the short name of the baseline."""
    return names_of(report)[report.config.baseline_source]


def of_source(source: str) -> str:
    """Return a source in the words of a sentence, of bounded length."""
    return shorten(source_name(source), _LONGEST)


def called(text: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    name = shorten(text, _LONGEST)
    return f"“{name}”" if any(c in " ,;:" for c in name) else name


def encoder_name(report: ExplainReport) -> str:
    """Return the encoder in a sentence."""
    return called(report.encoder) if report.encoder else "no encoder"


def factor_name(name: str) -> str:
    """Return a difference that the score gap may go with as it is called on the page."""
    if name.startswith(_PERPLEXITY):
        return f"perplexity under {name.removeprefix(_PERPLEXITY).partition(':')[2] or name}"
    return _FACTORS.get(name, name)


def model_name(found: ModelPerplexity) -> str:
    """Return a language model without its kind, which is told apart from it."""
    return called(found.model.removeprefix(f"{found.kind}:"))


def telling_digits(low: float, high: float, *, digits: int, null: float = 0.0) -> int:
    """Return at least ``digits`` decimals, so many that rounded ends lie as the true ones do.

    An interval that leaves out ``null`` must not look as if it held it; two more are the most.
    """
    outside = not low <= null <= high
    for more in range(3):
        rounded = [round(end, digits + more) for end in (low, high)]
        if outside == (not rounded[0] <= null <= rounded[1]):
            return digits + more
    return digits + 2


def shown_ends(
    found: Interval,
    *,
    scale: float = 1.0,
    digits: int = 1,
    signed: bool = True,
    unit: str = "",
    null: float = 0.0,
) -> str:
    """Return a value with its interval, in decimals that tell on which side of ``null`` it is."""
    n = telling_digits(scale * found.lower, scale * found.upper, digits=digits, null=null)
    value = number(scale * found.estimate, digits=digits, signed=signed)
    return f"{value}{unit} {interval(found, scale=scale, digits=n)}"


def percent_ends(found: Interval, *, signed: bool = True) -> str:
    """Return a value in percent with its interval."""
    return shown_ends(found, signed=signed, unit="%")


def share_ends(found: Interval, *, null: float = 0.0) -> str:
    """Return a share in [0, 1] in percent with its interval; ``null`` in percent."""
    return shown_ends(found, scale=100, signed=False, unit="%", null=null)


def length_change(found: Interval) -> tuple[float, float, float]:
    """Return estimate and ends of a mean log ratio, in percent."""
    low, middle, high = (100 * math.expm1(v) for v in (found.lower, found.estimate, found.upper))
    return middle, low, high


def score_digits(found: Interval) -> int:
    """Return how many decimals tell an interval of scores from 0, between 2 and 6."""
    size = max(found.half_width, abs(found.estimate) / 10)
    return 3 if size <= 0 else min(6, max(2, 1 - math.floor(math.log10(size))))


def scored_ends(found: Interval, *, digits: int | None = None) -> str:
    """Return a difference of scores with its interval."""
    return shown_ends(found, digits=score_digits(found) if digits is None else digits)
