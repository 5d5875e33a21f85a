"""Texts of a pair cut into pieces, those that one side lacks marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.report.format import count
from rag_sourcebias.report.pairs.names import FLAGS, VALUES, value_text
from rag_sourcebias.types.pair_report import CheckedPair

__all__ = ["ShownPair", "marked", "shown_pair"]

Pieces = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPair:
    """A pair as a page shows it.

    Parameters
    ----------
    baseline, other : tuple of (str, bool)
        Pieces of the texts in order; marked are facts that the other side lacks.
    baseline_cut, other_cut : str
        What is left out; empty for a whole text.
    """

    pair_id: str
    broken: bool
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    values: str
    baseline: Pieces
    other: Pieces
    baseline_cut: str
    other_cut: str


def shown_pair(pair: CheckedPair) -> ShownPair:
    """Prepare one pair."""
    values = [
        f"{VALUES[name]} {value_text(name, pair.values[name])}"
        for name in VALUES
        if name in pair.values
    ]
    return ShownPair(
        pair_id=pair.pair_id,
        broken=pair.broken,
        flags=tuple(flag.replace("_", " ") for flag in pair.flags if flag in FLAGS),
        reasons=pair.reasons,
        values=" · ".join(values),
        baseline=marked(pair.baseline_text, (*pair.numbers_missing, *pair.names_missing)),
        other=marked(pair.other_text, (*pair.numbers_added, *pair.names_added)),
        baseline_cut=_cut(pair.baseline_text, pair.baseline_length),
        other_cut=_cut(pair.other_text, pair.other_length),
    )


def marked(text: str, facts: Sequence[str]) -> Pieces:
    """Cut a text where facts stand in it, as whole words, in whatever case.

    Examples
    --------
    >>> marked("In 1990 and 19901", ["1990"])
    (('In ', False), ('1990', True), (' and 19901', False))
    """
    # The longest first: "New York City" is not to be cut at "New York".
    wanted = sorted({fact for fact in facts if fact.strip()}, key=lambda f: (-len(f), f))
    if not text or not wanted:
        return ((text, False),) if text else ()
    any_of = "|".join(re.escape(fact) for fact in wanted)
    pieces = re.split(rf"(?<!\w)({any_of})(?!\w)", text, flags=re.IGNORECASE)
    return tuple((piece, bool(i % 2)) for i, piece in enumerate(pieces) if piece)


def _cut(text: str, length: int) -> str:
    if length <= len(text):
        return ""
    return f"The first {count(len(text))} of {count(length)} characters."
