"""How flags, values, thresholds and criteria are called."""

from __future__ import annotations

from rag_sourcebias.report.format import number, share, short_names
from rag_sourcebias.types.pair_checks import PairThresholds
from rag_sourcebias.types.pair_report import PairReport

__all__ = [
    "FLAGS",
    "THRESHOLDS",
    "VALUES",
    "names_of",
    "points",
    "threshold_text",
    "value_text",
]

#: What each flag says of a pair.
FLAGS = {
    "empty": "one side has no words",
    "refusal": "the model declined instead of rewriting",
    "leftover": "holds what the model said around the text, such as “Sure, here is …”",
    "loop": "repeats itself",
    "language": "another language than the original",
    "unrelated": "no more like its original than texts that have nothing to do with it",
    "truncated": "stops before the original ends, or inside a sentence",
    "copy": "the original word by word",
    "near_copy": "the original but for a few words",
    "length": "much shorter or longer than the original",
    "numbers": "numbers of the original are missing, or numbers were added",
    "names": "names of the original are missing, swapped or invented",
}
#: Values of a pair, with what they are.
VALUES = {
    "length_ratio": "length ratio",
    "jaccard": "Jaccard",
    "overlap": "overlap",
    "cosine": "cosine",
    "copied": "copied runs",
    "repeated": "repetition added",
    "end_kept": "end kept",
    "numbers_kept": "numbers kept",
    "names_kept": "names kept",
}
THRESHOLDS = {
    "length_ratio": "length ratio, lowest and highest",
    "copied": "copied runs of five words, at most",
    "repeated": "repetition added, at most",
    "end_kept": "end kept, at least",
    "chance": "more alike than this share of mismatched pairs",
    "cosine": "cosine, at least",
    "numbers_kept": "numbers kept, at least",
    "names_kept": "names kept, at least",
    "language": "language",
    "writing": "refusals, leftovers, open ends, copies",
}
_SHARES = ("copied", "repeated", "end_kept", "numbers_kept", "names_kept")


def names_of(report: PairReport) -> dict[str, str]:
    """Return the shortest unambiguous name of every source."""
    return short_names([report.baseline_source, *(s.source for s in report.sources)])


def value_text(name: str, value: float) -> str:
    """Return a value: shares as percent, all others with two decimals."""
    return share(value) if name in _SHARES else number(value, digits=2)


def threshold_text(thresholds: PairThresholds, name: str) -> str:
    """Return a threshold such as ``0.5 to 2``, ``on`` or ``off``."""
    value = getattr(thresholds, name)
    if value is None or value is False:
        return "off"
    if value is True:
        return "on"
    if isinstance(value, tuple):
        return f"{value[0]:g} to {value[1]:g}"
    return f"{value:g}".replace("-", "\u2212")


def points(margin: float) -> str:
    """Return a margin ×100, such as ``±5``."""
    return f"±{100 * margin:.6g}"
