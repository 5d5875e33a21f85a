"""Every sentence of a report on a paired corpus follows from the report's tables.

Reports are random; the numbers of each sentence are worked out anew from the tables, which
users get as frames, by code that shares nothing with what made the sentence.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from paired_texts import WordSpec, paired_dataset

from rag_sourcebias.core.data import Corpus, DocTags, Qrels, TagTable
from rag_sourcebias.core.finding import Code, Finding, Frame, Interval
from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import PairThresholds
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.pairs.report import PairReport
from rag_sourcebias.report.document import Document, Versions

N_REPORTS = 16
REFUSAL = "I'm sorry, but I can't assist with that request."
BROKEN = (
    *("empty", "refusal", "leftover", "loop", "language", "unrelated"),
    *("truncated", "copy", "near copy", "length"),
)


# Reports


def rewriter(rng: np.random.Generator) -> Callable[[int, str, str], str | None]:
    faults = rng.random(7) * rng.choice([0, 0.3])

    def rewrite(i: int, human: str, other: str) -> str | None:
        changed = (
            None,
            REFUSAL,
            human,
            f"Sure, here is the rewritten text:\n\n{other}",
            other[: int(rng.integers(1, len(other)))],
            other + " and so on and on it goes" * 20,
            other.replace(f"{1200 + 7 * i} crowns", "9999 crowns to Paul Smith of Cork"),
        )
        for text, chance in zip(changed, faults, strict=True):
            if rng.random() < chance:
                return text
        return other

    return rewrite


def spoiled(rng: np.random.Generator, data: Any) -> Any:
    """Return a data set with some labels and sources lost."""
    lost = rng.random() * rng.choice([0, 0.3])
    q = data.qrels
    rows = [
        (q.query_ids[a], q.doc_ids[b], int(2 if rng.random() < lost else g))
        for a, b, g in zip(q.query_codes, q.doc_codes, q.grades, strict=True)
        if rng.random() >= lost
    ]
    tags = data.corpus.tags
    untagged = rng.random() * rng.choice([0, 0.2])
    items = [(d, DocTags() if rng.random() < untagged else tags.get(d)) for d in tags.doc_ids]
    corpus = Corpus(texts=data.corpus.texts, tags=TagTable.from_tags(items))
    return dataclasses.replace(data, qrels=Qrels.from_rows(rows), corpus=corpus)


@functools.cache
def report_of(seed: int) -> PairReport:
    rng = np.random.default_rng(seed)
    sources = ("llm:a", "llm:b")[: int(rng.integers(1, 3))]
    n = int(rng.choice([6, 24, 40]))
    data = spoiled(rng, paired_dataset(n=n, sources=sources, rewrite=rewriter(rng)))
    judged = rng.random() < 0.75
    report = check_paired_corpus(
        data if judged else data.corpus,
        encoder=HashingEncoder() if rng.random() < 0.5 else None,
        retrievers=[WordSpec()] if judged else [],
        thresholds=PairThresholds(cosine=0.9 if rng.random() < 0.5 else None),
    )
    means = ["mean_baseline", "mean_other"]
    if rng.random() < 0.5:
        means.reverse()  # then originals are harder to find
    tests = tuple(
        dataclasses.replace(
            test,
            p_equivalent_adjusted=rng.random() ** 4,
            p_different_adjusted=rng.random() ** 4,
            **dict(zip(means, (test.mean_baseline, test.mean_other), strict=True)),
        )
        for test in report.sole_corpus
    )
    return dataclasses.replace(report, sole_corpus=tests)


def said(document: Document) -> Iterator[tuple[Finding, object]]:
    """Yield every finding of a document, with the block that holds it."""

    def within(value: object, block: object) -> Iterator[tuple[Finding, object]]:
        if isinstance(value, Finding):
            yield value, block
        elif isinstance(value, Frame):
            for cells in value.columns.values():
                yield from within(tuple(cells), block)
        elif isinstance(value, tuple | list):
            for part in value:
                yield from within(part, block)
        elif dataclasses.is_dataclass(value) and not isinstance(value, Interval):
            for field in dataclasses.fields(value):
                yield from within(getattr(value, field.name), value)

    yield from within(document, document)


# What the tables say


class Tables:
    """The tables of a report as plain rows."""

    def __init__(self, report: PairReport) -> None:
        self.report = report

    def rows(self, name: str) -> list[dict[str, Any]]:
        values = self.report.table(name).values()
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def sources(self) -> list[str]:
        return list(dict.fromkeys(row["source"] for row in self.rows("criteria")))

    def counted(self, source: str, what: str) -> int:
        (n,) = [
            row["n"]
            for row in self.rows("criteria")
            if (row["source"], row["counted"]) == (source, what)
        ]
        return int(n)

    def flag(self, source: str, flag: str) -> int:
        (n,) = [
            row["pairs"]
            for row in self.rows("flags")
            if (row["source"], row["flag"]) == (source, flag)
        ]
        return int(n)

    def total(self, flag: str) -> int:
        return sum(self.flag(source, flag) for source in self.sources())

    def reached(self, source: str) -> float | None:
        return next(
            (
                row["mismatched"]
                for row in self.rows("values")
                if row["source"] == source and row["mismatched"] is not None
            ),
            None,
        )

    def met(self, source: str) -> tuple[bool | None, ...]:
        def none(*names: str) -> bool:
            return not any(self.counted(source, name) for name in names)

        lost = ("judgments not copied", "judgments with another grade")
        added = "judgments of a rewrite only"
        labels: bool | None = none(*lost, added)
        if none("judgments of originals", added):
            labels = None
        alone = ("originals without a rewrite", "rewrites without an original")
        return (
            none("documents without a source"),
            labels,
            none(*alone, "further versions of a document"),
        )

    def all_met(self) -> list[bool | None]:
        found = zip(*map(self.met, self.sources()), strict=True)
        return [False if False in each else None if None in each else True for each in found]

    def verdicts(self) -> list[str]:
        return [row["verdict"] for row in self.rows("sole corpus")]

    def setting(self, name: str) -> str:
        (value,) = [row["value"] for row in self.rows("settings") if row["name"] == name]
        return str(value)

    def values_of(self, block: object) -> dict[str, Any]:
        assert isinstance(block, Versions)
        (row,) = [
            row
            for row in self.rows("worst pairs")
            if (row["source"], row["pair"]) == (block.where, block.name)
        ]
        return row

    def facts_of(self, block: object, change: str) -> int:
        assert isinstance(block, Versions)
        return sum(
            (row["source"], row["pair"], row["change"]) == (block.where, block.name, change)
            for row in self.rows("facts")
        )


Expected = Mapping[str, Any]
Rule = Callable[[Tables, Finding, object], Expected]
ALL = "broken, any of these"


def of_source(*names: tuple[str, str]) -> Rule:
    """Return a rule for what is counted of the source of a criterion."""

    def rule(tables: Tables, finding: Finding, block: object) -> Expected:
        source = block.of  # type: ignore[attr-defined]
        return {name: tables.counted(source, counted) for name, counted in names}

    return rule


def of_pair(*names: str) -> Rule:
    return lambda tables, finding, block: {name: tables.values_of(block)[name] for name in names}


def with_chance(name: str) -> Rule:
    def rule(tables: Tables, finding: Finding, block: object) -> Expected:
        row = tables.values_of(block)
        return {name: row[name], "chance": tables.reached(row["source"])}

    return rule


def changed(kind: str) -> Rule:
    return lambda tables, finding, block: {
        "missing": tables.facts_of(block, f"{kind} missing"),
        "added": tables.facts_of(block, f"{kind} added"),
    }


def nothing(tables: Tables, finding: Finding, block: object) -> Expected:
    return {}


def corpus(make: Callable[[Tables], Expected]) -> Rule:
    return lambda tables, finding, block: make(tables)


def broken(tables: Tables) -> Expected:
    n, pairs = tables.total(ALL), tables.total("pairs")
    return {"broken": n, "pairs": pairs, "share": n / pairs}


def facts(tables: Tables) -> Expected:
    n = tables.total("any flag") - tables.total(ALL)
    return {"facts": n, "share": n / tables.total("pairs")}


def equally_hard(*names: str) -> Rule:
    def rule(tables: Tables, finding: Finding, block: object) -> Expected:
        verdicts = tables.verdicts()
        found = {
            "margin": float(tables.setting("margin")),
            "tests": len(verdicts),
            "same": verdicts.count("pairs.test_equivalent"),
            "differ": verdicts.count("pairs.test_different"),
        }
        return {name: found[name] for name in ("margin", "tests", *names)}

    return rule


def harder(higher: str, lower: str) -> Rule:
    """Expect that wherever corpora differ, one of them has the higher mean."""

    def rule(tables: Tables, finding: Finding, block: object) -> Expected:
        rows = tables.rows("sole corpus")
        differ = [row for row in rows if row["verdict"] == "pairs.test_different"]
        assert all(row[higher] > row[lower] for row in differ)
        return {"tests": len(rows), "differ": len(differ)}

    return rule


def first_rows(tables: Tables) -> list[tuple[str, tuple[int, ...]]]:
    """Return the sound, changed and broken pairs of each source."""
    found = []
    for source in tables.sources():
        pairs, flagged = tables.flag(source, "pairs"), tables.flag(source, "any flag")
        bad = tables.flag(source, ALL)
        if pairs:
            found.append((source, (pairs - flagged, flagged - bad, bad)))
    return found


def of_warned(*names: tuple[str, Callable[[Tables, str], Any]]) -> Rule:
    def rule(tables: Tables, finding: Finding, block: object) -> Expected:
        source = finding.numbers["source"]
        return {"source": source, **{name: make(tables, source) for name, make in names}}

    return rule


def pairs_of(tables: Tables, source: str) -> int:
    return tables.counted(source, "pairs")


RULES: dict[Code, Rule] = {
    PairsCode.NO_PAIRS: nothing,
    PairsCode.NONE_BROKEN: corpus(lambda t: {"pairs": t.total("pairs")}),
    PairsCode.BROKEN: corpus(broken),
    PairsCode.FACTS: corpus(facts),
    PairsCode.AGAINST: lambda t, f, b: {
        "baseline": t.setting("baseline source"),
        "other": next(s for s in t.sources() if s == f.numbers["other"]),
    },
    PairsCode.UNFIT: corpus(lambda t: {"failed": t.all_met().count(False)}),
    PairsCode.CRITERIA: corpus(
        lambda t: {
            "met": t.all_met().count(True),
            "failed": t.all_met().count(False),
            "unchecked": t.all_met().count(None),
        }
    ),
    PairsCode.SOURCES_KNOWN: of_source(("documents", "documents")),
    PairsCode.SOURCES_UNKNOWN: of_source(
        ("documents", "documents"), ("untagged", "documents without a source")
    ),
    PairsCode.LABELS_COPIED: of_source(("labels", "judgments of originals")),
    PairsCode.LABELS_DIFFER: of_source(
        ("labels", "judgments of originals"),
        ("missing", "judgments not copied"),
        ("differ", "judgments with another grade"),
        ("added", "judgments of a rewrite only"),
    ),
    PairsCode.ONE_TO_ONE: of_source(("pairs", "pairs")),
    PairsCode.NOT_ONE_TO_ONE: of_source(
        ("pairs", "pairs"),
        ("originals", "originals without a rewrite"),
        ("rewrites", "rewrites without an original"),
        ("repeated", "further versions of a document"),
    ),
    PairsCode.LOOP: of_pair("repeated"),
    PairsCode.CUT_OFF: of_pair("end_kept"),
    PairsCode.NEAR_COPY: of_pair("copied"),
    PairsCode.LENGTH: of_pair("length_ratio"),
    PairsCode.UNLIKE_WORDS: with_chance("overlap"),
    PairsCode.UNLIKE_VECTORS: with_chance("cosine"),
    PairsCode.COSINE: lambda t, f, b: {"cosine": t.values_of(b)["cosine"], "threshold": 0.9},
    PairsCode.NUMBERS: changed("number"),
    PairsCode.NAMES: changed("name"),
    PairsCode.ALONE: lambda t, f, b: {
        "baseline": t.setting("baseline source"),
        **{name: float(t.setting(name)) for name in ("margin", "level", "confidence_level")},
    },
    PairsCode.ALONE_ALIKE: equally_hard(),
    PairsCode.ALONE_SOME: equally_hard("same"),
    PairsCode.ALONE_DIFFER: equally_hard("same", "differ"),
    PairsCode.ALONE_REWRITES_HARDER: harder("baseline", "rewrites"),
    PairsCode.ALONE_ORIGINALS_HARDER: harder("rewrites", "baseline"),
    PairsCode.TEST_EQUIVALENT: lambda t, f, b: {"margin": float(t.setting("margin"))},
    PairsCode.FEW_PAIRS: of_warned(("pairs", pairs_of)),
    PairsCode.MANY_UNRELATED: of_warned(
        ("pairs", pairs_of),
        ("unrelated", lambda t, s: t.flag(s, "unrelated")),
        ("chance", lambda t, s: t.reached(s)),
    ),
    PairsCode.QUERIES_LEFT_OUT: of_warned(
        ("queries", lambda t, s: t.counted(s, "judged queries")),
        ("left_out", lambda t, s: t.counted(s, "queries without both versions")),
    ),
    **dict.fromkeys(
        (
            *(PairsCode.LABELS_UNCHECKED, PairsCode.EMPTY, PairsCode.REFUSAL, PairsCode.COPY),
            *(PairsCode.OPEN_END, PairsCode.TEST_DIFFERENT, PairsCode.TEST_UNDECIDED),
            PairsCode.TEST_NEEDS,
        ),
        nothing,
    ),
}
#: Texts and names of the corpus, what a command is called with, and what stands beside its cells.
NOT_COUNTED = {
    *(PairsCode.LEFTOVER, PairsCode.LANGUAGE, PairsCode.MORE_PAIRS),
    *(PairsCode.NEXT_AUDIT, PairsCode.NEXT_REPAIR),
}


def verdict_expected(tables: Tables) -> set[Code]:
    """Return the code of the verdict, and of each doubt, from the tables alone."""
    found: set[Code] = set()
    if False in tables.all_met():
        found.add(PairsCode.UNFIT)
    elif tables.total(ALL) > 0.05 * tables.total("pairs"):
        found.add(PairsCode.MANY_BROKEN)
    elif None in tables.all_met():
        found.add(PairsCode.UNCHECKED)
    else:
        found.add(PairsCode.FIT)
    if tables.total("any flag") > tables.total(ALL):
        found.add(PairsCode.FACTS)
    if "pairs.test_different" in tables.verdicts():
        found.add(PairsCode.HARDER)
    elif set(tables.verdicts()) - {"pairs.test_equivalent"}:
        found.add(PairsCode.UNDECIDED)
    return found


CONCLUSIONS = {
    *(PairsCode.UNFIT, PairsCode.MANY_BROKEN, PairsCode.UNCHECKED, PairsCode.FIT),
    *(PairsCode.FACTS, PairsCode.HARDER, PairsCode.UNDECIDED),
}


def problems(report: PairReport) -> list[str]:
    tables, found = Tables(report), []
    document = report.page()
    spoken = list(said(document))
    rows = [(str(row.name), tuple(n for _, n, _ in row.parts)) for row in document.first.rows]
    if rows != first_rows(tables):
        found.append(f"first screen: {rows}")
    concluded = {finding.code for finding, _ in spoken} & CONCLUSIONS
    if concluded != verdict_expected(tables):
        found.append(f"concluded {concluded}, not {verdict_expected(tables)}")
    for finding, block in spoken:
        if finding.code not in RULES:
            if finding.code not in NOT_COUNTED | CONCLUSIONS:
                found.append(f"no rule for {finding.code}")
            continue
        shown = {part for part in finding.numbers if f"{{{part}" in finding.code.template}
        expected = RULES[finding.code](tables, finding, block)
        if set(expected) != shown or any(
            finding.numbers[name] != pytest.approx(value) for name, value in expected.items()
        ):
            found.append(f"{finding}: {dict(finding.numbers)} is {dict(expected)}")
    return found


@pytest.mark.parametrize("seed", range(N_REPORTS))
def test_every_number_of_every_sentence_stands_in_a_table(seed: int) -> None:
    assert problems(report_of(seed)) == []


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


@pytest.mark.parametrize("seed", range(N_REPORTS))
def test_a_stored_report_holds_no_sentence(seed: int) -> None:
    report = report_of(seed)
    pairs = [pair for part in report.sources for pair in part.worst]
    given = "\n".join(text for pair in pairs for text in (pair.baseline_text, pair.other_text))
    stored = report.to_dict()
    assert [text for text in strings(stored) if len(text.split()) > 3 and text not in given] == []


def test_random_reports_say_nearly_everything() -> None:
    spoken = {
        finding.code for seed in range(N_REPORTS) for finding, _ in said(report_of(seed).page())
    }
    never = set(RULES) - spoken
    assert len(never) <= 4, never


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("summary", {"n_broken": 3}),
        ("summary", {"n_flagged": 99}),
        ("criteria", {"n_labels": 77}),
        ("criteria", {"n_documents": 1}),
    ],
)
def test_a_sentence_that_disagrees_is_found(
    part: str, change: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is made of other numbers than the tables."""
    report = next(r for r in map(report_of, range(N_REPORTS)) if r.sole_corpus)
    first, *others = report.sources
    wrong = dataclasses.replace(
        first, **{part: dataclasses.replace(getattr(first, part), **change)}
    )
    other = dataclasses.replace(report, sources=(wrong, *others))
    page = other.page()
    monkeypatch.setattr(PairReport, "page", lambda _: page)
    assert problems(report) != []
