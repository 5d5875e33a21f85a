"""One card per source for the top of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.format import count, share, source_name
from rag_sourcebias.report.pairs.wording import criteria_of, pairs_sentence
from rag_sourcebias.types.pair_report import PairReport, SourcePairs

__all__ = ["PairCard", "pair_cards"]

_WORDS = {True: "met", False: "not met", None: "not checked"}
_MUCH = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCard:
    """What a reader should know of one source.

    Parameters
    ----------
    standing : {"good", "some", "bad"}
        ``"bad"`` where more than 5 % of the pairs are broken or there are none; ``"some"`` where a
        criterion is not met or not checked.
    rows : tuple of (str, str)
    """

    name: str
    standing: Literal["good", "some", "bad"]
    short: str
    text: str
    rows: tuple[tuple[str, str], ...]


def pair_cards(report: PairReport) -> tuple[PairCard, ...]:
    """Return a card for every source."""
    return tuple(_card(part) for part in report.sources)


def _card(part: SourcePairs) -> PairCard:
    s, criteria = part.summary, criteria_of(part.criteria)
    bad = not s.n_pairs or part.broken_share > _MUCH
    good = not bad and all(c.met for c in criteria)
    return PairCard(
        name=source_name(part.source),
        standing="bad" if bad else "good" if good else "some",
        short=f"{share(part.broken_share)} of {count(s.n_pairs)} pairs broken"
        if s.n_pairs
        else "No pairs",
        text=pairs_sentence(part),
        rows=(
            *((c.name, _WORDS[c.met]) for c in criteria),
            ("pairs with any flag", count(s.n_flagged)),
        ),
    )
