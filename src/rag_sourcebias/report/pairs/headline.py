"""The whole report in a few sentences, no more certain than its tests."""

from __future__ import annotations

from rag_sourcebias.report.format import count, join, share
from rag_sourcebias.report.pairs.names import names_of, points
from rag_sourcebias.report.pairs.wording import criteria_of, pairs_sentence
from rag_sourcebias.types.pair_report import PairReport

__all__ = ["headline"]


def headline(report: PairReport) -> str:
    """Return what a reader in a hurry should take away."""
    return " ".join(t for t in (_pairs(report), _criteria(report), _sole(report)) if t)


def _pairs(report: PairReport) -> str:
    if len(report.sources) == 1:
        return pairs_sentence(report.sources[0])
    broken = sum(s.summary.n_broken for s in report.sources)
    pairs = sum(s.summary.n_pairs for s in report.sources)
    worst = max(report.sources, key=lambda s: s.broken_share)
    if not broken:
        return f"None of {count(pairs)} pairs with {len(report.sources)} sources is broken."
    text = (
        f"Of {count(pairs)} pairs with {len(report.sources)} sources {count(broken)} "
        f"({share(broken / max(pairs, 1))}) are broken, no rewrites of the whole text"
    )
    return f"{text}; most with {names_of(report)[worst.source]} ({share(worst.broken_share)})."


def _criteria(report: PairReport) -> str:
    found = [c for s in report.sources for c in criteria_of(s.criteria)]
    unmet = list(dict.fromkeys(c.name for c in found if c.met is False))
    unknown = list(dict.fromkeys(c.name for c in found if c.met is None))
    if not unmet and not unknown:
        return "All three criteria of a paired corpus are met."
    parts = []
    if unmet:
        parts.append(f"not met: {join(unmet)}")
    if unknown:
        parts.append(f"not checked: {join(unknown)}")
    return f"Criteria of a paired corpus {'; '.join(parts)}."


def _sole(report: PairReport) -> str:
    tests = report.sole_corpus
    if not tests:
        return ""
    n = len(tests)
    same = sum(test.verdict == "equivalent" for test in tests)
    other = sum(test.verdict == "different" for test in tests)
    text = (
        f"Searched alone, both corpora are equally hard within {points(tests[0].margin)} on "
        f"{same} of {n} measures"
    )
    if other:
        return f"{text} and differ on {other}."
    return f"{text}." if same == n else f"{text}; none shows a difference."
