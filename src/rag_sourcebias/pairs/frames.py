"""Tables of a report on a paired corpus, by name."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_sourcebias.core.codec import to_plain
from rag_sourcebias.core.finding import MINUS, Frame
from rag_sourcebias.pairs.data import (
    BROKEN,
    PAIR_FACTS,
    PAIR_FLAGS,
    PAIR_VALUES,
    NamedIds,
    PairResults,
)
from rag_sourcebias.pairs.findings import decision
from rag_sourcebias.report.document import about

Row = tuple[Any, ...]


#: What is counted of the documents and judgments of a source, and how it is called.
_COUNTED = {
    "n_documents": "documents",
    "untagged": "documents without a source",
    "n_pairs": "pairs",
    "baseline_alone": "originals without a rewrite",
    "other_alone": "rewrites without an original",
    "repeated": "further versions of a document",
    "n_labels": "judgments of originals",
    "labels_missing": "judgments not copied",
    "labels_differ": "judgments with another grade",
    "labels_added": "judgments of a rewrite only",
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
_FACTS = dict(
    zip(PAIR_FACTS, ("number missing", "number added", "name missing", "name added"), strict=True)
)
#: Each threshold with what it is of and why it is what it is.
_THRESHOLDS = {
    "length_ratio": (
        "length ratio",
        "a factor of 2 either way is a summary or an expansion, no rewrite",
    ),
    "copied": (
        "copied runs, at most",
        "one changed word breaks five runs of five words: above .8 fewer than one word in 25 was "
        "changed, and a retriever sees two copies",
    ),
    "repeated": (
        "repetition added, at most",
        "at .2 a fifth of the text says again what it said; ordinary prose repeats below .05",
    ),
    "end_kept": (
        "end kept, at least",
        "at .25 three of four words that only the original's last quarter has are gone, relative "
        "to the rest: it stops early",
    ),
    "chance": (
        "more alike than this share of mismatched pairs",
        "a rewrite that is no more like its original than 99 % of mismatched pairs of the same "
        "file is about something else; needs 20 pairs",
    ),
    "cosine": ("cosine, at least", "in addition, for those who know their encoder's scale"),
    "numbers_kept": (
        "numbers kept, at least",
        "at 1 any missing number is flagged: one wrong figure makes a document answer wrongly; "
        "numbers added are flagged as well",
    ),
    "names_kept": (
        "names kept, at least",
        "rewrites may turn a name into a pronoun, so one missing is no fault; below .6 two in five "
        "are gone. A swap and two invented names are flagged at any share",
    ),
    "language": ("the original's language", "a translation is no rewrite"),
    "writing": (
        "refusals, leftovers, open ends, copies",
        "refusals, what the model said around the text, endings inside a sentence and verbatim "
        "copies are no rewrites",
    ),
}


def frames(report: PairResults) -> dict[str, Frame]:
    """Return every table of a report."""
    made = {name: make(report) for name, make in _FRAMES.items()}
    environment = {**report.environment, "created": report.created}
    return made | about(report.data, _settings(report), report.settings, environment)


def _frame(
    names: tuple[str, ...],
    rows: Iterable[Row],
    *,
    formats: Mapping[str, str] | None = None,
    heads: Mapping[str, str] | None = None,
) -> Frame:
    """Return a table whose rows are named by their first two columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return Frame(
        columns=dict(zip(names, columns, strict=True)),
        formats=formats or {},
        heads=heads or {},
        n_heads=2,
    )


def _criteria(report: PairResults) -> Frame:
    rows: list[Row] = []
    for part in report.sources:
        for name, label in _COUNTED.items():
            counted = getattr(part.criteria, name)
            n = counted.n if isinstance(counted, NamedIds) else counted
            rows.append((part.source, label, n))
        if report.sole_corpus:
            rows.append((part.source, "judged queries", part.n_queries))
            rows.append((part.source, "queries without both versions", part.n_left_out))
    return _frame(("source", "counted", "n"), rows)


def _exceptions(report: PairResults) -> Frame:
    rows = [
        (part.source, label, name)
        for part in report.sources
        for counted, label in _COUNTED.items()
        if isinstance(ids := getattr(part.criteria, counted), NamedIds)
        for name in ids.first
    ]
    return _frame(("source", "exception", "id"), rows)


