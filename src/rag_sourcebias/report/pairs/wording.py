"""What is said of each source and of each corpus searched alone."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.report.format import count, join, share, source_name
from rag_sourcebias.report.pairs.names import points
from rag_sourcebias.types.pair_report import NamedIds, PairCriteria, PairReport, SourcePairs
from rag_sourcebias.types.pair_tests import SoleCorpusTest

__all__ = [
    "Criterion",
    "criteria_of",
    "pairs_sentence",
    "sole_groups",
    "sole_sentence",
    "test_text",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One of the three criteria of [K] §2.

    Parameters
    ----------
    met : bool or None
        None where it was not checked.
    """

    name: str
    met: bool | None
    text: str


def criteria_of(found: PairCriteria) -> tuple[Criterion, ...]:
    """Return the criteria with what was counted."""
    labels = f"{count(found.n_labels)} judgments hold for both versions"
    if found.labels_copied is None:
        labels = "no judgments to check"
    elif not found.labels_copied:
        labels = "; ".join(
            f"{ids(counted)} {what}"
            for counted, what in (
                (found.labels_missing, "not copied"),
                (found.labels_differ, "with another grade"),
                (found.labels_added, "for the counterpart only"),
            )
            if counted.n
        )
    alone = [
        f"{ids(counted)} {what}"
        for counted, what in (
            (found.baseline_alone, "originals without a counterpart"),
            (found.other_alone, "rewrites without an original"),
            (found.repeated, "further versions of one document"),
        )
        if counted.n
    ]
    return (
        Criterion(
            name="source known",
            met=found.sources_known,
            text=f"all {count(found.n_documents)} documents have a source"
            if found.sources_known
            else f"{ids(found.untagged)} of {count(found.n_documents)} documents have none",
        ),
        Criterion(name="labels copied", met=found.labels_copied, text=labels),
        Criterion(
            name="one to one",
            met=found.one_to_one and found.n_pairs > 0,
            text="; ".join([f"{count(found.n_pairs)} pairs", *alone]),
        ),
    )


def ids(found: NamedIds) -> str:
    """Return a number with the first ids."""
    if not found.first:
        return count(found.n)
    return f"{count(found.n)} (first {', '.join(found.first[:3])})"


def pairs_sentence(part: SourcePairs) -> str:
    """Say how many pairs are broken, and how many lost facts."""
    s = part.summary
    if not s.n_pairs:
        return f"No document has a counterpart that is {source_name(part.source)}."
    facts = s.n_flagged - s.n_broken
    if not s.n_broken:
        lost = f"in {count(facts)} ({share(facts / s.n_pairs)})" if facts else "in none"
        return (
            f"None of {count(s.n_pairs)} pairs is broken; numbers or names were lost or added "
            f"{lost}."
        )
    text = (
        f"{count(s.n_broken)} of {count(s.n_pairs)} pairs ({share(part.broken_share)}) "
        f"{'is' if s.n_broken == 1 else 'are'} broken, no rewrite of the whole text"
    )
    if not facts:
        return f"{text}."
    return (
        f"{text}; numbers or names were lost or added in {count(facts)} more "
        f"({share(facts / s.n_pairs)})."
    )


def sole_groups(report: PairReport) -> dict[tuple[str, str], tuple[SoleCorpusTest, ...]]:
    """Return the tests of every retriever and source."""
    found: dict[tuple[str, str], list[SoleCorpusTest]] = {}
    for test in report.sole_corpus:
        found.setdefault((test.system, test.other), []).append(test)
    return {key: tuple(tests) for key, tests in found.items()}


def sole_sentence(tests: tuple[SoleCorpusTest, ...]) -> str:
    """Say for which measures the two corpora are equally hard."""
    margin = points(tests[0].margin)
    by = {v: [t for t in tests if t.verdict == v] for v in ("equivalent", "different", "open")}
    parts = []
    if by["equivalent"]:
        parts.append(f"equivalent within {margin}: {_measures(by['equivalent'])}")
    if by["different"]:
        lower = [t for t in by["different"] if t.mean_other < t.mean_baseline]
        higher = [t for t in by["different"] if t.mean_other >= t.mean_baseline]
        for found, word in ((lower, "lower"), (higher, "higher")):
            if found:
                parts.append(f"different, rewrites alone score {word}: {_measures(found)}")
    few = [t for t in by["open"] if t.needs_queries is not None]
    rest = [t for t in by["open"] if t.needs_queries is None]
    if few:
        needed = [n for t in few if (n := t.needs_queries) is not None]
        low, high = min(needed), max(needed)
        span = count(low) if low == high else f"{count(low)} to {count(high)}"
        parts.append(
            f"not enough queries ({count(tests[0].n_queries)}; about {span} needed): "
            f"{_measures(few)}"
        )
    if rest:
        parts.append(f"neither shown to be equivalent nor to differ: {_measures(rest)}")
    return "; ".join(parts)


def test_text(test: SoleCorpusTest) -> str:
    """Return the verdict of one test."""
    if test.verdict == "equivalent":
        return f"equivalent within {points(test.margin)}"
    if test.verdict == "different":
        return "different"
    needed = test.needs_queries
    return "undecided" if needed is None else f"not enough queries: {count(needed)} needed"


def _measures(tests: list[SoleCorpusTest]) -> str:
    return join([test.measure for test in tests])
