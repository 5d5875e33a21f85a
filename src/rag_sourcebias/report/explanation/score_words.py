"""Sentences about scores: words of queries, and what goes with the score gap of twins."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import (
    factor_name,
    score_digits,
    scored_ends,
    shown_ends,
)
from rag_sourcebias.report.format import join, number
from rag_sourcebias.types.explain import GapDecomposition
from rag_sourcebias.types.explain_report import LexicalShift

__all__ = ["gap_finding", "lexical_finding", "parts_sentence"]

Sentence = tuple[str, bool, str, str]


def lexical_finding(found: LexicalShift, *, other: str, base: str) -> Sentence:
    """Return (topic, whether a difference is established, a few words, a sentence)."""
    gap = found.coverage_gap
    points = number(100 * abs(gap.estimate))
    ends = shown_ends(gap, scale=100, unit=" points")
    if not gap.excludes(0):
        return (
            "words of queries",
            False,
            ends,
            f"That {other} versions hold more or less of a query's words than {base} ones is not "
            f"established: {ends} of the query's idf weight.",
        )
    word = "more" if gap.estimate > 0 else "less"
    own = found.gap_own_idf
    tail = f"; with idf of each source's own corpus {shown_ends(own, scale=100)}"
    return (
        "words of queries",
        True,
        f"hold {word} of the words of queries ({points} points of idf weight)",
        f"Relevant {other} versions hold {word} of a query's words than {base} ones: {ends} of "
        f"the query's idf weight{tail}.",
    )


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def gap_finding(found: GapDecomposition, *, other: str, base: str) -> Sentence:
    """Return the same of the score gap, with the parts that go with differences."""
    gap = found.gap
    ends = scored_ends(gap)
    if not gap.excludes(0):
        return (
            "scores",
            False,
            ends,
            f"That {other} and {base} versions get different scores for the same query is not "
            f"established: {ends} on average. {parts_sentence(found)}",
        )
    word = "higher" if gap.estimate > 0 else "lower"
    size = number(abs(gap.estimate), digits=score_digits(gap))
    return (
        "scores",
        True,
        f"{size} {word}",
        f"For the same query {other} versions score {word} than {base} ones by {size} on average "
        f"({ends}). {parts_sentence(found)}",
    )


def parts_sentence(found: GapDecomposition) -> str:
    """Return which parts of the gap go with which difference, and what remains."""
    digits = score_digits(found.gap)
    parts = [
        f"{scored_ends(f.component, digits=digits)} with {factor_name(f.name)}"
        f"{' (extrapolated)' if f.extrapolated else ''}"
        for f in found.factors
        if f.component.excludes(0)
    ]
    rest = scored_ends(found.remainder, digits=digits)
    maybe = "" if found.remainder.excludes(0) else " remains and may be 0"
    if not parts:
        return (
            f"No part of it is shown to go with a measured difference; {rest}{maybe or ' remains'}."
        )
    open_ = [factor_name(f.name) for f in found.factors if not f.component.excludes(0)]
    tail = f"; no part is shown to go with {_or(open_)}" if open_ else ""
    first, *more = parts
    text = join([first.replace(" with ", " goes with ", 1), *more])
    return f"Of it {text}{tail}; {rest}{maybe or ' goes with none of them'}."