def _flags(report: PairResults) -> Frame:
    rows: list[Row] = []
    for part in report.sources:
        found = part.summary
        counts = {name: found.flagged.get(name, 0) for name in BROKEN}
        counts["broken, any of these"] = found.n_broken
        counts |= {name: found.flagged.get(name, 0) for name in PAIR_FLAGS[len(BROKEN) :]}
        counts["any flag"] = found.n_flagged
        for name, n in counts.items():
            share = n / found.n_pairs if n else None
            rows.append((part.source, name.replace("_", " "), n, share))
        rows.append((part.source, "pairs", found.n_pairs, None))
    return _frame(("source", "flag", "pairs", "share"), rows, formats={"share": "percent"})


def _values(report: PairResults) -> Frame:
    alike = "cosine" if report.encoder else "overlap"
    rows: list[Row] = []
    for part in report.sources:
        for name, quantiles in part.summary.quantiles.items():
            reached = part.by_chance if name == alike else None
            rows.append((part.source, VALUES[name], *quantiles, reached))
    columns = ("source", "value", "low", "median", "high", "mismatched")
    return _frame(
        columns,
        rows,
        formats=dict.fromkeys(columns[2:], "2"),
        heads={"low": "5%", "high": "95%", "mismatched": "mismatched pairs"},
    )


def _sole_corpus(report: PairResults) -> Frame:
    rows = [
        (
            test.system,
            test.measure,
            test.other,
            test.mean_baseline,
            test.mean_other,
            test.difference,
            test.p_different_adjusted,
            test.p_equivalent_adjusted,
            test.n_queries,
            test.n_changed,
            test.needs_queries,
            decision(test),
        )
        for test in report.sole_corpus
    ]
    return _frame(
        (
            "system",
            "measure",
            "source",
            "baseline",
            "rewrites",
            "difference",
            "p_different",
            "p_equivalent",
            "queries",
            "differing",
            "needed",
            "verdict",
        ),
        rows,
        formats={
            "baseline": "score",
            "rewrites": "score",
            "difference": "points",
            "p_different": "p",
            "p_equivalent": "p",
        },
        heads={
            "baseline": report.baseline_source,
            "p_different": "p different",
            "p_equivalent": "p equivalent",
        },
    )


def _worst_pairs(report: PairResults) -> Frame:
    rows = [
        (
            part.source,
            pair.pair_id,
            ", ".join(pair.flags),
            *(pair.values.get(name) for name in PAIR_VALUES),
        )
        for part in report.sources
        for pair in part.worst
    ]
    return _frame(
        ("source", "pair", "flags", *PAIR_VALUES),
        rows,
        formats=dict.fromkeys(PAIR_VALUES, "2"),
        heads=VALUES,
    )


def _facts(report: PairResults) -> Frame:
    rows = [
        (part.source, pair.pair_id, label, fact)
        for part in report.sources
        for pair in part.worst
        for name, label in _FACTS.items()
        for fact in getattr(pair, name)
    ]
    return _frame(("source", "pair", "change", "fact"), rows)


def _thresholds(report: PairResults) -> Frame:
    rows = [
        (label, _threshold(getattr(report.thresholds, name)), why)
        for name, (label, why) in _THRESHOLDS.items()
    ]
    return _frame(("threshold", "value", "because"), rows)


def _threshold(value: bool | float | tuple[float, float] | None) -> str:
    """Return a threshold such as ``0.5 to 2``, ``on`` or ``off``."""
    if value is None or value is False:
        return "off"
    if value is True:
        return "on"
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(f"{end:g}" for end in ends).replace("-", MINUS)


def _settings(report: PairResults) -> dict[str, object]:
    return {
        "baseline source": report.baseline_source,
        "encoder": report.encoder or "none: likeness is judged by words in common",
        "tests of each kind, corrected by Holm": report.n_tests,
        **{name: str(value) for name, value in to_plain(report.config).items()},
    }


_FRAMES: dict[str, Callable[[PairResults], Frame]] = {
    "criteria": _criteria,
    "exceptions": _exceptions,
    "flags": _flags,
    "values": _values,
    "sole corpus": _sole_corpus,
    "worst pairs": _worst_pairs,
    "facts": _facts,
    "thresholds": _thresholds,
}
