"""Sentences about the texts of a source: their length and their perplexity."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import (
    length_change,
    model_name,
    share_ends,
    shown_ends,
    telling_digits,
)
from rag_sourcebias.report.format import number
from rag_sourcebias.types.explain_report import ModelPerplexity, TextComparison

__all__ = ["length_finding", "perplexity_finding"]

Sentence = tuple[str, bool, str, str]


def length_finding(texts: TextComparison, *, other: str, base: str) -> Sentence:
    """Return (topic, whether a difference is established, a few words, a sentence)."""
    found = texts.log_length_ratio
    middle, low, high = length_change(found)
    digits = telling_digits(low, high, digits=1)
    ends = f"[{number(low, digits=digits)}, {number(high, digits=digits)}]"
    shown = found.excludes(0)
    word = "shorter" if middle < 0 else "longer"
    size = number(abs(middle))
    if not shown:
        return (
            "length",
            False,
            f"{number(middle, signed=True)}% words",
            f"That {other} versions are longer or shorter than {base} ones is not established: "
            f"{number(middle, signed=True)}% words {ends}.",
        )
    return (
        "length",
        True,
        f"are {size}% {word}",
        f"{_capital(other)} versions are {size}% {word} than the {base} ones they rewrite "
        f"(in words, {number(middle, signed=True)}% {ends}).",
    )


def perplexity_finding(found: ModelPerplexity, *, other: str, base: str) -> Sentence:
    """Return the same of the perplexities under one model; never as the cause of anything."""
    gap, name = found.gap.gap, model_name(found)
    value = shown_ends(gap, digits=2)
    topic = f"perplexity under {name}"
    if not gap.excludes(0):
        return (
            topic,
            False,
            f"{number(gap.estimate, digits=2, signed=True)} nats per token",
            f"That {name} predicts {other} versions better or worse than {base} ones is not "
            f"established: {value} nats per token.",
        )
    word = "lower" if gap.estimate < 0 else "higher"
    text = (
        f"{_capital(name)} finds {other} versions {'more' if gap.estimate < 0 else 'less'} "
        f"predictable: log-perplexity is {word} by "
        f"{number(abs(gap.estimate), digits=2)} nats per token ({value}), lower in "
        f"{share_ends(found.gap.share_lower, null=50)} of pairs"
    )
    return (
        topic,
        True,
        f"are {'more' if gap.estimate < 0 else 'less'} predictable to {name} "
        f"({number(gap.estimate, digits=2, signed=True)} nats per token)",
        f"{text}{_at_equal_length(found)}. That is a property of the texts; it does not follow "
        "that an encoder's scores come from it.",
    )


def _at_equal_length(found: ModelPerplexity) -> str:
    equal = found.gap.gap_equal_length
    if equal is None:
        return ""
    ends = shown_ends(equal, digits=2)
    if not equal.excludes(0):
        return f"; at equal length no difference is established ({ends})"
    return f"; at equal length it is {ends}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(("human", "untagged")) else text
